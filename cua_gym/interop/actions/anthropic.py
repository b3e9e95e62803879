"""Anthropic's computer tool: its inputs as our actions, and back.

All versions at once (``computer_20241022``, ``computer_20250124``, ``computer_20251124`` and the
members of ``computer_toolset_20260801``): a later one only adds actions and fields. Coordinates are
``[x, y]`` pixels of the picture, ``scroll_amount`` counts wheel notches, ``duration`` is seconds,
``text`` on clicks, drags and scrolls names keys that are held.

Source: ``platform.claude.com/docs/en/agents-and-tools/tool-use/computer-use-tool``, the types of
the ``anthropic`` package and ``computer-use-demo`` of ``anthropics/claude-quickstarts``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, TypeAdapter

from cua_gym import actions as a
from cua_gym.interop.actions.chords import XDOTOOL, foreign, held, keys, press
from cua_gym.interop.actions.scale import Point, Scale, to_model, to_native
from cua_gym.interop.actions.wire import Pair, Seconds, Whole, Wire, impossible, named, read

__all__ = ["from_anthropic", "to_anthropic"]

_NAME = "Anthropic's computer tool"

_CLICKS: dict[str, tuple[a.ButtonName, int]] = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}
_CLICK_OF = {meaning: name for name, meaning in _CLICKS.items()}
# Where one notch goes: (dx, dy), right and down positive.
_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


class _Look(Wire):
    action: Literal["screenshot", "cursor_position"]


class _Zoom(Wire):
    action: Literal["zoom"]
    region: Annotated[list[Whole], Strict(False), Field(min_length=4, max_length=4)]


class _Key(Wire):
    action: Literal["key"]
    text: str
    repeat: Annotated[Whole, Field(ge=1, le=100)] = 1


class _HoldKey(Wire):
    action: Literal["hold_key"]
    text: Annotated[str, Field(min_length=1)]
    duration: Seconds


class _Type(Wire):
    action: Literal["type"]
    text: str


class _Move(Wire):
    action: Literal["mouse_move"]
    coordinate: Pair


class _Click(Wire):
    action: Literal["left_click", "right_click", "middle_click", "double_click", "triple_click"]
    coordinate: Pair | None = None
    text: str | None = None


class _Drag(Wire):
    action: Literal["left_click_drag"]
    coordinate: Pair
    start_coordinate: Pair | None = None
    text: str | None = None


class _Press(Wire):
    action: Literal["left_mouse_down", "left_mouse_up"]


class _Scroll(Wire):
    action: Literal["scroll"]
    scroll_direction: Literal["up", "down", "left", "right"]
    scroll_amount: Annotated[Whole, Field(ge=0, le=100)]
    coordinate: Pair | None = None
    text: str | None = None


class _Wait(Wire):
    action: Literal["wait"]
    duration: Seconds


_Input = _Look | _Zoom | _Key | _HoldKey | _Type | _Move | _Click | _Drag | _Press | _Scroll | _Wait
_SHAPE: TypeAdapter[_Input] = TypeAdapter(Annotated[_Input, Field(discriminator="action")])


def from_anthropic(
    given: Mapping[str, Any], *, cursor: Point, scale: Scale | None = None
) -> tuple[a.Action, ...]:
    """The actions that one input of the computer tool asks for, in order.

    Args:
        given: the ``input`` of a ``tool_use`` block; for a member of the toolset, whose name says
            the action, ``{"action": block.name, **block.input}``.
        cursor: where the pointer is, native pixels; for clicks, scrolls and drags that do not say.
        scale: the picture's size and the screen's, where they differ.

    Returns:
        Several for ``hold_key``, ``repeat``, held keys with a drag or scroll, and a ``key`` of
        several chords with spaces between, as xdotool takes it. None (`ONLY_LOOK`) for
        ``screenshot``, ``cursor_position`` and ``zoom``: what they want is not done but shown.

    Raises:
        ActionError: not an action of this tool, or one that cannot be done here.
    """
    got = read(_SHAPE, named(given, "action", _NAME), _NAME)
    return tuple(a.validate(action) for action in _ours(got, cursor, scale))


def _ours(got: _Input, cursor: Point, scale: Scale | None) -> tuple[a.Action, ...]:
    def at(coordinate: Pair | None) -> Point:
        return cursor if coordinate is None else to_native(coordinate, scale)

    match got:
        case _Look() | _Zoom():
            return ()
        case _Key(text=text, repeat=repeat):
            joined = text.replace(" + ", "+")
            chords = tuple(press(_names(chord)) for chord in joined.split() or [text])
            return chords * repeat
        case _HoldKey(text=text, duration=duration):
            return held(_names(text), a.Wait(duration))
        case _Type(text=text):
            return (a.Type(text),)
        case _Move(coordinate=coordinate):
            return (a.Move(*at(coordinate)),)
        case _Click(action=name, coordinate=coordinate, text=text):
            modifiers = keys(_names(text)) if text else ()
            return (a.Click(*at(coordinate), *_CLICKS[name], modifiers),)
        case _Drag(start_coordinate=start, coordinate=end, text=text):
            return held(_names(text), a.Drag((at(start), at(end))))
        case _Press(action=name):
            return (a.MouseDown() if name == "left_mouse_down" else a.MouseUp(),)
        case _Scroll(scroll_amount=amount, coordinate=coordinate, text=text):
            dx, dy = _DIRECTIONS[got.scroll_direction]
            return held(_names(text), a.Scroll(*at(coordinate), dx * amount, dy * amount))
        case _Wait(duration=duration):
            return (a.Wait(duration),)


def _names(text: str | None) -> list[str]:
    """The keys of a chord as xdotool writes it; a final plus is a key."""
    if not text:
        return []
    names = [text] if text == " " else text.strip().split("+")
    return [*filter(None, names), "+"] if text.strip().endswith("+") else names


def to_anthropic(action: a.Action, *, scale: Scale | None = None) -> tuple[dict[str, Any], ...]:
    """The inputs of the computer tool that say ``action``, in order.

    What they say comes back by `from_anthropic` as it was, key names in canonical form, except
    that a drag with stops comes back as its moves and a diagonal scroll as two scrolls.

    Raises:
        ActionError: the tool has no way to say it: keys that stay down, other buttons than the
            left one held or dragged or clicked twice, `Shell`, `Submit`, `GiveUp`.
    """
    action = a.validate(action)

    def at(x: int, y: int) -> list[int]:
        return list(to_model((x, y), scale))

    match action:
        case a.Move(x, y):
            return ({"action": "mouse_move", "coordinate": at(x, y)},)
        case a.Click(x, y, button, count, modifiers) if (button, count) in _CLICK_OF:
            said = {"action": _CLICK_OF[button, count], "coordinate": at(x, y)}
            return ({**said, "text": _chord("+".join(modifiers))} if modifiers else said,)
        case a.MouseDown("left"):
            return ({"action": "left_mouse_down"},)
        case a.MouseUp("left"):
            return ({"action": "left_mouse_up"},)
        case a.Drag((start, end), "left"):
            points = {"start_coordinate": at(*start), "coordinate": at(*end)}
            return ({"action": "left_click_drag", **points},)
        case a.Drag((start, *stops), "left"):
            moves = [{"action": "mouse_move", "coordinate": at(*stop)} for stop in (start, *stops)]
            down, up = {"action": "left_mouse_down"}, {"action": "left_mouse_up"}
            return (moves[0], down, *moves[1:], up)
        case a.Scroll(x, y, dx, dy):
            turns = [("right" if dx > 0 else "left", dx)] if dx else []
            turns += [("up" if dy < 0 else "down", dy)] if dy or not dx else []
            return tuple(
                {"action": "scroll", "coordinate": at(x, y), "scroll_direction": direction}
                | {"scroll_amount": abs(notches)}
                for direction, notches in turns
            )
        case a.Type(text):
            return ({"action": "type", "text": text},)
        case a.Key(combo):
            return ({"action": "key", "text": _chord(combo)},)
        case a.Wait(seconds):
            whole = int(seconds) if seconds.is_integer() else seconds
            return ({"action": "wait", "duration": whole},)
        case _:
            raise impossible(_NAME, action)


def _chord(combo: str) -> str:
    return "+".join(foreign(combo, XDOTOOL))
