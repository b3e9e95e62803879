"""Hands on a light desktop: XTEST, and the guest's daemon for text.

Responsible for pointing, raw keys and letting go of everything. How text becomes keys is
`cua_gym.machine.text`'s.
"""

from __future__ import annotations

from collections.abc import Callable

from cua_gym.errors import ActionError
from cua_gym.machine.base import Button
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.keyboard import KEYS, canonical
from cua_gym.machine.keymap import Keymap
from cua_gym.machine.one_driver import OneDriver
from cua_gym.machine.text import type_text
from cua_gym.machine.x11.screen import X11Screen
from cua_gym.machine.x11.xserver import Eye

__all__ = ["X11Input"]

_BUTTONS = {
    Button.LEFT: 1, Button.MIDDLE: 2, Button.RIGHT: 3, Button.WHEEL_UP: 4, Button.WHEEL_DOWN: 5,
    Button.WHEEL_LEFT: 6, Button.WHEEL_RIGHT: 7,
}  # fmt: skip
_X_OFFSET = 8  # X keycode = evdev code + 8


class X11Input:
    """`cua_gym.machine.base.Input` of one session.

    Args:
        ops: the guest's daemon, which knows the layout; waits for it where it is not up yet.
    """

    press_s = 0.0  # the server queues every event, and a program sees each

    def __init__(
        self, eye: Eye, screen: X11Screen, driver: OneDriver, ops: Callable[[], Ops]
    ) -> None:
        self._eye = eye
        self._screen = screen
        self._driver = driver
        self._ops = ops
        self._buttons = Button.NONE
        self._down: list[str] = []
        self._keymap: tuple[tuple[int, int], Keymap] | None = None

    @property
    def position(self) -> tuple[int, int]:
        """See `cua_gym.machine.base.Input.position`."""
        return self._screen.cursor

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        """See `cua_gym.machine.base.Input.pointer`."""
        width, height = self._screen.size
        if not (0 <= x < width and 0 <= y < height):
            raise ActionError(
                f"({x}, {y}) is off the screen; x is 0 to {width - 1}, y is 0 to {height - 1}"
            )
        with self._driver.hold("a pointer event"):
            changed = buttons ^ self._buttons
            self._eye.pointer_to((x, y))
            for button, number in _BUTTONS.items():
                if button & changed:
                    self._eye.button(number, bool(button & buttons))
            self._buttons = buttons
            if changed:
                self._screen.acted()
            self._screen.moved((x, y))
            self._eye.commit()

    def key(self, key: str, down: bool) -> None:
        """See `cua_gym.machine.base.Input.key`."""
        name = canonical(key)
        with self._driver.hold("a key"):
            self._key(name, down)

    def keymap(self) -> Keymap:
        """See `cua_gym.machine.base.Input.keymap`."""
        with self._driver.hold("a look at the layout"):
            # Each chord asks, and asking the daemon costs 3 ms; the server says what has changed.
            stamp = self._eye.layout_stamp()
            if self._keymap is None or self._keymap[0] != stamp:
                self._keymap = stamp, Keymap.of_guest(self._ops())
            return self._keymap[1]

    def text(self, text: str) -> None:
        """See `cua_gym.machine.base.Input.text`. Keys that are down are let go first."""
        with self._driver.hold("typing"):
            self._lift()
            type_text(text, self._key, ops=self._ops())
            self._screen.acted()

    def release_all(self) -> None:
        """See `cua_gym.machine.base.Input.release_all`; also what a program inside holds down."""
        with self._driver.hold("letting go"):
            self._down.clear()
            self._buttons = Button.NONE
            codes, buttons, locked = self._eye.held()
            for number in buttons:
                self._eye.button(number, False)
            for code in codes:
                self._eye.key(code, False)
            if locked:
                self._key("caps_lock", True)
                self._key("caps_lock", False)
            self._eye.commit()

    def _lift(self) -> None:
        for name in reversed(self._down.copy()):
            self._key(name, False)

    def _key(self, name: str, down: bool) -> None:
        if down and name not in self._down:
            self._down.append(name)
        self._eye.key(KEYS[name].evdev + _X_OFFSET, down)
        self._screen.acted()
        self._eye.commit()
        if not down and name in self._down:
            self._down.remove(name)
