"""Variants of archives (zip, tar) by members, and zips packed anew: office files are zips too."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from cua_gym.gates.variants import MOST, Content, Variant, halves, place, spread

__all__ = ["broken", "is_office", "pack", "read_tar", "read_zip", "repacked", "tar_repacked"]

_FIRST = "mimetype"
"""OpenDocument says that this member comes first, and is not compressed."""
_DATES = ((1980, 1, 1, 0, 0, 0), (2001, 2, 3, 4, 5, 6))
_READERS = {"gz": gzip.decompress, "bz2": bz2.decompress, "xz": lzma.decompress}
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\0": "xz"}


def read_zip(data: bytes) -> dict[str, bytes] | None:
    """A zip's members by name, in order; None when it is no whole zip."""
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {m.filename: archive.read(m) for m in archive.infolist()}
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError):
        return None


def is_office(members: Mapping[str, bytes]) -> bool:
    """Whether these are the members of an OOXML or OpenDocument file."""
    return "[Content_Types].xml" in members or _FIRST in members


def pack(members: Mapping[str, bytes], *, compress: bool = False, late: bool = False) -> bytes:
    """A zip of these members in this order, the same whenever it is made."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _DATES[late])
            small = compress and name != _FIRST
            info.compress_type = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
            archive.writestr(info, data)
    return packed.getvalue()


def repacked(members: Mapping[str, bytes]) -> Iterator[Content]:
    """The same members in reverse order with other times, compressed and not."""
    names = [n for n in members if n == _FIRST] + [
        n for n in reversed(list(members)) if n != _FIRST
    ]
    turned = {name: members[name] for name in names}
    yield Variant("repacked", "stored", partial(pack, turned))
    yield Variant("repacked", "compressed", partial(pack, turned, compress=True, late=True))


Tar = tuple[str, dict[str, bytes]]
"""How it is compressed, and its files by name."""


def read_tar(data: bytes) -> Tar | None:
    """A tar of nothing but files and folders; None when it is none."""
    way = next((way for magic, way in _MAGIC.items() if data.startswith(magic)), "")
    try:
        plain = _READERS[way](data) if way else data
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            members = archive.getmembers()
            files = {m.name: archive.extractfile(m) for m in members if m.isreg()}
            found = {name: file.read() for name, file in files.items() if file is not None}
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError):
        return None
    if not found or not all(m.isreg() or m.isdir() for m in members):
        return None
    return way, found


def _pack_tar(way: str, members: Mapping[str, bytes], *, late: bool = False) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 981173106 if late else 0
            archive.addfile(info, io.BytesIO(data))
    plain = packed.getvalue()
    if way == "gz":
        return gzip.compress(plain, 1, mtime=0)
    if way == "bz2":
        return bz2.compress(plain)
    return lzma.compress(plain) if way == "xz" else plain


def tar_repacked(tar: Tar) -> Iterator[Content]:
    """The same members in reverse order with other times, packed by another program."""
    way, members = tar
    turned = {name: members[name] for name in reversed(members)}
    if not any(name.endswith("/") for name in members):
        yield Variant("repacked", "", partial(_pack_tar, way, turned, late=True))


def broken(
    start: Mapping[str, bytes] | None, solved: Mapping[str, bytes], way: str | None
) -> list[Content]:
    """Half of the new or changed members undone; each undone, renamed, altered; one too many.

    Args:
        way: of a tar, how it is compressed; None is a zip.
    """
    before = start or {}
    changed = [n for n, d in solved.items() if before.get(n) != d and not n.endswith("/")]

    def packed(members: Mapping[str, bytes]) -> bytes:
        return pack(members) if way is None else _pack_tar(way, members)

    def undo(names: Sequence[str]) -> bytes:
        left = {n: before.get(n, d) if n in names else d for n, d in solved.items()}
        return packed({n: d for n, d in left.items() if n in before or n not in names})

    def rename(name: str) -> bytes:
        return packed({_beside(n) if n == name else n: d for n, d in solved.items()})

    def put(name: str, data: bytes) -> bytes:
        return packed({**solved, name: data})

    found = [Variant("further", "", partial(put, "one-too-many.txt", b"too many\n"))]
    found += halves(changed, undo)
    parts: list[Content] = []
    for name in spread(changed):
        where, data = place(name), solved[name]
        parts.append(Variant("reverted", where, partial(undo, [name])))
        parts.append(Variant("renamed", where, partial(rename, name)))
        parts.append(Variant("altered", f"{where}:content", partial(put, name, data + b"x")))
        if data:
            parts.append(Variant("altered", f"{where}:empty", partial(put, name, b"")))
    return found + spread(parts, MOST - len(found))


def _beside(name: str) -> str:
    """Another name in the same folder, with the same ending."""
    folder, slash, last = name.rpartition("/")
    stem, dot, ending = last.rpartition(".")
    return f"{folder}{slash}{stem}-1{dot}{ending}" if stem else f"{folder}{slash}{last}-1"
