"""OSWorld's action space ``computer_13``: its dicts as our actions, and back.

Coordinates are pixels of the picture. ``SCROLL`` counts notches: ``dx`` positive is right, ``dy``
positive is **up**, as pyautogui has it, against ours. Clicks, drags and scrolls without
coordinates are at the pointer.

Source: ``desktop_env/actions.py``, ``envs/desktop_env.py`` and ``controllers/python.py`` of
``xlang-ai/OSWorld``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.interop.actions.calls import WORDS, Call, actions_of, calls_for
from cua_gym.interop.actions.scale import Point, Scale
from cua_gym.interop.actions.wire import impossible

__all__ = ["from_computer_13", "to_computer_13"]

_NAME = "OSWorld's computer_13"

# Each type is a function of pyautogui, with their names for its parameters; SCROLL is two.
_XY = {"x": "x", "y": "y"}
_TYPES: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "MOVE_TO": {"moveTo": _XY},
    "CLICK": {"click": {**_XY, "button": "button", "num_clicks": "clicks"}},
    "MOUSE_DOWN": {"mouseDown": {"button": "button"}},
    "MOUSE_UP": {"mouseUp": {"button": "button"}},
    "RIGHT_CLICK": {"rightClick": _XY},
    "DOUBLE_CLICK": {"doubleClick": _XY},
    "DRAG_TO": {"dragTo": _XY},
    "SCROLL": {"hscroll": {"dx": "clicks"}, "scroll": {"dy": "clicks"}},
    "TYPING": {"write": {"text": "message"}},
    "PRESS": {"press": {"key": "keys"}},
    "KEY_DOWN": {"keyDown": {"key": "key"}},
    "KEY_UP": {"keyUp": {"key": "key"}},
    "HOTKEY": {"hotkey": {"keys": "keys"}},
}
_TYPE_OF = {function: kind for kind, functions in _TYPES.items() for function in functions}


def from_computer_13(
    given: Mapping[str, Any] | str, *, cursor: Point, scale: Scale | None = None
) -> tuple[a.Action, ...]:
    """The actions that one action of ``computer_13`` asks for, in order.

    Args:
        given: ``{"action_type": ..., "parameters": {...}}``, the parameters beside the type, or
            the bare words ``WAIT``, ``FAIL``, ``DONE``.
        cursor: where the pointer is, native pixels.
        scale: the picture's size and the screen's, where they differ.

    Raises:
        ActionError: not an action of this space, or one that cannot be done here.
    """
    if isinstance(given, str):
        given = {"action_type": given}
    if not isinstance(given, Mapping):
        raise ActionError(f"{_NAME}: an action is a dict or a word, not a {type(given).__name__}")
    kind = given.get("action_type")
    parameters = given.get("parameters")
    if not isinstance(kind, str) or kind not in {*_TYPES, *WORDS}:
        known = ", ".join([*_TYPES, *WORDS])
        raise ActionError(f"{_NAME}: the action_type is one of {known}")
    if not isinstance(parameters, Mapping | None):
        raise ActionError(f"{_NAME}: {kind}: parameters is a dict")
    beside = {k: v for k, v in given.items() if k not in ("action_type", "parameters")}
    left = {**beside, **(parameters or {})}
    calls: list[Call] = []
    for function, names in _TYPES.get(kind, {}).items():
        arguments = {ours: left.pop(theirs) for theirs, ours in names.items() if theirs in left}
        if arguments or kind != "SCROLL":
            calls.append((function, arguments))
    if left:
        extra = ", ".join(k if isinstance(k, str) else type(k).__name__ for k in left)
        raise ActionError(f"{_NAME}: {kind} does not take {extra:.80}")
    if kind in WORDS:
        return (WORDS[kind],)
    if (kind == "DRAG_TO" and not {"x", "y"} <= calls[0][1].keys()) or not calls:
        raise ActionError(f"{_NAME}: {kind} needs {'x and y' if calls else 'dx or dy'}")
    return actions_of(calls, cursor, scale)


def to_computer_13(action: a.Action, *, scale: Scale | None = None) -> tuple[dict[str, Any], ...]:
    """The actions of ``computer_13`` that say ``action``, in order.

    What they say comes back by `from_computer_13` as it was, key names in canonical form, except
    that a drag or scroll is preceded by the move to where it starts, and that a click with
    modifiers, a drag with stops or another button, and a diagonal scroll come back in parts.

    Raises:
        ActionError: the space has no way to say it: text that pyautogui has no keys for, a wait
            that is not two seconds, `Shell`, an answer or a reason.
    """
    if action in WORDS.values():
        return tuple({"action_type": word} for word, ours in WORDS.items() if ours == action)
    if isinstance(action, a.Wait):
        raise impossible(_NAME, action, "its WAIT is two seconds")
    if isinstance(action, a.Drag) and len(action.path) == 2 and action.button != "left":
        # DRAG_TO knows the left button only; a stop on the way makes it moves and buttons.
        action = a.Drag((action.path[0], *action.path), action.button)
    said: list[dict[str, Any]] = []
    for function, arguments in calls_for(action, scale, _NAME):
        kind = _TYPE_OF[function]
        names = _TYPES[kind][function]
        if "x" in arguments and "x" not in names:
            point = {"x": arguments["x"], "y": arguments["y"]}
            said.append({"action_type": "MOVE_TO", "parameters": point})
        parameters = {
            theirs: arguments[ours] for theirs, ours in names.items() if ours in arguments
        }
        said.append({"action_type": kind, "parameters": parameters})
    return tuple(said)
