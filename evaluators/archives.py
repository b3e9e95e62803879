"""Archives (zip, tar, tar.gz, tar.bz2, tar.xz): what is in them, and what kind they are.

The kind is told by content, never by the name. An archive within an archive is a file like any
other. A 7z is no archive here: no small well-kept library reads it.
"""

from __future__ import annotations

import bz2
import fnmatch
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .packages import MAX_UNPACKED, once, reading

MAX_MEMBERS = 10_000

Kind = Literal["zip", "tar", "tar.gz", "tar.bz2", "tar.xz"]

_Opener = Callable[[io.BytesIO], io.BufferedIOBase]
_PACKED: dict[bytes, tuple[Kind, _Opener]] = {
    b"\x1f\x8b": ("tar.gz", lambda data: gzip.GzipFile(fileobj=data)),
    b"BZh": ("tar.bz2", bz2.BZ2File),
    b"\xfd7zXZ\x00": ("tar.xz", lzma.LZMAFile),
}


@dataclass(frozen=True, slots=True)
class Archive:
    """What an archive would unpack to.

    Attributes:
        files: contents by path, ``./`` and doubled slashes removed.
        folders: paths of its folders that have an entry of their own.
        odd: members that are no plain file or folder, or whose path leaves the folder.
    """

    kind: Kind
    files: dict[str, bytes]
    folders: tuple[str, ...]
    odd: tuple[str, ...]


@once
def read_archive(data: bytes) -> Archive:
    """All of an archive.

    Raises:
        Fails: none of the kinds, broken, encrypted, or larger than any archive of a task.
    """
    with reading("no whole archive"):
        if data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            return _read_zip(data)
        for magic, (kind, opener) in _PACKED.items():
            if data.startswith(magic):
                with opener(io.BytesIO(data)) as stream:
                    return _read_tar(kind, stream.read(MAX_UNPACKED + 1))
        if data[257:262] == b"ustar":
            return _read_tar("tar", data)
    raise Fails("neither zip nor tar", seen=data[:40])


def _read_zip(data: bytes) -> Archive:
    made = _Made("zip")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        made.claim(len(members), sum(m.file_size for m in members))
        for member in members:
            if member.flag_bits & 1:
                raise Fails(f"{member.filename!r:.200} is encrypted")
            # Some writers leave the type out, and it is then a plain file.
            kind = stat.S_IFMT(member.external_attr >> 16) if member.create_system == 3 else 0
            name = _zip_name(member)
            if member.is_dir():
                made.folder(name)
            elif kind not in (0, stat.S_IFREG):
                made.odd.append(name)
            else:
                if name in made.files:
                    raise Fails(f"{name!r:.200} is there twice, and programs differ on which holds")
                made.file(name, archive.read(member))
    return made.archive()


def _zip_name(member: zipfile.ZipInfo) -> str:
    """Its name; zip on Linux writes UTF-8 and often does not say so."""
    if member.flag_bits & 0x800:
        return member.filename
    try:
        return member.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return member.filename


def _read_tar(kind: Kind, data: bytes) -> Archive:
    made = _Made(kind)
    made.claim(0, len(data))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        size = 0
        for count, member in enumerate(archive, start=1):
            size += member.size
            made.claim(count, size)
            if member.isdir():
                made.folder(member.name)
            elif member.isreg() and not member.issparse():
                content = archive.extractfile(member)
                assert content is not None  # of a regular member
                packed = content.read()
                if len(packed) != member.size:
                    raise Fails(f"{member.name!r:.200} is cut short")
                made.file(member.name, packed)  # the last one of a name holds, as in tar
            else:
                made.odd.append(member.name)
    return made.archive()


class _Made:
    """An archive's contents in the making."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.files: dict[str, bytes] = {}
        self._folders: list[str] = []
        self.odd: list[str] = []

    def claim(self, members: int, size: int) -> None:
        if members > MAX_MEMBERS or size > MAX_UNPACKED:
            raise Fails(f"{members} members of {size} bytes: no archive of a task")

    def file(self, name: str, data: bytes) -> None:
        if _leaves(name):
            self.odd.append(name)
        else:
            self.files[PurePosixPath(name).as_posix()] = data

    def folder(self, name: str) -> None:
        if _leaves(name):
            self.odd.append(name)
        elif (path := PurePosixPath(name).as_posix()) != ".":
            self._folders.append(path)

    def archive(self) -> Archive:
        return Archive(self._kind, self.files, tuple(self._folders), tuple(self.odd))


def _leaves(name: str) -> bool:
    return name.startswith("/") or ".." in PurePosixPath(name).parts or "\0" in name


@check
def contents(
    item: Item,
    *,
    expected: dict[str, bytes | str],
    root: str = "",
    further: Literal["refused", "allowed"] = "refused",
) -> Verdict:
    """The archive's files below its folder ``root`` are exactly these, with these contents.

    A text as content is UTF-8; of a tar with a name twice the last one counts. Empty folders,
    times, owners and modes are not looked at. It refuses links, devices, absolute paths and
    ``..`` anywhere in it, files beside ``root``, missing, changed and, unless allowed,
    ``further`` files.
    """
    if not expected:
        raise GradingError("expected is empty; name at least one file")
    archive = read_archive(item.bytes())
    _refuse_odd(archive)
    above = PurePosixPath(root)
    wanted = {
        (above / name).as_posix(): data.encode() if isinstance(data, str) else data
        for name, data in expected.items()
    }
    seen = archive.files
    missing = sorted(wanted.keys() - seen.keys())
    extra = sorted(seen.keys() - wanted.keys()) if further == "refused" else []
    changed = sorted(k for k in wanted.keys() & seen.keys() if wanted[k] != seen[k])
    same = not missing and not extra and not changed
    message = f"missing {missing[:10]}, further {extra[:10]}, changed {changed[:10]}"
    return verdict(
        same,
        f"all {len(wanted)} files" if same else message,
        seen=sorted(seen)[:100],
        wanted=sorted(wanted)[:100],
    )


@check
def lacks(item: Item, *, patterns: list[str]) -> Verdict:
    """No path of a file or folder in it is like one of the patterns, from end to end.

    ``*`` also stands for ``/``; case counts. It refuses an archive that is broken or has no file
    at all, and links.
    """
    if not patterns:
        raise GradingError("patterns is empty; name at least one")
    archive = read_archive(item.bytes())
    _refuse_odd(archive)
    if not archive.files:
        raise Fails("the archive has no files")
    paths = {*archive.files, *archive.folders}
    paths |= {above.as_posix() for path in paths for above in PurePosixPath(path).parents}
    hits = [
        name
        for name in sorted(paths)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]
    return verdict(not hits, "members like that", seen=hits[:50], wanted=f"none like {patterns}")


@check
def format(item: Item, *, kind: Kind) -> Verdict:  # noqa: A001  what a task's author calls it
    """A whole archive of this kind, told by its content.

    It refuses another kind with this name, and a compressed file that is no tar.
    """
    seen = read_archive(item.bytes()).kind
    return verdict(seen == kind, "its kind", seen=seen, wanted=kind)


def _refuse_odd(archive: Archive) -> None:
    if archive.odd:
        raise Fails("members that are no plain files, or lie outside", seen=list(archive.odd)[:20])
