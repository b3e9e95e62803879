"""QEMU's control wire: one command, one reply, events in between, descriptors beside.

Responsible for the protocol on one socket and for turning its failures into typed errors. What
the commands mean is known by their callers. Source: QEMU's ``docs/interop/qmp-spec.txt``.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cua_gym.errors import MachineError, MachineLost, MachineTimeout

__all__ = ["Qmp", "QmpRefused"]

EventHandler = Callable[[str, Mapping[str, Any]], None]


class QmpRefused(MachineError):
    """QEMU answered a command with an error; the machine itself may be well."""


class Qmp:
    """A QMP connection. Safe to use from several threads: commands queue behind each other.

    Nothing reads the socket between commands, so events are seen by the next command or by
    `drain`; QEMU rate-limits them, so few can wait.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        on_event: EventHandler = lambda _name, _data: None,
        why_lost: Callable[[], str] = lambda: "",
    ) -> None:
        """Take over ``sock``.

        Args:
            on_event: called with each event's name and data, in the thread that read it.
            why_lost: more about the end of the process, for the message of `MachineLost`.
        """
        self._sock = sock
        self._sock.setblocking(False)
        self._on_event = on_event
        self._why_lost = why_lost
        self._lock = threading.RLock()
        self._buffer = bytearray()
        self._next_id = 0
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)

    def greet(self, timeout_s: float) -> None:
        """Wait for QEMU's greeting and leave the negotiation mode."""
        with self._lock:
            deadline = time.monotonic() + timeout_s
            while "QMP" not in self._message(deadline, "its greeting"):
                pass
        self.execute("qmp_capabilities", timeout_s=timeout_s)

    def execute(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        fds: Sequence[int] = (),
        timeout_s: float = 20.0,
    ) -> Any:
        """Send a command and return its ``return`` value.

        Args:
            fds: descriptors to send along (``getfd``, ``add-fd``); ours stay open.

        Raises:
            QmpRefused: QEMU answered with an error.
            MachineTimeout: no answer in time; a late one is dropped.
            MachineLost: the process ended.
        """
        with self._lock:
            self._next_id += 1
            request: dict[str, Any] = {"execute": command, "id": self._next_id}
            if arguments:
                request["arguments"] = arguments
            deadline = time.monotonic() + timeout_s
            self._send(json.dumps(request).encode() + b"\n", fds, deadline, command)
            while True:
                reply = self._message(deadline, command)
                if reply.get("id") != request["id"]:
                    continue
                if "error" in reply:
                    raise QmpRefused(f"QEMU refused {command}: {reply['error']['desc']}")
                return reply["return"]

    def drain(self) -> None:
        """Take in the events that have arrived, without a command."""
        with self._lock:
            while self._take_line() or self._receive(0.0):
                pass

    def wait_event(self, ready: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Read events until ``ready()``, which ``on_event`` makes true."""
        with self._lock:
            deadline = time.monotonic() + timeout_s
            while not ready():
                if not self._take_line() and not self._receive(deadline - time.monotonic()):
                    raise MachineTimeout(f"QEMU did not report {what} within {timeout_s:g} s")

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._sock.close()

    def _send(self, data: bytes, fds: Sequence[int], deadline: float, command: str) -> None:
        try:
            # A command is small and QEMU reads all the time: it goes out whole, or QEMU hangs.
            sent = socket.send_fds(self._sock, [data], fds) if fds else self._sock.send(data)
            while sent < len(data):
                if not select.select([], [self._sock], [], max(0, deadline - time.monotonic()))[1]:
                    raise MachineTimeout(f"QEMU does not read commands; {command} is not sent")
                sent += self._sock.send(data[sent:])
        except BlockingIOError as error:
            raise MachineTimeout(f"QEMU does not read commands; {command} is not sent") from error
        except OSError as error:
            raise self._lost() from error

    def _message(self, deadline: float, awaited: str) -> dict[str, Any]:
        """The next message that is no event."""
        while True:
            message = self._take_line()
            if message is not None:
                if "event" not in message:
                    return message
            elif not self._receive(deadline - time.monotonic()):
                raise MachineTimeout(f"QEMU did not answer {awaited} in time")

    def _take_line(self) -> dict[str, Any] | None:
        """The first whole message in the buffer; events are handed on as they pass."""
        end = self._buffer.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        message: dict[str, Any] = json.loads(line)
        if "event" in message:
            self._on_event(message["event"], message.get("data", {}))
        return message

    def _receive(self, wait_s: float) -> bool:
        try:
            if not self._poll.poll(max(0.0, wait_s) * 1000):
                return False
            data = self._sock.recv(65536)
        except BlockingIOError:
            return True
        except (OSError, ValueError) as error:  # ValueError: closed meanwhile by close()
            raise self._lost() from error
        if not data:
            raise self._lost()
        self._buffer += data
        return True

    def _lost(self) -> MachineLost:
        why = self._why_lost()
        return MachineLost(f"QEMU is gone{': ' if why else ''}{why}")
