"""An archive of the project, its line in the history, its checksum."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import zipfile
import zlib
from decimal import Decimal

from cua_gym.grading.check import Evidence, Fails, Item, Verdict, check, verdict

MAX_BYTES = 10_000_000


def _members(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise Fails(f"it unpacks to over {MAX_BYTES} bytes")
            return {m.filename: archive.read(m) for m in archive.infolist() if not m.is_dir()}
    except (zipfile.BadZipFile, EOFError, OSError, zlib.error, NotImplementedError) as error:
        raise Fails(f"no whole zip archive: {error}", seen=data[:20]) from error


def _plain(data: bytes) -> str:
    """A text, whatever its newlines are."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n")


def _new_archives(archives: Item, last: str) -> dict[str, bytes]:
    return {path: data for path, data in archives.files().items() if not path.endswith(f"/{last}")}


@check
def packed(
    evidence: Evidence, *, last: str, parts: dict[str, str], edited: dict[str, str]
) -> Verdict:
    """A zip archive, not of the last release, holds just the parts and the edited files.

    ``parts`` are texts by path. ``edited`` are names of evidence by path: a file in the archive
    must say what the project's file says at the end, so an archive made before the last change is
    refused. The kind of newlines is no difference.
    """
    wanted = {path: _plain(text.encode()) for path, text in parts.items()}
    wanted |= {path: _plain(evidence[name].bytes()) for path, name in edited.items()}
    seen: list[str] = []
    for path, data in _new_archives(evidence["archives"], last).items():
        files = {name: _plain(content) for name, content in _members(data).items()}
        if files == wanted:
            return verdict(True, path, seen=sorted(files), wanted=sorted(wanted))
        names = sorted(files.keys() | wanted.keys())
        seen += [name for name in names if files.get(name) != wanted.get(name)]
    return verdict(False, "no archive like that", seen=sorted(seen), wanted=sorted(wanted))


@check
def in_place(item: Item, *, last: str, path: str) -> Verdict:
    """The one archive besides the last release is at ``path``. It refuses a further copy."""
    seen = sorted(_new_archives(item, last))
    return verdict(seen == [path], "new archives", seen=seen, wanted=path)


@check
def told(evidence: Evidence, *, last: str, version: str, rows: list[list[str]]) -> Verdict:
    """The history has its old rows and one more: version, files, bytes, growth in percent.

    Files and bytes are those of the new archive; the growth has one decimal.
    """
    history, archives = evidence["history"], evidence["archives"]
    seen = [row for row in csv.reader(io.StringIO(history.text("utf-8-sig"))) if row]
    before = int(rows[-1][2])
    lines = []
    for data in _new_archives(archives, last).values():
        members = _members(data).values()
        size = sum(map(len, members))
        growth = Decimal(size - before) * 100 / before
        lines.append([version, str(len(members)), str(size), f"about {growth:.3f}"])
        new = [cell.strip() for cell in seen[-1]] if seen else []
        if (
            seen[:-1] == rows
            and new[:3] == lines[-1][:3]
            and len(new) == 4
            and re.fullmatch(r"\d+\.\d", new[3])
            and abs(Decimal(new[3]) - growth) <= Decimal("0.05")
        ):
            return verdict(True, "the last row", seen=seen, wanted=lines)
    return verdict(False, "the last row", seen=seen, wanted=[*rows, *lines])


@check
def summed(evidence: Evidence, *, path: str, name: str) -> Verdict:
    """The file has one line as sha256sum prints it of the archive at ``path``, under ``name``."""
    data = evidence["archives"].files().get(path)
    if data is None:
        raise Fails(f"there is no {path}")
    wanted = hashlib.sha256(data).hexdigest()
    text = evidence["checksum"].text("utf-8-sig").strip()
    found = re.fullmatch(r"([0-9a-fA-F]{64})[ \t]+\*?(?:\./)?(\S+)", text)
    same = found is not None and (found[1].lower(), found[2]) == (wanted, name)
    return verdict(same, "the checksum", seen=text, wanted=f"{wanted}  {name}")
