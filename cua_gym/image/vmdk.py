"""The VMDK file format, as far as images need it: what a file is, whether all of it is there.

Source: VMware "Virtual Disk Format 5.0" (technical note).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from cua_gym.errors import ImageError

__all__ = ["FOOTER", "GRAIN_SECTORS", "HEADER", "MAGIC", "SECTOR", "Extent", "Vmdk", "read_vmdk"]

SECTOR = 512
MAGIC = b"KDMV"
GRAIN_SECTORS = 128
# magic, version, flags, capacity, grain size, descriptor offset and size, entries per grain table,
# redundant grain directory, grain directory, overhead, unclean, line-end test, compression
HEADER = struct.Struct("<4sIIQQQQIQQQB4sH")
FLAG_COMPRESSED = 1 << 16
FLAG_MARKERS = 1 << 17
DIRECTORY_AT_END = 2**64 - 1

# A marker is a sector: value, size, type; one with a size above zero is a compressed grain.
MARKER = struct.Struct("<QII")
END_OF_STREAM, GRAIN_TABLE, GRAIN_DIRECTORY, FOOTER = 0, 1, 2, 3

_EXTENT = re.compile(r'^(RW|RDONLY|NOACCESS)\s+(\d+)\s+(\w+)(?:\s+"([^"]*)")?', re.MULTILINE)
_FIELD = re.compile(r'^\s*(\w+)\s*=\s*"?([^"\n]*)"?\s*$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Extent:
    """One file of a disk."""

    sectors: int
    kind: str
    path: Path | None


@dataclass(frozen=True, slots=True)
class Vmdk:
    """What a VMDK says of itself.

    Attributes:
        subformat: its ``createType``, such as ``monolithicSparse``.
        extents: the files that hold the data.
    """

    path: Path
    subformat: str
    extents: tuple[Extent, ...]

    @property
    def virtual_bytes(self) -> int:
        """Size of the disk that a guest sees."""
        return SECTOR * sum(extent.sectors for extent in self.extents)

    @property
    def is_one_file(self) -> bool:
        """Whether this file is the whole disk."""
        return {extent.path for extent in self.extents} == {self.path}

    def require_extents(self) -> None:
        """Check that every file of a split disk is there.

        Raises:
            ImageError: names those that are not.
        """
        paths = [extent.path for extent in self.extents if extent.path is not None]
        missing = [path.name for path in paths if not path.is_file()]
        if missing:
            raise ImageError(
                f"{self.path} is a {self.subformat} disk in {len(paths)} parts, and "
                f"{', '.join(missing)} not in {self.path.parent}; copy every part there"
            )


def read_vmdk(path: Path) -> Vmdk:
    """Read the descriptor of a VMDK, embedded or in a text file of its own.

    Raises:
        ImageError: not a VMDK, or one part of a split disk.
    """
    with path.open("rb") as file:
        start = file.read(64 * 1024)
        if start[:4] == MAGIC:
            header = HEADER.unpack_from(start)
            offset, size = header[5] * SECTOR, header[6] * SECTOR
            file.seek(offset)
            text = file.read(size if offset else 0).rstrip(b"\0").decode("utf-8", "replace")
            if "createType" not in text:
                raise ImageError(
                    f"{path} is one part of a split VMDK; name the small descriptor file instead"
                )
            whole = True
        else:
            text = start.decode("utf-8", "replace")
            whole = False
    fields = dict(_FIELD.findall(text))
    if "createType" not in fields:
        raise ImageError(f"{path} is not a VMDK: it has no createType")
    extents = tuple(
        # The name inside a one-file disk is the one it had when it was made.
        Extent(int(sectors), kind, path if whole else (path.parent / name if name else None))
        for _, sectors, kind, name in _EXTENT.findall(text)
    )
    return Vmdk(path, fields["createType"], extents)
