"""Takes the guest's RAM out of a QEMU migration stream.

A full stream holds RAM pages and device state. `split_stream` writes the pages of one block to a
sparse file, by address, and everything else to a second file, still a valid stream: loaded into a
machine whose memory *is* that first file, it sets all but the memory. So no second QEMU process is
needed to turn a stream into a memory file that many machines can map.

Source: QEMU's ``docs/devel/migration.rst``, ``migration/savevm.c`` and ``migration/ram.c``; the
stream of the running-VM protocol has been compatible since QEMU 2.4.
"""

from __future__ import annotations

import os
import struct

import numpy as np

from cua_gym.errors import MachineError

__all__ = ["split_stream"]

PAGE = 4096
_CHUNK = 1 << 18
_FLAGS = PAGE - 1

# Section types of the stream.
_START, _PART, _END, _CONFIGURATION, _FOOTER = 0x01, 0x02, 0x03, 0x07, 0x7E
# Flags of a RAM record, in the low bits of its address.
_ZERO, _MEM_SIZE, _DATA, _EOS, _CONTINUE = 0x02, 0x04, 0x08, 0x10, 0x20


def split_stream(source: int, memory: int, device: int, *, block: str, size: int) -> None:
    """Read a migration stream to its end.

    Args:
        source: descriptor of the stream, a pipe or a file.
        memory: descriptor of an empty file; becomes ``size`` bytes, zero pages left as holes.
        device: descriptor of an empty file for the rest of the stream.
        block: the RAM block to take out, such as ``ram0``.

    Raises:
        MachineError: the stream ends early or is not understood.
        OSError: a file cannot be written; ``ENOSPC`` when its disk is full.
    """
    os.ftruncate(memory, size)
    _Splitter(source, memory, device, block.encode(), size).run()


class _Splitter:
    def __init__(self, source: int, memory: int, device: int, block: bytes, size: int) -> None:
        self._source = source
        self._memory = memory
        self._device = device
        self._block = block
        self._size = size
        self._buffer = bytearray()
        self._at = 0
        self._out = bytearray()
        self._current = b""

    def run(self) -> None:
        if self._pass(8) != b"QEVM\0\0\0\x03":
            raise MachineError("QEMU's saved state does not begin like a migration stream")
        kind = self._pass(1)[0]
        if kind == _CONFIGURATION:
            self._pass(struct.unpack(">I", self._pass(4))[0])
            kind = self._pass(1)[0]
        if kind != _START:
            raise MachineError(f"QEMU's saved state begins with section type {kind:#x}")
        section = self._pass(4)
        name = self._pass(self._pass(1)[0])
        if name != b"ram":
            raise MachineError(f"QEMU's saved state begins with section {name!r}, not with ram")
        self._pass(8)  # instance and version
        while True:
            self._records()
            if self._pass(1)[0] != _FOOTER or self._pass(4) != section:
                raise MachineError("a RAM section of QEMU's saved state has no footer")
            if kind == _END:
                break
            kind = self._pass(1)[0]
            if kind not in (_PART, _END) or self._pass(4) != section:
                raise MachineError(f"an unknown section {kind:#x} between the RAM of a saved state")
        self._rest()

    def _records(self) -> None:
        """RAM records up to the end of their section."""
        while True:
            header = self._take(8)
            value = struct.unpack(">Q", header)[0]
            flags, address = value & _FLAGS, value & ~_FLAGS
            if flags == _EOS:
                self._out += header
                self._flush()
                return
            if flags == _MEM_SIZE:
                self._out += header
                self._blocks(address)
                continue
            kind = flags & ~_CONTINUE
            if kind not in (_ZERO, _DATA):
                raise MachineError(f"a RAM record of QEMU's saved state has flags {flags:#x}")
            if not flags & _CONTINUE:
                self._current = self._take(self._take(1)[0])
            if self._current != self._block:
                # Records are dropped around it, so each names its block anew.
                self._out += struct.pack(">QB", address | kind, len(self._current))
                self._out += self._current
                self._out += self._take(1 if kind == _ZERO else PAGE)
            elif kind == _ZERO:
                self._zero(self._take(1))
                self._zero_run()
            else:
                self._write(address, self._take(PAGE))
                self._data_run()

    def _blocks(self, total: int) -> None:
        while total > 0:
            name = self._pass(self._pass(1)[0])
            length = struct.unpack(">Q", self._pass(8))[0]
            if name == self._block and length != self._size:
                raise MachineError(f"the guest's memory is {length} bytes, not {self._size}")
            total -= length

    def _zero(self, fill: bytes) -> None:
        if fill != b"\0":
            raise MachineError("a page of QEMU's saved state is filled with a byte but zero")

    def _zero_run(self) -> None:
        """Skip further zero pages of the same block: most of a guest, so not one by one."""
        count = (len(self._buffer) - self._at) // 9
        if not count:
            return  # numpy makes no empty array at the very end of a buffer
        headers = np.ndarray((count,), ">u8", self._buffer, self._at, (9,))
        same = (headers & _FLAGS) == (_ZERO | _CONTINUE)
        run = count if same.all() else int(same.argmin())
        fills = np.ndarray((count,), np.uint8, self._buffer, self._at + 8, (9,))
        if fills[:run].any():
            self._zero(b"?")
        del headers, fills
        self._at += 9 * run

    def _data_run(self) -> None:
        """Write further pages of the same block that are already read."""
        record = 8 + PAGE
        count = (len(self._buffer) - self._at) // record
        if not count:
            return
        headers = np.ndarray((count,), ">u8", self._buffer, self._at, (record,))
        same = (headers & _FLAGS) == (_DATA | _CONTINUE)
        run = count if same.all() else int(same.argmin())
        pages = np.ndarray((count, PAGE), np.uint8, self._buffer, self._at + 8, (record, 1))
        addresses = (headers[:run] & ~np.uint64(_FLAGS)).astype(np.int64)
        breaks = np.flatnonzero(np.diff(addresses) != PAGE) + 1
        for first, last in zip([0, *breaks], [*breaks, run], strict=True):
            if first < last:
                self._write(int(addresses[first]), pages[first:last].tobytes())
        del headers, pages
        self._at += record * run

    def _write(self, address: int, data: bytes) -> None:
        if address + len(data) > self._size:
            raise MachineError(f"a RAM record of QEMU's saved state lies beyond {self._size}")
        view = memoryview(data)
        while view:
            written = os.pwrite(self._memory, view, address)
            view, address = view[written:], address + written

    def _rest(self) -> None:
        """Everything after the RAM is device state."""
        while True:
            self._out += self._buffer[self._at :]
            self._at = len(self._buffer)
            self._flush()
            if not self._fill():
                return

    def _flush(self) -> None:
        view = memoryview(bytes(self._out))
        while view:
            view = view[os.write(self._device, view) :]
        self._out.clear()

    def _pass(self, count: int) -> bytes:
        data = self._take(count)
        self._out += data
        return data

    def _take(self, count: int) -> bytes:
        while len(self._buffer) - self._at < count:
            if not self._fill():
                raise MachineError("QEMU's saved state ended in the middle")
        data = bytes(self._buffer[self._at : self._at + count])
        self._at += count
        return data

    def _fill(self) -> bool:
        """Read more; False at the end."""
        del self._buffer[: self._at]
        self._at = 0
        data = os.read(self._source, _CHUNK)
        self._buffer += data
        return bool(data)
