"""The ``vnc`` wire: screen and hands of a machine that is reachable only by VNC.

`connect_vnc` gives a `VncWire` with a `VncScreen` and a `VncInput` behind the same protocols as
every machine's. Keys go out by their place on the keyboard where the server can take that (QEMU,
TigerVNC), else as the keysyms of ``server_layout``, with Shift and AltGr always explicit: QEMU maps
a keysym to a bare key. Text is planned by `cua_gym.machine.text` for ``layout``, the guest's own;
the rest of Unicode needs the guest's daemon, else it is refused by name.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import ActionError, MachineError, MachineLost
from cua_gym.machine.base import Button, Frame, Rgb
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.keyboard import KEYS, canonical
from cua_gym.machine.keymap import Keymap, named_keymap
from cua_gym.machine.text import Pace, type_text
from cua_gym.machine.vnc_client import VncConnection, check_password
from cua_gym.machine.vnc_keys import keysym_number, scan_code

__all__ = ["VncInput", "VncScreen", "VncWire", "connect_vnc"]

_CONNECT_S = 10.0
_WAKE_EVERY_S = 0.1
_LOCK_MASK = 2  # X's LockMask
_UNICODE_KEYSYM = 0x01000000
_SIDEWAYS = Button.WHEEL_LEFT | Button.WHEEL_RIGHT


class VncWire:
    """A connection that is made anew when it is lost, and what stands on it.

    Args:
        dial: makes a connected stream socket.
        password: for VNC authentication, at most 8 bytes.
        layout: the guest's keyboard layout, for planning text.
        server_layout: what the server takes keysyms for; QEMU's is ``us`` without ``-k``.
        ops: the guest's daemon, if it can be reached some other way.
        clear_buttons: at first, press and release the left button in the last pixel. QEMU keeps a
            button down whose client died, and only a press and a release end that.
        pace: of typing.

    Raises:
        ValueError: the password is too long.
        MachineError: the server cannot be reached or refuses.
    """

    def __init__(
        self,
        dial: Callable[[], socket.socket],
        *,
        password: str | None = None,
        layout: str = "us",
        server_layout: str = "us",
        ops: Ops | None = None,
        clear_buttons: bool = True,
        pace: Pace | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_password(password)
        self._dial = dial
        self._password = password
        self._lock = threading.RLock()
        self._closed = False
        self._base = 0
        self._connection = self._connect()
        self.screen = VncScreen(self)
        self.input = VncInput(
            self, named_keymap(layout), named_keymap(server_layout), ops, pace, clock
        )
        if clear_buttons:
            x, y = self._connection.size[0] - 1, self._connection.size[1] - 1
            self._connection.send(lambda client: client.pointerEvent(x, y, Button.LEFT))
            self._connection.send(lambda client: client.pointerEvent(x, y, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def live(self) -> VncConnection:
        """The connection, a new one if the last was lost.

        Raises:
            MachineLost: closed, or it cannot be made again.
        """
        with self._lock:
            if self._closed:
                raise MachineLost("this VNC wire is closed")
            if self._connection.lost:
                reason = self._connection.lost
                self._connection.close()
                self._base += self._connection.serial
                try:
                    self._connection = self._connect()
                except (OSError, MachineError) as error:
                    raise MachineLost(f"{reason}; connecting again failed: {error}") from error
                self.input.press_again()
            return self._connection

    @property
    def base(self) -> int:
        """What earlier connections add to the serial."""
        return self._base

    def close(self) -> None:
        """Disconnect. Idempotent."""
        with self._lock:
            self._closed = True
            self._connection.close()

    def _connect(self) -> VncConnection:
        try:
            sock = self._dial()
        except OSError as error:
            raise MachineLost(f"no VNC server answers: {error}") from error
        return VncConnection(sock, self._password, _CONNECT_S)


class VncScreen:
    """`cua_gym.machine.base.Screen` over VNC; the server draws the pointer."""

    def __init__(self, wire: VncWire) -> None:
        self._wire = wire
        self.cursor = (0, 0)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self._wire.live.size

    @property
    def serial(self) -> int:
        """Serial of the newest change."""
        connection = self._wire.live
        return self._wire.base + connection.serial

    def grab(self, out: Rgb | None = None) -> Frame:
        """The newest picture that the server has sent, always in memory of its own.

        QEMU sends late after stillness, unless somebody is in `wait_change` or has just acted.
        """
        connection = self._wire.live
        rgb, changed, serial = connection.picture()
        return Frame(rgb, self.cursor, changed, self._wire.base + serial)

    def wait_change(self, after: int, timeout_s: float) -> bool:
        """See `cua_gym.machine.base.Screen.wait_change`."""
        connection = self._wire.live
        base = self._wire.base
        end = time.monotonic() + timeout_s
        while True:
            connection.check()
            if base + connection.serial > after:
                return True
            left = end - time.monotonic()
            if left <= 0:
                return False
            connection.wake()
            with connection.changed:
                connection.changed.wait_for(
                    lambda: base + connection.serial > after or connection.lost,
                    min(left, _WAKE_EVERY_S),
                )


class VncInput:
    """`cua_gym.machine.base.Input` over VNC."""

    press_s = 0.02  # as for the guest of any hypervisor: it samples its input devices

    def __init__(
        self,
        wire: VncWire,
        keymap: Keymap,
        server_keymap: Keymap,
        ops: Ops | None,
        pace: Pace | None,
        clock: Clock | None,
    ) -> None:
        self._wire = wire
        self._keymap = keymap
        self._server_keymap = server_keymap
        self._ops = ops
        self._pace = pace or Pace()
        self._clock = clock or SystemClock()
        self._down: list[str] = []
        self._buttons = Button.NONE
        self._caps_touched = False

    @property
    def position(self) -> tuple[int, int]:
        """Pointer position last asked for."""
        return self._wire.screen.cursor

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        """See `cua_gym.machine.base.Input.pointer`."""
        connection = self._wire.live
        width, height = connection.size
        if not (0 <= x < width and 0 <= y < height):
            raise ActionError(
                f"({x}, {y}) is off the screen; x is 0 to {width - 1}, y is 0 to {height - 1}"
            )
        qemu = connection.qemu
        if qemu and buttons & _SIDEWAYS and self._ops is None:
            raise ActionError("QEMU's VNC server has no sideways wheel; use Shift and Scroll")
        # QEMU hands x to its tablet as floor(x * 32767 / width), from which the guest gets back
        # the pixel before, for every x but 0. One more makes all of them exact.
        more = 1 if qemu else 0
        mask = int(buttons & ~_SIDEWAYS if qemu else buttons)
        connection.send(lambda client: client.pointerEvent(x + more, y + more, mask))
        connection.flush()
        self._wire.screen.cursor = (x, y)
        pressed = buttons & ~self._buttons
        self._buttons = buttons
        if qemu and self._ops is not None:
            for button, dx in ((Button.WHEEL_LEFT, -1), (Button.WHEEL_RIGHT, 1)):
                if button & pressed:
                    self._ops.call("scroll", dx=dx)

    def key(self, key: str, down: bool) -> None:
        """See `cua_gym.machine.base.Input.key`."""
        self._key(canonical(key), down)

    def keymap(self) -> Keymap:
        """See `cua_gym.machine.base.Input.keymap`. Without a daemon it is the stated layout's."""
        return self._keymap if self._ops is None else Keymap.of_guest(self._ops)

    def text(self, text: str) -> None:
        """See `cua_gym.machine.base.Input.text`. Keys that are down are let go first."""
        self._lift()
        type_text(
            text, self._key, ops=self._ops, keymap=self._keymap, pace=self._pace, clock=self._clock
        )

    def release_all(self) -> None:
        """See `cua_gym.machine.base.Input.release_all`.

        Without the daemon Caps Lock cannot be seen over VNC. QEMU turns it off by itself with the
        next letter, if it was turned on over this wire.
        """
        self._lift()
        if self._buttons:
            self.pointer(*self.position)
        if self._caps_touched and self._ops is not None:
            if Keymap.of_guest(self._ops).locked & _LOCK_MASK:
                self._key("caps_lock", True)
                self._key("caps_lock", False)
            self._caps_touched = False

    def press_again(self) -> None:
        """Tell a new connection which buttons are down: QEMU lifts a lost client's keys alone."""
        self._down.clear()
        if held := self._buttons & (Button.LEFT | Button.MIDDLE | Button.RIGHT):
            self.pointer(*self.position, held)

    def _lift(self) -> None:
        for name in reversed(self._down.copy()):
            self._key(name, False)

    def _key(self, name: str, down: bool) -> None:
        connection = self._wire.live
        if not down and name in self._down:
            self._down.remove(name)
        self._caps_touched |= name == "caps_lock"
        keysym = keysym_number(self._server_keymap, name, self._down)
        if connection.qemu and self._ops is not None and keysym < 0x80:
            # QEMU turns Caps Lock off at a letter that it disagrees with, but text is planned for
            # the locks that the guest has. In this form it takes the letter as it is.
            keysym |= _UNICODE_KEYSYM
        if down and name not in self._down:
            self._down.append(name)
        code = scan_code(KEYS[name].evdev)
        if connection.extended_keys:
            connection.send(lambda client: client.keyEventExtended(keysym, code, down))
        else:
            connection.send(lambda client: client.keyEvent(keysym, down))
        connection.flush()


def connect_vnc(
    address: str | Path | socket.socket,
    *,
    password: str | None = None,
    layout: str = "us",
    server_layout: str = "us",
    ops: Ops | None = None,
    clear_buttons: bool = True,
    pace: Pace | None = None,
    retry_s: float = 0.0,
) -> VncWire:
    """Connect to a VNC server.

    Args:
        address: ``"host:port"`` (port 5900 without one), the path of a unix socket, or a connected
            socket, which cannot be connected again when it is lost.
        retry_s: keep trying this long while nothing listens yet.

    Others: see `VncWire`.
    """
    used = False

    def dial() -> socket.socket:
        nonlocal used
        if isinstance(address, socket.socket):
            if used:
                raise OSError("it was handed over as a connected socket")
            used = True
            return address
        end = time.monotonic() + retry_s
        while True:
            try:
                return _dial(address)
            except (ConnectionRefusedError, FileNotFoundError):
                if time.monotonic() >= end:
                    raise
            time.sleep(0.05)

    return VncWire(
        dial,
        password=password,
        layout=layout,
        server_layout=server_layout,
        ops=ops,
        clear_buttons=clear_buttons,
        pace=pace,
    )


def _dial(address: str | Path) -> socket.socket:
    if isinstance(address, Path) or "/" in address:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(_CONNECT_S)
            sock.connect(str(address))
        except OSError:
            sock.close()
            raise
        return sock
    host, _, port = address.rpartition(":") if ":" in address else (address, "", "5900")
    if not port.isdigit():
        raise ValueError(f"a VNC address is host:port or a path, not {address!r}")
    return socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S)
