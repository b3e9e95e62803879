"""From one typed action to the pointer and key events of a machine.

`Hands` remembers what `MouseDown` and `KeyDown` left down, and lets go of all of it at the end.
Every other action leaves nothing down, whatever goes wrong in the middle.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from cua_gym import actions as a
from cua_gym.clock import Clock
from cua_gym.errors import ActionError
from cua_gym.machine.base import Button, Input, Screen
from cua_gym.machine.keyboard import canonical, parse_combo
from cua_gym.machine.keymap import Stroke
from cua_gym.machine.settle import Settle, settle

__all__ = ["Hands"]

_BUTTONS = {"left": Button.LEFT, "middle": Button.MIDDLE, "right": Button.RIGHT}

# A window manager that looks at each press before the window gets it lost one notch in nine that
# came without a pause (xfwm4, over a window without the keyboard).
NOTCH_S = 0.01

# Drag thresholds (8 px in GTK) want several motions with the button held.
BETWEEN_CLICKS_S = 0.05
DRAG_STEP_PX = 16
DRAG_STEP_S = 0.012
DRAG_HOLD_S = 0.15

# A drop is taken only from a program that has said yes. It is asked by one motion, fetches the
# data, answers a later motion, and hears of none that came while it was busy. So the pointer
# stays over the end for some motions more, each made when the screen shows the one before (the
# pointer is in it) and rests. Measured with Thunar on a busy host: a wait of 0.15 s and no motion
# dropped a file in none of 14 drags by one row.
DROP_MOTIONS = 6
DROP_REST = Settle(first_s=0.25, quiet_s=0.12, max_s=1.0)


class Hands:
    """Performs pointer and keyboard actions on one `Input`."""

    def __init__(self, machine_input: Input, screen: Screen, clock: Clock) -> None:
        self._input = machine_input
        self._screen = screen
        self._clock = clock
        self._buttons = Button.NONE
        self._keys: dict[str, str] = {}  # names that KeyDown holds, and the keys pressed for them

    def perform(self, action: a.Action) -> None:
        """Do one action of the pointer or the keyboard.

        Raises:
            ActionError: impossible here; nothing was done.
            MachineError: the machine failed.
        """
        match action:
            case a.Move(x, y):
                self._check([(x, y)])
                self._point(x, y)
            case a.Click():
                self._click(action)
            case a.MouseDown(button):
                self._set_buttons(self._buttons | _BUTTONS[button])
            case a.MouseUp(button):
                self._set_buttons(self._buttons & ~_BUTTONS[button])
            case a.Drag(path, button):
                self._drag(path, _BUTTONS[button])
            case a.Scroll(x, y, dx, dy):
                self._scroll(x, y, dx, dy)
            case a.Type(text):
                # Held modifiers would turn text into shortcuts; they are let go for good.
                self._release_keys()
                self._input.text(text)
            case a.Key(combo):
                self._chord(parse_combo(combo))
            case a.KeyDown(key):
                name = canonical(key)
                if name not in self._keys:
                    place = self._strokes((name,))[0].key
                    self._input.key(place, True)
                    self._keys[name] = place
            case a.KeyUp(key):
                name = canonical(key)
                # The layout may have changed since.
                place = self._keys.get(name) or self._strokes((name,))[0].key
                self._input.key(place, False)
                self._keys.pop(name, None)
            case _:
                raise ActionError(f"{type(action).__name__} is not for the pointer or keyboard")

    def release(self) -> None:
        """Let go of every key and button."""
        self._keys.clear()
        self._buttons = Button.NONE
        self._input.release_all()

    def _check(self, points: Iterable[tuple[int, int]]) -> None:
        width, height = self._screen.size
        for x, y in points:
            if not (0 <= x < width and 0 <= y < height):
                raise ActionError(
                    f"({x}, {y}) is off the screen; x is 0 to {width - 1}, y is 0 to {height - 1}"
                )

    def _point(self, x: int, y: int) -> None:
        self._input.pointer(x, y, self._buttons)

    def _set_buttons(self, buttons: Button) -> None:
        self._buttons = buttons
        self._input.pointer(*self._input.position, buttons)

    def _strokes(self, names: Iterable[str]) -> list[Stroke]:
        """What canonical names mean under the guest's layout of now."""
        named = list(names)
        keymap = self._input.keymap() if any(len(name) == 1 for name in named) else None
        return [keymap.chord_stroke(name) if keymap else Stroke(name) for name in named]

    def _press(self, keys: Iterable[str]) -> list[str]:
        """Press those of ``keys`` that are not down yet; returns them."""
        pressed: list[str] = []
        try:
            for key in keys:
                if key not in self._keys.values():
                    self._input.key(key, True)
                    pressed.append(key)
        except BaseException:
            self._lift(pressed)
            raise
        return pressed

    def _lift(self, keys: list[str]) -> None:
        for key in reversed(keys):
            self._input.key(key, False)

    def _chord(self, names: tuple[str, ...]) -> None:
        strokes = self._strokes(names)
        # Once each: Shift may be asked for and needed.
        pressed = self._press(dict.fromkeys(k for s in strokes for k in (*s.holds, s.key)))
        try:
            self._clock.sleep(self._input.press_s)
        finally:
            self._lift(pressed)

    def _click(self, click: a.Click) -> None:
        self._check([(click.x, click.y)])
        names = [canonical(m) for m in click.modifiers]
        modifiers = [stroke.key for stroke in self._strokes(names)]
        button = _BUTTONS[click.button]
        self._point(click.x, click.y)
        pressed = self._press(modifiers)
        try:
            for i in range(click.count):
                self._clock.sleep(BETWEEN_CLICKS_S if i else self._input.press_s)
                try:
                    self._set_buttons(self._buttons | button)
                    self._clock.sleep(self._input.press_s)
                finally:
                    self._set_buttons(self._buttons & ~button)
        finally:
            self._lift(pressed)

    def _drag(self, path: tuple[tuple[int, int], ...], button: Button) -> None:
        self._check(path)
        self._point(*path[0])
        self._clock.sleep(self._input.press_s)
        try:
            self._set_buttons(self._buttons | button)
            self._clock.sleep(DRAG_HOLD_S)
            for x, y in _along(path):
                self._point(x, y)
                self._clock.sleep(DRAG_STEP_S)
            x, y = path[-1]
            for number in range(DROP_MOTIONS):
                serial = self._screen.serial
                self._point(x if number % 2 else x - 1 if x else 1, y)
                settle(self._screen, serial, DROP_REST, self._clock)
        finally:
            self._set_buttons(self._buttons & ~button)

    def _scroll(self, x: int, y: int, dx: int, dy: int) -> None:
        self._check([(x, y)])
        self._point(x, y)
        self._clock.sleep(self._input.press_s)
        for count, back, forth in (
            (dy, Button.WHEEL_UP, Button.WHEEL_DOWN),
            (dx, Button.WHEEL_LEFT, Button.WHEEL_RIGHT),
        ):
            for _ in range(abs(count)):
                self._input.pointer(x, y, self._buttons | (forth if count > 0 else back))
                self._input.pointer(x, y, self._buttons)
                self._clock.sleep(NOTCH_S)

    def _release_keys(self) -> None:
        self._lift(list(self._keys.values()))
        self._keys.clear()


def _along(path: tuple[tuple[int, int], ...]) -> Iterator[tuple[int, int]]:
    """Points at most `DRAG_STEP_PX` apart that pass through every point of ``path``."""
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        steps = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / DRAG_STEP_PX))
        for i in range(1, steps + 1):
            yield round(x0 + (x1 - x0) * i / steps), round(y0 + (y1 - y0) * i / steps)
