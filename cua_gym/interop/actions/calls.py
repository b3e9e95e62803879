"""pyautogui's functions as data: what a call of one does, in our actions, and back.

OSWorld performs both its action spaces with them, so `pyautogui` (source text) and `computer_13`
(dicts) differ only in how a call is written. What pyautogui does on X11 is what is meant:

- Coordinates are cut to whole pixels; a missing one is the pointer's.
- ``scroll`` and ``vscroll`` count notches, positive is **up**; ``hscroll`` positive is right.
- A capital or another shifted character brings Shift.
- ``duration``, ``interval`` and ``tween`` pace the call there; here the machine sets the pace, so
  they are taken and mean nothing.

Source: ``pyautogui/__init__.py`` and ``_pyautogui_x11.py`` of ``asweigart/pyautogui``;
``desktop_env/controllers/python.py`` of ``xlang-ai/OSWorld``.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict, TypeAdapter

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.interop.actions.chords import PYAUTOGUI, foreign, keys, press
from cua_gym.interop.actions.scale import Point, Scale, to_model, to_native
from cua_gym.interop.actions.wire import Number, Seconds, Whole, Wire, impossible, read
from cua_gym.machine.keyboard import canonical

__all__ = ["PARAMETERS", "WORDS", "Call", "actions_of", "calls_for"]

Call = tuple[str, Mapping[str, Any]]
"""A function's name and its arguments by name; those of ``hotkey`` are one, ``keys``."""

WORDS: Mapping[str, a.Action] = {"WAIT": a.Wait(2.0), "FAIL": a.GiveUp(), "DONE": a.Submit()}
"""OSWorld's actions that are no calls; its ``DesktopEnv.step`` waits two seconds."""

_BUTTONS: Mapping[object, a.ButtonName] = {
    "left": "left", "primary": "left", 1: "left", "middle": "middle", 2: "middle",
    "right": "right", "secondary": "right", 3: "right",
}  # fmt: skip
_TYPED = set(string.printable) - set("\x0b\x0c\r")


def _cut(value: Any) -> Any:
    return int(value) if isinstance(value, float) and math.isfinite(value) else value


_Pixel = Annotated[Whole, BeforeValidator(_cut)]
_Place = _Pixel | Annotated[tuple[_Pixel, _Pixel], Strict(False)] | None
_Button = str | Whole
_Keys = str | list[str] | tuple[str, ...]

# One class a function, its fields in the order of the function's parameters.


class _At(Wire):
    x: _Place = None
    y: _Pixel | None = None


class _Move(_At):
    duration: Number = 0.0
    tween: None = None


class _Drag(_Move):
    button: _Button = "left"


class _Hold(_At):
    button: _Button = "left"
    duration: Number = 0.0
    tween: None = None


class _Click(_At):
    clicks: Whole = 1
    interval: Number = 0.0
    button: _Button = "left"
    duration: Number = 0.0
    tween: None = None


class _ButtonClick(_At):
    interval: Number = 0.0
    tween: None = None
    duration: Number = 0.0


class _CountClick(_At):
    interval: Number = 0.0
    button: _Button = "left"
    duration: Number = 0.0
    tween: None = None


class _Turn(Wire):
    clicks: _Pixel
    x: _Place = None
    y: _Pixel | None = None


class _Write(Wire):
    message: _Keys
    interval: Number = 0.0


class _Press(Wire):
    keys: _Keys
    presses: Annotated[Whole, Field(ge=1, le=100)] = 1
    interval: Number = 0.0


class _OneKey(Wire):
    key: str


class _Hotkey(Wire):
    keys: list[str]
    interval: Number = 0.0


class _Sleep(Wire):
    seconds: Seconds


_FUNCTIONS: Mapping[str, type[Wire]] = {
    "moveTo": _Move, "dragTo": _Drag, "mouseDown": _Hold, "mouseUp": _Hold,
    "click": _Click, "leftClick": _ButtonClick, "rightClick": _ButtonClick,
    "middleClick": _ButtonClick, "doubleClick": _CountClick, "tripleClick": _CountClick,
    "scroll": _Turn, "vscroll": _Turn, "hscroll": _Turn,
    "write": _Write, "typewrite": _Write, "press": _Press, "hotkey": _Hotkey,
    "keyDown": _OneKey, "keyUp": _OneKey, "sleep": _Sleep,
}  # fmt: skip
_SHAPES = {name: TypeAdapter(shape) for name, shape in _FUNCTIONS.items()}
PARAMETERS = {name: tuple(shape.model_fields) for name, shape in _FUNCTIONS.items()}
"""The known functions and the names of their parameters, in order."""

_BUTTON_OF: Mapping[str, a.ButtonName] = {"rightClick": "right", "middleClick": "middle"}
_COUNT_OF = {"doubleClick": 2, "tripleClick": 3}


def actions_of(calls: Iterable[Call], cursor: Point, scale: Scale | None) -> tuple[a.Action, ...]:
    """What calls of functions in `PARAMETERS` do, one after another.

    Args:
        cursor: where the pointer is before the first, native pixels.

    Raises:
        ActionError: an argument that the function does not take, or nothing that can be done here.
    """
    done: list[a.Action] = []
    for name, arguments in calls:
        got: Any = read(_SHAPES[name], dict(arguments), f"pyautogui.{name}")
        point = _point(got, cursor, scale) if isinstance(got, _At | _Turn) else cursor
        done += map(a.validate, _ours(name, got, point, cursor))
        cursor = point
    return tuple(done)


def _point(got: Any, cursor: Point, scale: Scale | None) -> Point:
    x, y = got.x if isinstance(got.x, tuple) else (got.x, got.y)
    whole = to_native((x or 0, y or 0), scale)
    return (cursor[0] if x is None else whole[0], cursor[1] if y is None else whole[1])


def _points(got: _At) -> bool:
    return got.x is not None or got.y is not None


def _ours(name: str, got: Any, point: Point, cursor: Point) -> Sequence[a.Action]:
    match got:
        case _Drag():
            return [a.Drag((cursor, point), _button(got.button))]
        case _Move():
            return [a.Move(*point)] if _points(got) else []
        case _Hold():
            kind = a.MouseDown if name == "mouseDown" else a.MouseUp
            moves = [a.Move(*point)] if _points(got) else []
            return [*moves, kind(_button(got.button))]
        case _Click():
            return [a.Click(*point, _button(got.button), got.clicks)]
        case _ButtonClick():
            return [a.Click(*point, _BUTTON_OF.get(name, "left"))]
        case _CountClick():
            return [a.Click(*point, _button(got.button), _COUNT_OF[name])]
        case _Turn(clicks=clicks):
            return [a.Scroll(*point, clicks) if name == "hscroll" else a.Scroll(*point, 0, -clicks)]
        case _Write(message=str(text)):
            return [a.Type(text)]
        case _Write(message=names):
            return [_pressed([key]) for key in names]
        case _Press(keys=names, presses=presses):
            listed = [names] if isinstance(names, str) else names
            return [_pressed([key]) for key in listed] * presses
        case _Hotkey(keys=names):
            return [_pressed(names)]
        case _OneKey(key=key):
            return [(a.KeyDown if name == "keyDown" else a.KeyUp)(_single(key))]
        case _:
            return [a.Wait(got.seconds)]


def _button(given: str | int) -> a.ButtonName:
    name = given.lower() if isinstance(given, str) else given
    if name not in _BUTTONS:
        raise ActionError(f"no button is called {given!r:.40}; left, middle or right")
    return _BUTTONS[name]


def _pressed(names: Sequence[str]) -> a.Action:
    if len(names) == 1 and names[0] in set(string.ascii_uppercase):
        return a.Type(names[0])
    capital = [n for n in names if n in set(string.ascii_uppercase)]
    return press(["shift", *names] if capital and "shift" not in names else names)


def _single(key: str) -> str:
    found = keys([key])
    if len(found) > 1:
        raise ActionError(f"{key!r} is no key of its own; hold 'shift' and name {found[-1]!r}")
    return found[0]


def calls_for(action: a.Action, scale: Scale | None, what: str) -> list[Call]:
    """The calls that do ``action``.

    Args:
        what: whose format it is, for messages.

    Raises:
        ActionError: no function does it.
    """
    action = a.validate(action)

    def at(x: int, y: int) -> dict[str, int]:
        return dict(zip("xy", to_model((x, y), scale), strict=True))

    def held(button: str) -> dict[str, str]:
        return {} if button == "left" else {"button": button}

    match action:
        case a.Move(x, y):
            return [("moveTo", at(x, y))]
        case a.Click(x, y, button, count, modifiers):
            names = foreign("+".join(modifiers), PYAUTOGUI) if modifiers else []
            click = at(x, y) | held(button) | ({"clicks": count} if count > 1 else {})
            downs: list[Call] = [("keyDown", {"key": name}) for name in names]
            ups: list[Call] = [("keyUp", {"key": name}) for name in reversed(names)]
            return [*downs, ("click", click), *ups]
        case a.MouseDown(button):
            return [("mouseDown", held(button))]
        case a.MouseUp(button):
            return [("mouseUp", held(button))]
        case a.Drag((start, end), button):
            return [("moveTo", at(*start)), ("dragTo", at(*end) | held(button))]
        case a.Drag((start, *stops), button):
            moves: list[Call] = [("moveTo", at(*stop)) for stop in stops]
            down, up = ("mouseDown", held(button)), ("mouseUp", held(button))
            return [("moveTo", at(*start)), down, *moves, up]
        case a.Scroll(x, y, dx, dy):
            turns: list[Call] = [("hscroll", {"clicks": dx} | at(x, y))] if dx else []
            return [*turns, *([("scroll", {"clicks": -dy} | at(x, y))] if dy or not dx else [])]
        case a.Type(text):
            if odd := sorted(set(text) - _TYPED):
                raise impossible(what, action, f"pyautogui has no keys for {''.join(odd)[:40]!r}")
            return [("write", {"message": text})]
        case a.Key(combo):
            names = foreign(combo, PYAUTOGUI)
            return [("hotkey", {"keys": names}) if names[1:] else ("press", {"keys": names[0]})]
        case a.KeyDown(key) | a.KeyUp(key):
            (name,) = foreign(canonical(key), PYAUTOGUI)
            return [("keyDown" if isinstance(action, a.KeyDown) else "keyUp", {"key": name})]
        case a.Wait(seconds):
            return [("sleep", {"seconds": seconds})]
        case _:
            raise impossible(what, action)
