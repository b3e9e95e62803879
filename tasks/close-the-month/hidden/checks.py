"""Accounts under their old or new name, the folder's names, and what was packed."""

from __future__ import annotations

import io
import tarfile
import zlib

from cua_gym.grading.check import Evidence, Fails, Item, Verdict, check, verdict

MAX_BYTES = 10_000_000


def _by_name(item: Item) -> dict[str, bytes]:
    return {path.rpartition("/")[2]: data for path, data in item.files().items()}


def _plain(data: bytes) -> str:
    """A text, whatever its newlines are."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text.removesuffix("\n")


def _account(item: Item, names: list[str]) -> str:
    there = [name for name in names if name in _by_name(item)]
    if len(there) != 1:
        raise Fails(f"not one of {names} but {there}", seen=sorted(_by_name(item)))
    return _plain(_by_name(item)[there[0]])


@check
def account(item: Item, *, names: list[str], expected: str) -> Verdict:
    """The one file that has one of these names has this text; runs of blanks are no difference."""
    text = _account(item, names)
    seen, wanted = ([line.split() for line in t.strip().split("\n")] for t in (text, expected))
    return verdict(seen == wanted, names[0], seen=text, wanted=expected)


@check
def entry(item: Item, *, names: list[str], reference: str, amount: str) -> Verdict:
    """In that file the one line of this reference has this amount."""
    text = _account(item, names)
    lines = [line.split() for line in text.split("\n") if reference in line.split()]
    same = len(lines) == 1 and lines[0][3:4] == [amount]
    return verdict(same, reference, seen=lines, wanted=amount)


@check
def named(item: Item, *, expected: list[str]) -> Verdict:
    """The folder has exactly files of these names."""
    seen = sorted(_by_name(item))
    return verdict(seen == sorted(expected), "the folder", seen=seen, wanted=sorted(expected))


@check
def packed(evidence: Evidence, *, expected: list[str]) -> Verdict:
    """A tar.gz of exactly these files, each with what the folder's file of that name says.

    The kind of newlines is no difference, and ``./`` before a name is none. It refuses folders,
    links, and what was packed before the last change.
    """
    there = _by_name(evidence["files"])
    wanted = {name: _plain(there[name]) for name in expected if name in there}
    seen = {}
    left = MAX_BYTES
    data = evidence["archive"].bytes()
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in archive:
                left -= member.size
                if left < 0:
                    raise Fails(f"it holds over {MAX_BYTES} bytes")
                content = archive.extractfile(member) if member.isreg() else None
                text = "(no file)" if content is None else _plain(content.read())
                seen[member.name.removeprefix("./")] = text
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise Fails(f"no whole tar.gz: {error}", seen=data[:20]) from error
    same = seen == wanted and len(wanted) == len(expected)
    return verdict(same, "the archive", seen=sorted(seen), wanted=sorted(expected))
