"""QEMU's guest agent: is the guest there, run one program, set the clock.

Responsible for the protocol over one connected socket. Leaves everything larger to the shell: the
agent has no desktop account, no streams and at most 16 MiB of output.

Source: QEMU docs, interop/qemu-ga-ref (``guest-sync-delimited``, ``guest-exec``,
``guest-set-time``).
"""

from __future__ import annotations

import base64
import json
import secrets
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

from cua_gym.errors import MachineError, MachineLost, MachineTimeout
from cua_gym.machine.base import Completed
from cua_gym.machine.commands import TOKEN_NAME, argv_of, kill_argv, new_token

__all__ = ["GuestAgent"]

_LINE_LIMIT = 64 << 20  # two outputs of 16 MiB, in base64, and room
_POLL_S = (0.005, 0.25)  # first and longest pause between two looks at a running program


class GuestAgent:
    """One client of one agent; calls take turns.

    Every call begins with a sync, so what an earlier, timed-out call left on the wire, or a
    restored guest half-way through a request, cannot be taken for this call's answer.

    Args:
        sock: connected to the agent's channel; owned from here on.
        timeout_s: for each answer.
    """

    def __init__(self, sock: socket.socket, *, timeout_s: float = 10.0) -> None:
        self._sock = sock
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._buffer = bytearray()

    def ping(self) -> None:
        """Return if the agent answers.

        Raises:
            MachineTimeout: it did not in time.
            MachineLost: its channel is closed.
        """
        self._call("guest-ping")

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 60.0
    ) -> Completed:
        """Run a program as the agent's account (root).

        When the time runs out its process tree is killed; its output is then lost, as the agent
        gives it only at the end and a job that inherited it delays that.

        Raises:
            MachineError: the agent cannot start it, or the output passed its 16 MiB.
        """
        deadline = time.monotonic() + timeout_s
        token = new_token()
        # a session of its own: the agent's would let `kill 0` reach the agent
        words = ["env", f"{TOKEN_NAME}={token}", "setsid", "-w", "--", *argv_of(argv)]
        pid = self._start(words, stdin)
        done = self._wait(pid, deadline)
        timed_out = done is None
        if done is None:
            killer = self._start(kill_argv(token), b"")
            self._wait(killer, time.monotonic() + self._timeout_s)
            done = self._wait(pid, time.monotonic() + self._timeout_s) or {"signal": 9}
        if done.get("out-truncated") or done.get("err-truncated"):
            raise MachineError(
                f"{argv[0]!r} printed more than the guest agent keeps; use the shell"
            )
        code = int(done["exitcode"]) if "exitcode" in done else 128 + int(done.get("signal", 9))
        out, err = (base64.b64decode(done.get(name, "")) for name in ("out-data", "err-data"))
        return Completed(code, out, err, timed_out)

    def set_time(self, time_ns: int) -> None:
        """Set the guest's clock to ``time_ns`` nanoseconds since the epoch."""
        self._call("guest-set-time", time=time_ns)

    def close(self) -> None:
        """Close the channel's host end. Idempotent."""
        self._sock.close()

    def _start(self, argv: Sequence[str], stdin: bytes) -> int:
        arguments: dict[str, Any] = {"path": argv[0], "arg": list(argv[1:]), "capture-output": True}
        # without input-data the program would share the agent's own standard input
        arguments["input-data"] = base64.b64encode(stdin).decode()
        return int(self._call("guest-exec", **arguments)["pid"])

    def _wait(self, pid: int, deadline: float) -> dict[str, Any] | None:
        """The exit record, or None at the deadline. The agent tells no end: it must be asked."""
        pause, longest = _POLL_S
        while True:
            status: dict[str, Any] = self._call("guest-exec-status", pid=pid)
            if status["exited"]:
                return status
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            time.sleep(min(pause, left))
            pause = min(2 * pause, longest)

    def _call(self, command: str, **arguments: Any) -> Any:
        with self._lock:
            deadline = time.monotonic() + self._timeout_s
            try:
                self._sync(deadline)
                self._send({"execute": command, "arguments": arguments}, deadline)
                reply = self._line(deadline)
            except TimeoutError as error:
                raise MachineTimeout(
                    f"the guest agent did not answer {command} in {self._timeout_s:g} s"
                ) from error
            except OSError as error:
                raise MachineLost(f"the guest agent's channel broke: {error}") from error
        if "error" in reply:
            raise MachineError(f"the guest agent refused {command}: {reply['error'].get('desc')}")
        return reply["return"]

    def _sync(self, deadline: float) -> None:
        """Throw away everything before our own number comes back behind a 0xFF byte."""
        number = secrets.randbits(31)
        request = {"execute": "guest-sync-delimited", "arguments": {"id": number}}
        # 0xFF resets the agent's parser, should it hold half of an older request
        self._send(request, deadline, b"\xff")
        while True:
            while (at := self._buffer.find(b"\xff")) < 0:
                self._buffer.clear()
                self._receive(deadline)
            del self._buffer[: at + 1]
            try:
                if self._line(deadline).get("return") == number:
                    return
            except MachineError:
                pass  # the tail of something older; our own answer is still to come

    def _send(self, request: dict[str, Any], deadline: float, before: bytes = b"") -> None:
        self._arm(deadline)
        self._sock.sendall(before + json.dumps(request).encode() + b"\n")

    def _line(self, deadline: float) -> dict[str, Any]:
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            if start > _LINE_LIMIT:
                raise MachineError(f"the guest agent sent more than {_LINE_LIMIT} bytes in a line")
            self._receive(deadline)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise MachineError(f"the guest agent sent no JSON: {line[:200]!r}") from error
        if not isinstance(reply, dict):
            raise MachineError(f"the guest agent sent no object: {line[:200]!r}")
        return reply

    def _receive(self, deadline: float) -> None:
        self._arm(deadline)
        if not (data := self._sock.recv(1 << 16)):
            raise MachineLost("the guest agent's channel is closed")
        self._buffer += data

    def _arm(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(left)
