"""A running program: its output as it comes, its input, its end, over any wire.

Responsible for the threads that serve one program, for the bound on what is kept of its output,
and for its end (`Command.mark`). Leaves the wire (an SSH channel, local pipes) to a `Wire`.

A terminal's output ends like that of pipes, by the mark: it holds no line end, so no terminal
mode that programs use changes it, and nobody types it, so nothing echoes it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from cua_gym.errors import ActionError, MachineError
from cua_gym.machine.base import Completed, Stream
from cua_gym.machine.commands import ABSENT, Command
from cua_gym.turns import Stop

__all__ = ["KEEP_BYTES", "Running", "Wire", "check_size"]

KEEP_BYTES = 64 << 20
"""Output kept per stream; what follows is read, counted in ``dropped`` and let go.

As much input may wait for a program that does not read it.
"""

_LOOKS_S = (0.1, 0.5, 2.0, 2.0)
"""Pauses after each look at what is to be killed: it may still be launching."""


class Wire(Protocol):
    """The streams of one running command, and how to end it. `stop` ends every wait in it."""

    def read(self, stream: Stream) -> bytes:
        """Wait for the next bytes; ``b""`` when the stream or the wire has ended."""

    def write(self, data: bytes) -> None:
        """Give all of it to the program; OSError when that cannot be."""

    def end_input(self) -> None:
        """Close standard input; OSError when that cannot be."""

    def resize(self, columns: int, rows: int) -> None:
        """Tell the terminal its size; OSError when that cannot be."""

    def status(self) -> int:
        """Exit status when the streams ended without a mark, or raises MachineError."""

    def kill(self) -> None:
        """End the command's tree."""

    def stop(self) -> None:
        """Let whoever waits in `read` and `write` go. Idempotent."""

    def free(self) -> None:
        """Give everything back; called once, by the last user."""


class Running:
    """`cua_gym.machine.base.Process` over a wire, which it owns.

    Args:
        command: what was started.
        wire: its streams.
        terminal: whether they are a terminal: no standard error, a size, no end of input.
    """

    def __init__(
        self, command: Command, wire: Wire, *, terminal: bool, keep_bytes: int | None = None
    ) -> None:
        self._command = command
        self._wire = wire
        self._terminal = terminal
        self._changed = threading.Condition()
        keep = KEEP_BYTES if keep_bytes is None else keep_bytes
        self._kept: dict[Stream, _Kept] = {
            s: _Kept(command.mark, keep) for s in ("stdout", "stderr")
        }
        self._exit: int | None = None
        self._fault: MachineError | None = None
        self._abandoned = False
        self._todo: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._waiting = 0
        self._input_open = True
        self._server = threading.Thread(target=self._serve, name="process", daemon=True)
        self._server.start()

    # what serves it

    def _serve(self) -> None:
        """Read until the end; then all is given back, whether or not somebody closes it."""
        feeder = threading.Thread(target=self._feed, name="process-input", daemon=True)
        feeder.start()
        if not self._terminal:
            other = threading.Thread(
                target=self._drain, args=("stderr",), name="process-stderr", daemon=True
            )
            other.start()
        self._drain("stdout")
        if not self._terminal:
            other.join()
        code: int | None = None
        fault: MachineError | None = None
        try:
            code = self._code()
        except MachineError as error:
            fault = error
        self._wire.stop()
        self._todo.put(None)
        feeder.join()
        self._wire.free()
        with self._changed:
            self._exit, self._fault = code, fault
            self._changed.notify_all()

    def _drain(self, stream: Stream) -> None:
        kept = self._kept[stream]
        while kept.code is None and (chunk := self._wire.read(stream)):
            with self._changed:
                kept.feed(chunk)
                self._changed.notify_all()
        with self._changed:
            kept.finish()

    def _feed(self) -> None:
        try:
            while (do := self._todo.get()) is not None:
                do()
        except OSError:
            self._input_open = False  # closed by the program; a broken wire shows in the outputs

    def _code(self) -> int:
        codes = [kept.code for kept in self._kept.values() if kept.code is not None]
        if ABSENT in codes:
            raise MachineError(
                f"nothing was run: {self._command.guard!r} failed in the guest; "
                "the image lacks that program or account"
            )
        if codes:
            return codes[0]
        return 137 if self._abandoned else self._wire.status()

    @property
    def _ended(self) -> bool:
        return self._exit is not None or self._fault is not None

    # Process

    @property
    def exit(self) -> int | None:
        """See `cua_gym.machine.base.Process.exit`."""
        if self._fault is not None:
            raise self._fault
        return self._exit

    def size(self, stream: Stream) -> int:
        """See `cua_gym.machine.base.Process.size`."""
        return len(self._kept[stream].data)

    @property
    def dropped(self) -> int:
        """See `cua_gym.machine.base.Process.dropped`."""
        return sum(kept.dropped for kept in self._kept.values())

    def output(self, stream: Stream, offset: int = 0, limit: int | None = None) -> bytes:
        """See `cua_gym.machine.base.Process.output`."""
        if offset < 0 or (limit is not None and limit < 0):
            raise ActionError(f"offset {offset} and limit {limit} count bytes from the beginning")
        with self._changed:
            data = self._kept[stream].data
            part = bytes(data[offset : None if limit is None else offset + limit])
            if self._fault is not None and offset >= len(data):
                raise self._fault
            return part

    def wait_output(self, stream: Stream, after: int, timeout_s: float) -> bool:
        """See `cua_gym.machine.base.Process.wait_output`."""
        with self._changed:
            data = self._kept[stream].data
            self._changed.wait_for(
                lambda: len(data) > after or self._ended, min(timeout_s, threading.TIMEOUT_MAX)
            )
            if len(data) > after:
                return True
            if self._fault is not None:
                raise self._fault
            return False

    def wait(self, timeout_s: float) -> bool:
        """See `cua_gym.machine.base.Process.wait`."""
        self._server.join(min(max(0.0, timeout_s), threading.TIMEOUT_MAX))
        if self._server.is_alive():
            return False
        if self._fault is not None:
            raise self._fault
        return True

    def write(self, data: bytes) -> None:
        """See `cua_gym.machine.base.Process.write`."""
        self._check("written to")
        if not self._input_open:
            raise ActionError("the program's standard input is closed")
        if self._waiting > KEEP_BYTES:
            raise ActionError(
                f"{self._waiting} bytes wait already; the program does not read its input"
            )
        self._put(data)

    def close_input(self) -> None:
        """See `cua_gym.machine.base.Process.close_input`."""
        if self._terminal:
            raise ActionError(r"a terminal's input has no end; write the key Ctrl-D, b'\x04'")
        if self._input_open:
            self._end_input()

    def resize(self, columns: int, rows: int) -> None:
        """See `cua_gym.machine.base.Process.resize`."""
        check_size((columns, rows))
        self._check("resized")
        if not self._terminal:
            raise ActionError("the program has no terminal to resize")
        self._todo.put(lambda: self._wire.resize(columns, rows))

    def _check(self, done: str) -> None:
        code = self.exit
        if code is not None:
            raise ActionError(f"the program ended with status {code}; it cannot be {done}")

    def _put(self, data: bytes) -> None:
        def do() -> None:
            self._wire.write(data)
            with self._changed:
                self._waiting -= len(data)

        with self._changed:
            self._waiting += len(data)
        self._todo.put(do)

    def _end_input(self) -> None:
        self._input_open = False
        self._todo.put(self._wire.end_input)

    def kill(self) -> None:
        """See `cua_gym.machine.base.Process.kill`."""
        for pause_s in _LOOKS_S:
            if not self._server.is_alive():
                return
            try:
                self._wire.kill()
            finally:
                self._server.join(pause_s)  # the wrapper outlives the tree and writes its mark
        self._abandon()

    def close(self) -> None:
        """See `cua_gym.machine.base.Process.close`."""
        try:
            self.kill()
        finally:
            self._abandon()

    def _abandon(self) -> None:
        if self._server.is_alive():
            self._abandoned = True
            self._wire.stop()
            self._server.join()

    def complete(self, stdin: bytes, timeout_s: float, stop: Stop | None = None) -> Completed:
        """Feed it, wait, and kill it when its time is up: `cua_gym.machine.base.Shell.run`.

        Raises:
            MachineError: the wire broke, or the guard failed and nothing was run.
        """
        if stop is not None:
            stop.then(self._kill_quietly)
        try:
            self._put(stdin)  # a command need not read it, and may have ended already
            self._end_input()
            timed_out = not self.wait(timeout_s)
            if timed_out:
                self.kill()
            code = self.exit
            assert code is not None
        finally:
            self.close()
        out, err = self.output("stdout"), self.output("stderr")
        return Completed(code, out, err, timed_out, self.dropped)

    def _kill_quietly(self) -> None:
        try:
            self.kill()
        except MachineError:
            pass  # who waits for its end meets the same fault


def check_size(terminal: tuple[int, int]) -> None:
    """See that a terminal can have this size.

    Raises:
        ActionError: it cannot.
    """
    if not all(1 <= length <= 0xFFFF for length in terminal):
        raise ActionError(f"a terminal has 1 to 65535 columns and rows, not {terminal}")


class _Kept:
    """One output stream: everything before the mark, up to a bound."""

    def __init__(self, mark: bytes, keep_bytes: int) -> None:
        self.data = bytearray()
        self._keep_bytes = keep_bytes
        self.dropped = 0
        self.code: int | None = None
        self._mark = mark
        self._end = re.compile(re.escape(mark) + rb"(\d{3})")
        self._held = b""

    def feed(self, chunk: bytes) -> None:
        held = self._held + chunk
        if end := self._end.search(held):
            self.code = int(end[1])
            at, self._held = end.start(), b""
        else:
            # A mark may be cut anywhere; only what may be its beginning waits for the rest, since
            # a prompt must be seen while nothing follows it.
            size = len(self._mark)
            first = max(0, len(held) - size - 2)
            at = next(
                i for i in range(first, len(held) + 1) if self._mark.startswith(held[i:][:size])
            )
            self._held = held[at:]
        self._keep(held[:at])

    def finish(self) -> None:
        self._keep(self._held)
        self._held = b""

    def _keep(self, part: bytes) -> None:
        room = self._keep_bytes - len(self.data)
        self.data += part[:room]
        self.dropped += max(0, len(part) - room)
