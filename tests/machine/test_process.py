"""The end of a program over wires that no honest computer has; the rest is the contract's."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import ActionError, MachineError, MachineLost
from cua_gym.machine import process
from cua_gym.machine.base import Stream
from cua_gym.machine.commands import Command
from cua_gym.machine.process import Running

TOKEN = "0123456789abcdef" * 2
MARK = b"cua-gym-end:" + TOKEN.encode()


class ScriptedWire:
    """A wire whose program prints what it was given, then nothing until it is stopped."""

    def __init__(self, *chunks: bytes, status: int | MachineError = 0) -> None:
        self.chunks = list(chunks)
        self.told = status
        self.ends = False
        self.stopped = threading.Event()
        self.kills = 0
        self.frees = 0

    def read(self, stream: Stream) -> bytes:
        if stream == "stdout" and self.chunks:
            return self.chunks.pop(0)
        if not self.ends:
            self.stopped.wait()
        return b""

    def write(self, data: bytes) -> None:
        self.stopped.wait()
        raise BrokenPipeError

    def end_input(self) -> None:
        """Nothing to close."""

    def resize(self, columns: int, rows: int) -> None:
        """Nothing to resize."""

    def status(self) -> int:
        if isinstance(self.told, MachineError):
            raise self.told
        return self.told

    def kill(self) -> None:
        self.kills += 1

    def stop(self) -> None:
        self.stopped.set()

    def free(self) -> None:
        self.frees += 1


def _run(wire: ScriptedWire, *, terminal: bool = True) -> Running:
    return Running(Command(TOKEN, ["x"]), wire, terminal=terminal)


@given(
    st.lists(
        st.sampled_from([b"c", b"cua-gym", MARK[:-1], MARK + b"07", MARK + b"x", b"\r\n\xff"])
    ),
    st.integers(0, 255),
    st.data(),
)
def test_mark_is_found_wherever_it_is_cut(
    parts: list[bytes], code: int, data: st.DataObject
) -> None:
    """Output before the mark is exact, whatever it looks like, and however it arrives."""
    text = b"".join(parts)
    sent = text + b"\n" + MARK + b"%03d" % code + b"more"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=8)))
    pieces = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True) if a < b]
    running = _run(ScriptedWire(*pieces))
    assert running.wait(60)
    assert (running.output("stdout"), running.exit) == (text + b"\n", code)


def test_what_looks_like_a_mark_is_seen_at_the_end() -> None:
    """Without a mark the output is whole and the wire tells the status."""
    wire = ScriptedWire(b"x" + MARK[:20], status=3)
    wire.ends = True
    running = _run(wire)
    assert running.wait(60)
    assert (running.output("stdout"), running.exit, wire.frees) == (b"x" + MARK[:20], 3, 1)


def test_what_cannot_be_killed_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing returns, and so does every wait, when the program does not even end by that."""
    monkeypatch.setattr(process, "_LOOKS_S", (0.0, 0.0))
    wire = ScriptedWire(b"x")
    running = _run(wire, terminal=False)
    running.write(b"never read")
    running.kill()
    running.close()
    assert running.wait(0)
    assert (running.exit, running.output("stdout")) == (137, b"x")
    assert (wire.kills, wire.frees) == (2, 1)


def test_input_that_nobody_reads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not read its input fills no memory."""
    monkeypatch.setattr(process, "KEEP_BYTES", 1000)
    monkeypatch.setattr(process, "_LOOKS_S", ())
    running = _run(ScriptedWire())
    running.write(bytes(1001))
    with pytest.raises(ActionError, match="1001 bytes wait"):
        running.write(b"x")
    running.close()


def test_lost_program() -> None:
    """A lost machine is never taken for an end: what came is kept, what lies beyond is an error."""
    wire = ScriptedWire(b"came", status=MachineLost("gone"))
    wire.ends = True
    running = _run(wire)
    with pytest.raises(MachineLost, match="gone"):
        running.wait(60)
    assert running.output("stdout") == b"came"
    for call in (
        lambda: running.exit,
        lambda: running.output("stdout", 4),
        lambda: running.wait_output("stdout", 4, 60),
        lambda: running.write(b"x"),
        lambda: running.resize(80, 24),
    ):
        with pytest.raises(MachineLost, match="gone"):
            call()
    assert running.wait_output("stdout", 3, 60)
    running.kill()
    running.close()
    assert (wire.kills, wire.frees) == (0, 1)


def test_nothing_was_run() -> None:
    """A guest without the launcher is a fault, on a terminal too."""
    with pytest.raises(MachineError, match="nothing was run"):
        _run(ScriptedWire(MARK + b"999")).wait(60)
