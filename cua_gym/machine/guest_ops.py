"""Requests to the guest's daemon over one stream of the control channel.

Responsible for asking, waiting and validating the envelope; what an operation means is in the table
"ops" of ``docs/architecture.md``, what it does in ``images/shared/guestd/ops.py``. Answers are
hostile input: bounded, and anything odd is an error.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from cua_gym.errors import MachineError, MachineLost, MachineTimeout

__all__ = ["Ops"]

_MAX_LINE = 32 << 20


class Ops:
    """One request at a time; the stream is opened when first needed.

    Args:
        open_stream: opens a stream to a service of the guest.
        lost: why the channel is of no use any more, or None.
    """

    def __init__(
        self, open_stream: Callable[[str], socket.socket], lost: Callable[[], str | None]
    ) -> None:
        self._open_stream = open_stream
        self._lost = lost
        self._lock = threading.Lock()
        self._sock: socket.socket | None = None
        self._number = 0
        self._stale = False

    def call(self, op: str, timeout_s: float = 5.0, **args: Any) -> dict[str, Any]:
        """Ask for one operation and return the fields of its answer.

        Args:
            op: one of the table "ops" in ``docs/architecture.md``.
            timeout_s: for the whole exchange. Not sent to the guest.
            **args: the operation's own arguments, as JSON.

        Raises:
            MachineTimeout: no answer in time.
            MachineLost: the channel is gone.
            MachineError: the guest refused, with its reason, or answered nonsense.
        """
        end = time.monotonic() + timeout_s
        if not self._lock.acquire(timeout=timeout_s):
            raise MachineTimeout(f"{op}: an earlier operation still runs after {timeout_s:g} s")
        try:
            answer = self._exchange(op, args, end, timeout_s)
        finally:
            self._lock.release()
        if not answer.pop("ok"):
            reason = str(answer.get("error"))[:500]
            raise MachineError(f"the guest refused the operation {op!r}: {reason}")
        return answer

    def forget_stream(self) -> None:
        """The stream is being closed by a reset; the next call opens another."""
        self._stale = True

    def close(self) -> None:
        """Close the stream, once a running call (whose stream has ended) has noticed."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        sock, self._sock = self._sock, None
        if sock is not None:
            sock.close()

    def _exchange(
        self, op: str, args: dict[str, Any], end: float, timeout_s: float
    ) -> dict[str, Any]:
        self._number += 1
        body = {**args, "op": op, "id": self._number}
        line = json.dumps(body, ensure_ascii=False).encode() + b"\n"
        try:
            if self._stale:
                self._stale = False
                self._drop()
            if self._sock is None:
                self._sock = self._open_stream("ops")
            self._sock.settimeout(max(0.001, end - time.monotonic()))
            self._sock.sendall(line)
            return self._answer(self._sock, self._number, end)
        except TimeoutError:
            self._drop()
            raise MachineTimeout(f"the guest did not answer {op!r} in {timeout_s:g} s") from None
        except KeyboardInterrupt:
            self._drop()  # its answer may still come, and would be taken for the next one's
            raise
        except (OSError, ValueError) as error:
            self._drop()
            if reason := self._lost():
                raise MachineLost(reason) from error
            raise MachineError(f"the guest's answer to {op!r} is broken: {error}") from error

    def _answer(self, sock: socket.socket, number: int, end: float) -> dict[str, Any]:
        buffer = bytearray()
        while not buffer.endswith(b"\n"):
            if len(buffer) > _MAX_LINE:
                raise ValueError(f"longer than {_MAX_LINE} bytes")
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
            data = sock.recv(256 << 10)
            if not data:
                raise ConnectionResetError("the daemon closed the stream")
            buffer += data
        try:
            answer: Any = json.loads(bytes(buffer))
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if (
            not isinstance(answer, dict)
            or not isinstance(answer.get("ok"), bool)
            or answer.pop("id", None) != number
        ):
            raise ValueError(f"not an answer to request {number}: {answer!r:.120}")
        return answer
