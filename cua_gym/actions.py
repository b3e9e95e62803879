"""What an agent may do: frozen values, and one codec between them and plain dicts.

Coordinates are pixels of the native screen, origin top left. Scroll counts wheel notches,
positive is right and down. After every action no key or button stays down unless `KeyDown` or
`MouseDown` asked for it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_type_hints

from cua_gym.errors import ActionError

__all__ = [
    "ACTIONS",
    "Action",
    "Click",
    "Drag",
    "GiveUp",
    "Key",
    "KeyDown",
    "KeyUp",
    "MouseDown",
    "MouseUp",
    "Move",
    "Scroll",
    "Shell",
    "Submit",
    "Type",
    "Wait",
    "action_from_dict",
    "action_to_dict",
]

ButtonName = Literal["left", "middle", "right"]


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """Put the pointer on pixel (x, y)."""

    x: int
    y: int


@dataclasses.dataclass(frozen=True, slots=True)
class Click:
    """Press and release ``button`` ``count`` times at (x, y), with ``modifiers`` held."""

    x: int
    y: int
    button: ButtonName = "left"
    count: int = 1
    modifiers: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class MouseDown:
    """Press ``button`` where the pointer is; it stays down until `MouseUp`."""

    button: ButtonName = "left"


@dataclasses.dataclass(frozen=True, slots=True)
class MouseUp:
    """Release ``button`` where the pointer is."""

    button: ButtonName = "left"


@dataclasses.dataclass(frozen=True, slots=True)
class Drag:
    """Press ``button`` at the first point, move through the others, release at the last.

    A path is at most 20,000 pixels long.
    """

    path: tuple[tuple[int, int], ...]
    button: ButtonName = "left"


@dataclasses.dataclass(frozen=True, slots=True)
class Scroll:
    """Turn the wheel at (x, y): ``dx`` notches to the right, ``dy`` notches down."""

    x: int
    y: int
    dx: int = 0
    dy: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Type:
    r"""Type any Unicode text exactly; ``\n`` is Enter, ``\t`` is Tab."""

    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """Press and release a chord such as ``"ctrl+shift+s"``.

    A character means the key that carries it under the guest's layout of now (``ctrl+a`` is Q's
    place on a French keyboard), pressed with the Shift or AltGr that it needs. A Latin letter that
    the layout lacks, as Cyrillic ones do, is the key of a US keyboard. Text goes by `Type`.
    """

    combo: str


@dataclasses.dataclass(frozen=True, slots=True)
class KeyDown:
    """Press one key, named as for `Key`; it stays down until `KeyUp`. It brings no Shift."""

    key: str


@dataclasses.dataclass(frozen=True, slots=True)
class KeyUp:
    """Release one key: the one that `KeyDown` pressed under that name."""

    key: str


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """Let ``seconds`` pass (0 to 60), then look."""

    seconds: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Shell:
    """Run ``command`` with bash as the desktop user; output comes back in ``info["shell"]``."""

    command: str
    timeout_s: float = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class Submit:
    """Say that the task is done; ``answer`` where the task asks for one."""

    answer: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class GiveUp:
    """Say that the task cannot be done, and why."""

    reason: str = ""


Action = (
    Move | Click | MouseDown | MouseUp | Drag | Scroll | Type | Key | KeyDown | KeyUp
    | Wait | Shell | Submit | GiveUp
)  # fmt: skip
ACTIONS: tuple[type[Action], ...] = get_args(Action)

_NAMES = {
    cls: "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")
    for cls in ACTIONS
}
_HINTS = {cls: get_type_hints(cls) for cls in ACTIONS}  # asked at each step, and slow
_CLASSES = {name: cls for cls, name in _NAMES.items()}
_LIMITS = {"count": (1, 3), "dx": (-100, 100), "dy": (-100, 100)}
_SECONDS = {"seconds": (0.0, 60.0), "timeout_s": (0.0, 600.0)}
MAX_TEXT = 20_000
MAX_PATH_PX = 20_000
"""A drag of a quarter of a minute."""


def action_to_dict(action: Action) -> dict[str, Any]:
    """The JSON form: ``{"type": "click", "x": 10, ...}``, every field present.

    Raises:
        ActionError: not one of `ACTIONS`, or a value that `validate` refuses.
    """
    action = validate(action)
    fields = {f.name: _plain(getattr(action, f.name)) for f in dataclasses.fields(action)}
    return {"type": _NAMES[type(action)], **fields}


def recordable(action: object) -> dict[str, Any]:
    """The JSON form of whatever was meant to be an action, also of what is none."""
    try:
        return action_to_dict(action)  # type: ignore[arg-type]
    except ActionError:
        return {"type": "invalid", "value": repr(action)[:200]}


def action_from_dict(data: Mapping[str, Any]) -> Action:
    """Parse and validate the JSON form, the inverse of `action_to_dict`.

    Raises:
        ActionError: unknown type or field, a missing field, or a value of the wrong kind.
    """
    if not isinstance(data, Mapping):
        raise ActionError(f"an action is a mapping with a 'type', not {type(data).__name__}")
    cls = _CLASSES.get(data.get("type", ""))
    if cls is None:
        raise ActionError(f"unknown action type {data.get('type')!r}; one of {', '.join(_CLASSES)}")
    given = {k: v for k, v in data.items() if k != "type"}
    known = {f.name: f for f in dataclasses.fields(cls)}
    if extra := sorted(given.keys() - known.keys()):
        raise ActionError(f"{data['type']} takes {', '.join(known)}, not {', '.join(extra)}")
    missing = [
        n for n, f in known.items() if n not in given and f.default is dataclasses.MISSING
    ]  # fmt: skip
    if missing:
        raise ActionError(f"{data['type']} needs {', '.join(missing)}")
    values = {name: _tupled(value) for name, value in given.items()}
    return validate(cls(**values))


def validate(action: Action) -> Action:
    """The same action, every value checked and integral floats made ints.

    Raises:
        ActionError: names the field, the value seen and what is allowed.
    """
    if type(action) not in _NAMES:
        raise ActionError(f"{action!r} is no action; use one of {', '.join(_CLASSES)}")
    hints = _HINTS[type(action)]
    fields = {
        f.name: _checked(type(action).__name__, f.name, hints[f.name], getattr(action, f.name))
        for f in dataclasses.fields(action)
    }
    return type(action)(**fields)


def _checked(owner: str, name: str, hint: Any, value: Any) -> Any:
    def refuse(wanted: str) -> ActionError:
        return ActionError(f"{owner}.{name} must be {wanted}, not {value!r:.80}")

    if hint is int:
        return _integer(value, _LIMITS.get(name), refuse)
    if hint is float:
        low, high = _SECONDS[name]
        number = not isinstance(value, bool) and isinstance(value, int | float)
        if not number or not math.isfinite(value) or not low <= value <= high:
            raise refuse(f"seconds from {low:g} to {high:g}")
        return float(value)
    if hint is str or hint == str | None:
        if value is None and hint is not str:
            return None
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise refuse(f"text of at most {MAX_TEXT} characters")
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise refuse("text without lone surrogates")
        return value
    if name == "button":
        if value not in get_args(ButtonName):
            raise refuse("left, middle or right")
        return value
    if name == "modifiers":
        if not isinstance(value, tuple | list) or not all(isinstance(v, str) for v in value):
            raise refuse("a list of key names")
        return tuple(value)
    if not isinstance(value, tuple | list) or len(value) < 2:  # path
        raise refuse("at least two (x, y) points")
    points = []
    for point in value:
        if not isinstance(point, tuple | list) or len(point) != 2:
            raise refuse("a list of (x, y) points")
        points.append(tuple(_integer(v, (-MAX_PATH_PX, MAX_PATH_PX), refuse) for v in point))
    if sum(math.dist(a, b) for a, b in itertools.pairwise(points)) > MAX_PATH_PX:
        raise refuse(f"at most {MAX_PATH_PX} pixels long")
    return tuple(points)


def _integer(value: Any, limits: tuple[int, int] | None, refuse: Any) -> int:
    # numpy integers arrive from sampled spaces; bool is an int only by Python's history.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        if not isinstance(value, float) or not value.is_integer():
            raise refuse("a whole number")
        value = int(value)
    value = value.__index__()
    if limits and not limits[0] <= value <= limits[1]:
        raise refuse(f"from {limits[0]} to {limits[1]}")
    return int(value)


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _tupled(value: Any) -> Any:
    return tuple(_tupled(v) for v in value) if isinstance(value, list | tuple) else value
