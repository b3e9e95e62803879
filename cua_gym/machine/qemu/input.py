"""Hands on a QEMU guest: the absolute tablet and the keyboard, by QMP.

Responsible for pixel-exact pointing, raw keys and letting go of everything.
How text becomes keys is `cua_gym.machine.text`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cua_gym.errors import ActionError, MachineError, MachineLost
from cua_gym.machine.base import Button
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.keyboard import KEYS, canonical
from cua_gym.machine.keymap import Keymap
from cua_gym.machine.one_driver import OneDriver
from cua_gym.machine.qemu.qmp import Qmp
from cua_gym.machine.qemu.screen import LiveScreen
from cua_gym.machine.text import type_text

__all__ = ["QemuInput"]

_AXIS_MAX = 0x7FFF  # QEMU's INPUT_EVENT_ABS_MAX

_BUTTONS = {
    Button.LEFT: "left",
    Button.MIDDLE: "middle",
    Button.RIGHT: "right",
    Button.WHEEL_UP: "wheel-up",
    Button.WHEEL_DOWN: "wheel-down",
}
_X_LOCK_MASK = 2


class QemuInput:
    """`cua_gym.machine.base.Input` of one QEMU process."""

    # A guest samples its input devices: a press and release in the same poll can vanish.
    press_s = 0.02

    def __init__(
        self,
        qmp: Qmp,
        ops: Ops,
        screen: LiveScreen,
        driver: OneDriver,
        blame: Callable[[], None],
    ) -> None:
        """Drive a process.

        Args:
            blame: raises the cause of a cut wire, if it is known.
        """
        self._qmp = qmp
        self._ops = ops
        self._screen = screen
        self._driver = driver
        self._blame = blame
        self._buttons = Button.NONE
        self._down: list[str] = []
        self._caps_touched = False

    @property
    def position(self) -> tuple[int, int]:
        """Pointer position last asked for."""
        return self._screen.cursor

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        """See `cua_gym.machine.base.Input.pointer`. Position and buttons are one event."""
        width, height = self._screen.size
        if not (0 <= x < width and 0 <= y < height):
            raise ActionError(
                f"({x}, {y}) is off the screen; x is 0 to {width - 1}, y is 0 to {height - 1}"
            )
        with self._drive("a pointer event"):
            changed = buttons ^ self._buttons
            events = [_axis("x", x, width), _axis("y", y, height)]
            for button, name in _BUTTONS.items():
                if button & changed:
                    data = {"button": name, "down": bool(button & buttons)}
                    events.append({"type": "btn", "data": data})
            self._screen.cursor = (x, y)
            self._qmp.execute("input-send-event", {"events": events})
            self._buttons = buttons
            # No emulated pointer has a sideways wheel, so the guest's daemon turns it.
            for button, dx in ((Button.WHEEL_LEFT, -1), (Button.WHEEL_RIGHT, 1)):
                if button & changed & buttons:
                    self._ops.call("scroll", dx=dx)

    def key(self, key: str, down: bool) -> None:
        """See `cua_gym.machine.base.Input.key`."""
        name = canonical(key)
        with self._drive("a key"):
            self._key(name, down)

    def keymap(self) -> Keymap:
        """See `cua_gym.machine.base.Input.keymap`."""
        with self._drive("a look at the layout"):
            return Keymap.of_guest(self._ops)

    def text(self, text: str) -> None:
        """See `cua_gym.machine.base.Input.text`. Keys that are down are let go first."""
        with self._drive("typing"):
            self._lift()
            type_text(text, self._key, ops=self._ops)

    def release_all(self) -> None:
        """See `cua_gym.machine.base.Input.release_all`."""
        with self._drive("letting go"):
            self._lift()
            if self._buttons:
                self.pointer(*self._screen.cursor)
            if self._caps_touched:
                try:
                    locked = self._ops.call("keymap", timeout_s=20.0).get("locked")
                except MachineLost:
                    raise
                except MachineError:
                    return  # whoever stopped the X server keeps its lock
                if isinstance(locked, int) and locked & _X_LOCK_MASK:
                    self._key("caps_lock", True)
                    self._key("caps_lock", False)
                self._caps_touched = False

    @contextmanager
    def _drive(self, what: str) -> Iterator[None]:
        with self._driver.hold(what):
            try:
                yield
            except MachineLost:
                self._blame()
                raise

    def _lift(self) -> None:
        for name in reversed(self._down.copy()):
            self._key(name, False)

    def _key(self, name: str, down: bool) -> None:
        if down and name not in self._down:
            self._down.append(name)
        self._caps_touched |= name == "caps_lock"
        code = {"type": "qcode", "data": KEYS[name].qcode}
        event = {"type": "key", "data": {"down": down, "key": code}}
        self._qmp.execute("input-send-event", {"events": [event]})
        if not down and name in self._down:
            self._down.remove(name)


def _axis(axis: str, pixel: int, size: int) -> dict[str, Any]:
    """Exact for sizes up to 32768: the guest computes the pixel back by the same rule."""
    value = round(pixel * _AXIS_MAX / max(1, size - 1))
    return {"type": "abs", "data": {"axis": axis, "value": value}}
