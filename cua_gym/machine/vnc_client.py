"""One VNC connection: vncdotool's protocol on Twisted's reactor, made safe to use from threads.

Responsible for connecting, keeping the newest picture and sending messages. Twisted has one reactor
for each process: it is started in a thread of its own with the first connection, lives as long as
the process, and does not survive a fork. What messages mean for pointer and keys is
`cua_gym.machine.vnc`'s. Source of the protocol: RFC 6143; QEMU's extended key event:
https://github.com/rfbproto/rfbproto/blob/master/rfbproto.rst
"""

from __future__ import annotations

import functools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from twisted.internet import reactor as twisted_reactor
from vncdotool.client import VNCDoToolClient, VNCDoToolFactory
from vncdotool.rfb import Encoding

from cua_gym.errors import MachineError, MachineLost, MachineTimeout
from cua_gym.machine.base import Rgb

__all__ = ["VncConnection"]

# Twisted gives the reactor its methods when it chooses one; no type checker sees them.
reactor: Any = twisted_reactor
_REACTOR_LOCK = threading.Lock()
_MAX_PIXELS = 8192 * 8192
_PAUSE = 0xFF13  # X11/keysymdef.h


class VncConnection:
    """A connected VNC client; `close` ends it. Thread-safe.

    The newest picture is kept by asking for the next change as soon as one has arrived.

    Args:
        sock: connected stream socket; owned from now on.
        password: for VNC authentication, at most 8 characters.
        timeout_s: until the first whole picture is there.

    Raises:
        ValueError: the password is too long.
        MachineError: the server refused, or speaks something else.
        MachineTimeout: no picture in time.
    """

    def __init__(self, sock: socket.socket, password: str | None, timeout_s: float) -> None:
        check_password(password)
        self.changed = threading.Condition()
        self.serial = 0
        self.time = time.monotonic()
        self.lost: str | None = None
        self.size = (0, 0)
        self.name = ""
        self.extended_keys = False
        self._client: _Client | None = None
        self._gone = threading.Event()
        self._factory = _Factory(self, password)
        _start_reactor()
        with sock:
            sock.setblocking(False)
            # adoptStreamConnection duplicates the descriptor
            _in_reactor(
                lambda: reactor.adoptStreamConnection(sock.fileno(), sock.family, self._factory),
                timeout_s,
            )
        try:
            with self.changed:
                if not self.changed.wait_for(lambda: self.serial or self.lost, timeout_s):
                    raise MachineTimeout(f"the VNC server sent no picture in {timeout_s:g} s")
            self.check()
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raise MachineLost with the reason if the connection is gone."""
        if self.lost:
            raise MachineLost(self.lost)

    def picture(self, timeout_s: float = 10.0) -> tuple[Rgb, float, int]:
        """The newest whole picture, the time of its last change and its serial."""
        self.check()
        done = threading.Event()
        result: list[tuple[Rgb, float, int]] = []

        def take(client: _Client) -> None:
            rgb = np.array(client.screen, dtype=np.uint8)
            result.append((rgb, self.time, self.serial))
            done.set()

        self.send(lambda client: client.when_whole(lambda: take(client)))
        end = time.monotonic() + timeout_s
        while not done.wait(0.2):
            self.check()
            if time.monotonic() > end:
                raise MachineTimeout(f"the VNC server left a picture unfinished for {timeout_s} s")
        return result[0]

    @property
    def qemu(self) -> bool:
        """Whether QEMU itself is the server; it has habits of its own."""
        return self.name.startswith("QEMU")

    def wake(self) -> None:
        """Have QEMU look at its screen within 30 ms; others push changes by themselves.

        QEMU looks ever less often at a still screen, down to once in 3 s (measured: a change of
        the guest's own is seen after 0.7 s). Input brings it back, so this lets go of Pause, which
        is not down: QEMU drops that.
        """
        if self.qemu:
            self.send(lambda client: client.keyEvent(_PAUSE, down=False))

    def send(self, message: Callable[[Any], None]) -> None:
        """Have ``message(client)`` called in the reactor's thread, in order.

        Raises:
            MachineLost: the connection is gone.
        """
        self.check()
        reactor.callFromThread(lambda: message(self._client))

    def flush(self, timeout_s: float = 10.0) -> None:
        """Return when everything sent so far has been handed to the socket."""
        self.check()
        _in_reactor(lambda: None, timeout_s)

    def close(self) -> None:
        """Disconnect. Idempotent."""
        if self._client is None or self._gone.is_set():
            return
        client = self._client
        reactor.callFromThread(lambda: client.transport.abortConnection())
        self._gone.wait(5)

    # ---------------------------------------------- called in the reactor's thread

    def connected(self, client: _Client) -> None:
        """The handshake is done: ask for the first whole picture."""
        self.name = bytes(client.name).decode("utf-8", "replace")
        client.framebufferUpdateRequest(incremental=False)

    def committed(self, client: _Client, painted: bool) -> None:
        """An update is complete."""
        size = (int(client.width), int(client.height))
        resized = size != self.size
        if size[0] * size[1] > _MAX_PIXELS:
            self.failed(f"the VNC server claims a screen of {size[0]}x{size[1]} pixels")
            client.transport.abortConnection()
            return
        whole = client.screen is not None and client.screen.size == size
        # After a change of mode everything outside the next rectangles would be old or black.
        client.framebufferUpdateRequest(incremental=whole and not resized)
        self.extended_keys = Encoding.PSEUDO_QEMU_EXTENDED_KEY_EVENT in client.negotiated_encodings
        with self.changed:
            if whole and painted:
                self.size = size
                self.serial += 1
                self.time = time.monotonic()
            self.changed.notify_all()

    def failed(self, reason: str) -> None:
        """The connection is of no use any more."""
        with self.changed:
            self.lost = self.lost or reason
            self.changed.notify_all()


class _Client(VNCDoToolClient):  # type: ignore[misc]
    """vncdotool's client that keeps asking, and says when a picture is whole."""

    def when_whole(self, then: Callable[[], None]) -> None:
        if getattr(self, "_painting", False):
            self._waiting.append(then)
        else:
            then()

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        self._painting = False
        self._waiting: list[Callable[[], None]] = []
        self.factory.connection._client = self
        super().connectionMade()

    def beginUpdate(self) -> None:  # noqa: N802 - vncdotool's name
        self._painting = True

    def commitUpdate(self, rectangles: list[Any] | None = None) -> None:  # noqa: N802 - same
        self._painting = False
        self.factory.connection.committed(self, bool(rectangles))
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    def updateDesktopSize(self, width: int, height: int) -> None:  # noqa: N802 - same
        # vncdotool 1.4 goes on asking for the old size.
        self.width, self.height = width, height
        super().updateDesktopSize(width, height)

    def keyEventExtended(self, keysym: int, code: int, down: bool) -> None:  # noqa: N802 - same
        """QEMU's message 255/0: the key by its place, as an XT scan code."""
        self.transport.write(struct.pack("!BBHII", 255, 0, down, keysym, code))

    def vncProtocolError(self, reason: str) -> None:  # noqa: N802 - same
        self.factory.connection.failed(f"the VNC server does not speak VNC: {reason}")


class _Factory(VNCDoToolFactory):  # type: ignore[misc]
    protocol = _Client

    def __init__(self, connection: VncConnection, password: str | None) -> None:
        super().__init__()
        self.connection = connection
        self.password = password

    def clientConnectionMade(self, protocol: Any) -> None:  # noqa: N802 - Twisted's name
        self.connection.connected(protocol)

    def clientConnectionFailed(self, connector: Any, reason: Any) -> None:  # noqa: N802 - same
        text = getattr(reason, "getErrorMessage", lambda: str(reason))()
        self.connection.failed(f"the VNC server refused: {text}")

    def clientConnectionLost(self, connector: Any, reason: Any) -> None:  # noqa: N802 - same
        self.connection.failed(f"the VNC connection was lost: {reason.getErrorMessage()}")
        self.connection._gone.set()


def check_password(password: str | None) -> None:
    """Refuse a password that the protocol would cut.

    Raises:
        ValueError: it has more than 8 bytes.
    """
    if password is not None and len(password.encode()) > 8:
        raise ValueError(
            f"a VNC password has at most 8 bytes, this one has {len(password.encode())}: the "
            "protocol cuts the rest off without a word (RFC 6143, 7.2.2), so it would protect "
            "nothing; set a shorter one on the server"
        )


class _Reactor:
    """Which process runs Twisted's reactor: it is one for each process by Twisted's design."""

    pid = 0


def _start_reactor() -> None:
    with _REACTOR_LOCK:
        if _Reactor.pid == os.getpid():
            return
        if _Reactor.pid:
            raise MachineError(
                "VNC was used before this process was forked, and Twisted's reactor does not "
                "survive a fork; start workers with the 'spawn' method"
            )
        _Reactor.pid = os.getpid()
        # No signal handlers: Python takes them in its main thread only.
        run = functools.partial(reactor.run, installSignalHandlers=False)
        threading.Thread(target=run, name="vnc-reactor", daemon=True).start()


def _in_reactor(function: Callable[[], Any], timeout_s: float) -> None:
    """Run it in the reactor's thread and wait."""
    done = threading.Event()
    failure: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except OSError as error:
            failure.append(error)
        finally:
            done.set()

    reactor.callFromThread(run)
    if not done.wait(timeout_s):
        raise MachineTimeout(f"the VNC reactor did not answer in {timeout_s:g} s")
    if failure:
        raise MachineLost(f"the VNC connection failed: {failure[0]}") from failure[0]
