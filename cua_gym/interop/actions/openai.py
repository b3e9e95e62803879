"""OpenAI's computer call: its actions as ours, and back.

Both shapes of the call: ``actions``, a batch in order (the ``computer`` tool), and the single
``action`` of before (``computer_use_preview``). Coordinates are pixels of the picture; ``scroll_x``
and ``scroll_y`` are pixels that the content should travel, positive right and down; ``keys`` are
held meanwhile.

Source: ``developers.openai.com/api/docs/guides/tools-computer-use`` and the types of the ``openai``
package (``types/responses/computer_action.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, TypeAdapter

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.interop.actions.chords import OPENAI, foreign, held, keys, press
from cua_gym.interop.actions.scale import Point, Scale, to_model, to_native
from cua_gym.interop.actions.wire import Whole, Wire, impossible, named, read

__all__ = ["PIXELS_PER_NOTCH", "WAIT_S", "from_openai", "to_openai"]

_NAME = "OpenAI's computer call"

PIXELS_PER_NOTCH = 100
"""What one wheel notch stands for. A wheel has no pixels and programs differ; desktop harnesses of
this format take 100 (``coder/coder``'s ``computeruse``, ``TanStack/ai``'s ``ai-computer-use``)."""

WAIT_S = 2.0
"""How long ``wait`` is, which has no duration; as in the guide's samples."""

# Back and forward are not among our buttons.
_BUTTONS: dict[str, a.ButtonName] = {"left": "left", "right": "right", "wheel": "middle"}
_BUTTON_OF = {ours: theirs for theirs, ours in _BUTTONS.items()}


class _At(Wire):
    x: Whole
    y: Whole


class _Click(_At):
    type: Literal["click"]
    button: Literal["left", "right", "wheel", "back", "forward"] = "left"
    keys: list[str] | None = None


class _DoubleClick(_At):
    type: Literal["double_click"]
    keys: list[str] | None = None


class _Move(_At):
    type: Literal["move"]
    keys: list[str] | None = None


class _Scroll(_At):
    type: Literal["scroll"]
    # The guide's samples read the second spelling.
    scroll_x: Whole = Field(0, validation_alias=AliasChoices("scroll_x", "scrollX"))
    scroll_y: Whole = Field(0, validation_alias=AliasChoices("scroll_y", "scrollY"))
    keys: list[str] | None = None


class _Drag(Wire):
    type: Literal["drag"]
    path: list[_At] = Field(min_length=2, max_length=1000)
    keys: list[str] | None = None


class _Keypress(Wire):
    type: Literal["keypress"]
    keys: list[str]


class _Type(Wire):
    type: Literal["type"]
    text: str


class _Plain(Wire):
    type: Literal["screenshot", "wait"]


_Action = _Click | _DoubleClick | _Move | _Scroll | _Drag | _Keypress | _Type | _Plain
_SHAPE: TypeAdapter[_Action] = TypeAdapter(Annotated[_Action, Field(discriminator="type")])


def from_openai(given: Mapping[str, Any], *, scale: Scale | None = None) -> tuple[a.Action, ...]:
    """The actions that one action, or a whole ``computer_call``, asks for, in order.

    Args:
        given: an action, or the ``computer_call`` item with its ``actions`` or ``action``; of an
            object of the ``openai`` package its ``model_dump()``.
        scale: the picture's size and the screen's, where they differ.

    Returns:
        Several for a batch and for keys held with a move, drag or scroll. None (`ONLY_LOOK`) for
        ``screenshot``. Pixels of a scroll become the nearest number of notches, at least one
        unless there are none.

    Raises:
        ActionError: not an action of this format, or one that cannot be done here; then nothing
            of the batch is returned.
    """
    if not isinstance(given, Mapping) or given.get("type") != "computer_call":
        return _one(given, scale)
    batch = given.get("actions") or [given.get("action")]
    if not isinstance(batch, list | tuple):
        raise ActionError(f"{_NAME}: actions must be a list, not a {type(batch).__name__}")
    return tuple(ours for action in batch for ours in _one(action, scale))


def _one(given: object, scale: Scale | None) -> tuple[a.Action, ...]:
    got = read(_SHAPE, named(given, "type", _NAME), _NAME)
    return tuple(a.validate(action) for action in _ours(got, scale))


def _ours(got: _Action, scale: Scale | None) -> tuple[a.Action, ...]:
    def at(where: _At) -> Point:
        return to_native((where.x, where.y), scale)

    match got:
        case _Click(button=button):
            if button not in _BUTTONS:
                raise ActionError(
                    f"there is no {button} button here; in a browser it is alt+left or alt+right"
                )
            return (a.Click(*at(got), _BUTTONS[button], 1, keys(got.keys) if got.keys else ()),)
        case _DoubleClick():
            return (a.Click(*at(got), "left", 2, keys(got.keys) if got.keys else ()),)
        case _Move():
            return held(got.keys or [], a.Move(*at(got)))
        case _Scroll(scroll_x=x, scroll_y=y):
            return held(got.keys or [], a.Scroll(*at(got), _notches(x), _notches(y)))
        case _Drag(path=path):
            return held(got.keys or [], a.Drag(tuple(at(point) for point in path)))
        case _Keypress():
            return (press(got.keys),)
        case _Type(text=text):
            return (a.Type(text),)
        case _Plain(type="wait"):
            return (a.Wait(WAIT_S),)
        case _Plain():
            return ()


def _notches(pixels: int) -> int:
    if not pixels:
        return 0
    size = max((abs(pixels) * 2 + PIXELS_PER_NOTCH) // (2 * PIXELS_PER_NOTCH), 1)
    return size if pixels > 0 else -size


def to_openai(action: a.Action, *, scale: Scale | None = None) -> tuple[dict[str, Any], ...]:
    """The actions of a computer call that say ``action``, always one.

    What it says comes back by `from_openai` as it was, key names in canonical form.

    Raises:
        ActionError: the format has no way to say it: keys or buttons that stay down, a double
            click of another button, a triple click, a drag with another button than the left,
            a wait of another length than `WAIT_S`, `Shell`, `Submit`, `GiveUp`.
    """
    action = a.validate(action)

    def at(x: int, y: int) -> dict[str, int]:
        mx, my = to_model((x, y), scale)
        return {"x": mx, "y": my}

    match action:
        case a.Move(x, y):
            return ({"type": "move", **at(x, y)},)
        case a.Click(x, y, button, count, modifiers) if count == 1 or (button, count) == (
            "left",
            2,
        ):
            kind = {"type": "click", "button": _BUTTON_OF[button]} if count == 1 else {}
            said = {"type": "double_click", **kind, **at(x, y)}
            chord = foreign("+".join(modifiers), OPENAI) if modifiers else None
            return ({**said, "keys": chord} if chord else said,)
        case a.Drag(path, "left"):
            return ({"type": "drag", "path": [at(*point) for point in path]},)
        case a.Scroll(x, y, dx, dy):
            pixels = {"scroll_x": dx * PIXELS_PER_NOTCH, "scroll_y": dy * PIXELS_PER_NOTCH}
            return ({"type": "scroll", **at(x, y), **pixels},)
        case a.Type(text):
            return ({"type": "type", "text": text},)
        case a.Key(combo):
            return ({"type": "keypress", "keys": foreign(combo, OPENAI)},)
        case a.Wait(seconds):
            if seconds != WAIT_S:
                raise impossible(_NAME, action, f"its wait is {WAIT_S:g} seconds")
            return ({"type": "wait"},)
        case _:
            raise impossible(_NAME, action)
