"""The streamOptimized VMDK: written and checked here, from the format's description.

`qemu-img` writes a file of that name too, but without footer and end-of-stream marker, and with
the grain directory in front; ESXi's importer answers it with "400 Bad Request".

Source: VMware "Virtual Disk Format 5.0", section "Stream-Optimized Compressed Sparse Extents".
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from cua_gym.errors import ImageError
from cua_gym.image.vmdk import (
    DIRECTORY_AT_END,
    END_OF_STREAM,
    FLAG_COMPRESSED,
    FLAG_MARKERS,
    FOOTER,
    GRAIN_DIRECTORY,
    GRAIN_SECTORS,
    GRAIN_TABLE,
    HEADER,
    MAGIC,
    MARKER,
    SECTOR,
)

__all__ = ["check_stream", "write_stream"]

_GRAIN_BYTES = GRAIN_SECTORS * SECTOR
_TABLE_ENTRIES = 512
_TABLE_BYTES = _TABLE_ENTRIES * 4
_DESCRIPTOR_SECTORS = 20
_FLAGS = 1 | 2 | FLAG_COMPRESSED | FLAG_MARKERS  # 1: line-end test valid, 2: as qemu and VMware set
_DEFLATE = 1
# Level 1 takes a third of the time of 6 for 8 % more bytes (2.2 GB of a real system).
_LEVEL = 1

_DESCRIPTOR = """# Disk DescriptorFile
version=1
CID={cid:08x}
parentCID=ffffffff
createType="streamOptimized"

# Extent description
RW {sectors} SPARSE "{name}"

# The Disk Data Base
#DDB

ddb.virtualHWVersion = "14"
ddb.geometry.cylinders = "{cylinders}"
ddb.geometry.heads = "255"
ddb.geometry.sectors = "63"
ddb.adapterType = "lsilogic"
"""


def write_stream(raw: Path, target: Path) -> None:
    """Write the raw disk ``raw`` as a streamOptimized VMDK.

    Raises:
        ImageError: its size is not a whole number of 64 KiB grains.
    """
    size = raw.stat().st_size
    if size == 0 or size % _GRAIN_BYTES:
        raise ImageError(f"{raw} has {size} bytes, not a multiple of {_GRAIN_BYTES}")
    with raw.open("rb") as source, target.open("xb") as file:
        writer = _Writer(file, size // SECTOR, target.name)
        for index, grain in _grains(source, size):
            writer.add(index, grain)
        writer.finish()


class _Writer:
    def __init__(self, file: BinaryIO, sectors: int, name: str) -> None:
        self._file = file
        self._sectors = sectors
        tables = -(-sectors // (GRAIN_SECTORS * _TABLE_ENTRIES))
        self._directory = [0] * tables
        self._table = [0] * _TABLE_ENTRIES
        self._table_index = 0
        file.write(self._header(DIRECTORY_AT_END))
        text = _DESCRIPTOR.format(
            cid=zlib.crc32(os.urandom(8)) & 0xFFFFFFFE,
            sectors=sectors,
            name=name,
            cylinders=min(65535, sectors // (255 * 63)),
        )
        file.write(text.encode().ljust(_DESCRIPTOR_SECTORS * SECTOR, b"\0"))
        file.write(b"\0" * (GRAIN_SECTORS * SECTOR - file.tell()))

    def add(self, index: int, grain: bytes) -> None:
        """Append one grain; indices rise."""
        table = index // _TABLE_ENTRIES
        if table != self._table_index:
            self._flush_table()
            self._table_index = table
        self._table[index % _TABLE_ENTRIES] = self._sector()
        packed = zlib.compress(grain, _LEVEL)
        self._padded(struct.pack("<QI", index * GRAIN_SECTORS, len(packed)) + packed)

    def finish(self) -> None:
        """Append directory, footer and end of stream."""
        self._flush_table()
        directory = struct.pack(f"<{len(self._directory)}I", *self._directory)
        self._marker(-(-len(directory) // SECTOR), GRAIN_DIRECTORY)
        at = self._sector()
        self._padded(directory)
        self._marker(1, FOOTER)
        self._file.write(self._header(at))
        self._marker(0, END_OF_STREAM)

    def _flush_table(self) -> None:
        if any(self._table):
            self._marker(_TABLE_BYTES // SECTOR, GRAIN_TABLE)
            self._directory[self._table_index] = self._sector()
            self._file.write(struct.pack(f"<{_TABLE_ENTRIES}I", *self._table))
            self._table = [0] * _TABLE_ENTRIES

    def _header(self, directory: int) -> bytes:
        return HEADER.pack(
            MAGIC, 3, _FLAGS, self._sectors, GRAIN_SECTORS, 1, _DESCRIPTOR_SECTORS,
            _TABLE_ENTRIES, 0, directory, GRAIN_SECTORS, 0, b"\n \r\n", _DEFLATE,
        ).ljust(SECTOR, b"\0")  # fmt: skip

    def _marker(self, sectors: int, kind: int) -> None:
        self._padded(MARKER.pack(sectors, 0, kind))

    def _padded(self, data: bytes) -> None:
        self._file.write(data + b"\0" * (-len(data) % SECTOR))

    def _sector(self) -> int:
        return self._file.tell() // SECTOR


def _grains(source: BinaryIO, size: int) -> Iterator[tuple[int, bytes]]:
    """(index, content) of all grains that are not zero; holes of a sparse file are not read."""
    position = 0
    zero = bytes(_GRAIN_BYTES)
    while position < size:
        try:
            data = os.lseek(source.fileno(), position, os.SEEK_DATA)
        except OSError:
            return  # only a hole is left
        hole = os.lseek(source.fileno(), data, os.SEEK_HOLE)
        position = data - data % _GRAIN_BYTES
        source.seek(position)
        while position < hole:
            grain = source.read(_GRAIN_BYTES)
            if grain != zero:
                yield position // _GRAIN_BYTES, grain
            position += _GRAIN_BYTES


def check_stream(path: Path, virtual_bytes: int) -> None:
    """Walk a streamOptimized VMDK from header to end of stream, as an importer does.

    Raises:
        ImageError: says which rule it breaks and where.
    """
    size = path.stat().st_size

    def refuse(rule: str) -> ImageError:
        return ImageError(f"{path} is not a valid streamOptimized VMDK: {rule}")

    with path.open("rb") as file:
        start = file.read(SECTOR)
        if len(start) < SECTOR or start[:4] != MAGIC:
            raise refuse("it does not start with a sparse extent's header")
        header = HEADER.unpack_from(start)
        if header[1] != 3:
            raise refuse(f"its version is {header[1]}, not 3")
        if header[2] & (FLAG_COMPRESSED | FLAG_MARKERS) != FLAG_COMPRESSED | FLAG_MARKERS:
            raise refuse(f"its flags {header[2]:#x} lack compression or markers")
        if header[3] * SECTOR != virtual_bytes:
            raise refuse(f"its capacity is {header[3] * SECTOR} bytes, not {virtual_bytes}")
        if header[9] != DIRECTORY_AT_END:
            raise refuse("its grain directory is in front, so there is no footer")
        if size % SECTOR:
            raise refuse(f"its size {size} is not a whole number of sectors")
        file.seek(size - 3 * SECTOR)
        tail = file.read(3 * SECTOR)
        if MARKER.unpack_from(tail) != (1, 0, FOOTER):
            raise refuse("no footer marker stands before the footer")
        if tail[2 * SECTOR :] != bytes(SECTOR):
            raise refuse("it does not end with an end-of-stream marker")
        footer = HEADER.unpack_from(tail, SECTOR)
        if footer[:9] != header[:9]:
            raise refuse("footer and header differ")
        grains, tables, directory = _walk(file, header[10] * SECTOR, size - 3 * SECTOR, refuse)
        if footer[9] != directory:
            raise refuse(f"its footer puts the directory at {footer[9]}, it is at {directory}")
        if len(grains) > 0 and not tables:
            raise refuse("it has grains but no grain table")


def _walk(file: BinaryIO, start: int, end: int, refuse: object) -> tuple[list[int], list[int], int]:
    """Follow the markers: grains (their guest sectors), tables and the directory (file sectors)."""
    assert callable(refuse)
    grains: list[int] = []
    tables: list[int] = []
    directory = 0
    position = start
    while position < end:
        file.seek(position)
        value, size, kind = MARKER.unpack(file.read(MARKER.size))
        if size:
            if grains and value <= grains[-1]:
                raise refuse(f"grains are out of order at byte {position}")
            grains.append(value)
            position += -(-(12 + size) // SECTOR) * SECTOR
            continue
        if kind == GRAIN_TABLE:
            tables.append(position // SECTOR + 1)
        elif kind == GRAIN_DIRECTORY:
            directory = position // SECTOR + 1
        else:
            raise refuse(f"an unexpected marker of type {kind} is at byte {position}")
        position += SECTOR * (1 + value)
    if position != end:
        raise refuse("its last part runs past the footer")
    return grains, tables, directory
