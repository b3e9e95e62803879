"""RAM taken out of a migration stream."""

from __future__ import annotations

import os
import struct
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cua_gym.errors import MachineError
from cua_gym.machine.qemu.ramstream import PAGE, split_stream

PAGES = 64
DEVICES = b"\x04device state, \x00\x01\x02 anything at all"


def stream(pages: list[tuple[str, int, int]], sections: int = 1) -> bytes:
    """A stream as QEMU writes it; pages are (block, number, fill)."""
    out = bytearray(b"QEVM\0\0\0\x03\x07" + struct.pack(">I", 10) + b"pc-q35-7.2")
    out += b"\x01" + struct.pack(">IB", 2, 3) + b"ram" + struct.pack(">II", 0, 4)
    blocks = {"ram0": PAGES * PAGE, "vga.vram": 16 * PAGE}
    out += struct.pack(">Q", sum(blocks.values()) | 0x04)
    for name, size in blocks.items():
        out += bytes([len(name)]) + name.encode() + struct.pack(">Q", size)
    footer = struct.pack(">Q", 0x10) + b"\x7e" + struct.pack(">I", 2)
    out += footer
    last = ""
    for section in range(sections):
        out += (b"\x03" if section == sections - 1 else b"\x02") + struct.pack(">I", 2)
        for block, number, fill in pages[section::sections]:
            flags = (0x08 if fill else 0x02) | (0x20 if block == last else 0)
            out += struct.pack(">Q", number * PAGE | flags)
            if block != last:
                out += bytes([len(block)]) + block.encode()
            out += bytes([fill]) * PAGE if fill else b"\0"
            last = block
        out += footer
    return bytes(out) + DEVICES


def split(data: bytes, folder: Path) -> tuple[bytes, bytes]:
    reader, writer = os.pipe()

    def feed() -> None:
        with os.fdopen(writer, "wb") as pipe:
            try:
                pipe.write(data)
            except BrokenPipeError:
                pass

    thread = threading.Thread(target=feed)
    thread.start()
    with (folder / "memory").open("w+b") as memory, (folder / "device").open("w+b") as device:
        try:
            split_stream(reader, memory.fileno(), device.fileno(), block="ram0", size=PAGES * PAGE)
        finally:
            os.close(reader)
            thread.join()
        return memory.read(), (folder / "device").read_bytes()


PAGE_LISTS = st.lists(
    st.one_of(
        st.tuples(st.just("ram0"), st.integers(0, PAGES - 1), st.integers(0, 255)),
        st.tuples(st.just("vga.vram"), st.integers(0, 15), st.integers(0, 255)),
    ),
    max_size=80,
    unique_by=lambda page: page[:2],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples; `split` begins both files anew."""
    return tmp_path_factory.mktemp("split")


@settings(deadline=None)  # its files may be slow
@given(PAGE_LISTS, st.integers(1, 3))
def test_memory_and_the_rest_are_told_apart(
    folder: Path, pages: list[tuple[str, int, int]], sections: int
) -> None:
    """Any order of pages: RAM lands at its address, all else stays a stream without it."""
    memory, device = split(stream(pages, sections), folder)
    wanted = bytearray(PAGES * PAGE)
    for block, number, fill in pages:
        if block == "ram0":
            wanted[number * PAGE : (number + 1) * PAGE] = bytes([fill]) * PAGE
    assert memory == bytes(wanted)
    assert device.endswith(DEVICES)
    # Split again, the rest has no RAM left and is otherwise the same.
    again, rest = split(device, folder)
    assert not any(again)
    assert rest == device


def test_zero_pages_are_holes(tmp_path: Path) -> None:
    """A guest's untouched memory takes no room on disk."""
    split(stream([("ram0", n, 0) for n in range(PAGES)]), tmp_path)
    assert (tmp_path / "memory").stat().st_blocks == 0


def test_any_chunks_give_the_same_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the pipe happens to break the stream into reads."""
    whole = stream([("ram0", n, n % 3) for n in range(40)] + [("vga.vram", 0, 7)], 2)
    wanted = split(whole, tmp_path)
    for chunk in [*range(1, 40), *range(PAGE - 20, PAGE + 40, 7), 3 * PAGE]:
        monkeypatch.setattr("cua_gym.machine.qemu.ramstream._CHUNK", chunk)
        assert split(whole, tmp_path) == wanted


@settings(deadline=None)
@given(st.data())
def test_a_cut_stream_is_refused(folder: Path, data: st.DataObject) -> None:
    """Wherever it is cut before the device state, that is an error and never a shorter memory."""
    whole = stream([("ram0", n, n % 7) for n in range(20)])
    length = data.draw(st.integers(0, len(whole) - len(DEVICES) - 1))
    with pytest.raises(MachineError):
        split(whole[:length], folder)
