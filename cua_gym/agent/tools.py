"""Our actions as function tools: what any model that can call functions is offered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cua_gym import actions as a
from cua_gym.spaces import ToolPolicy

__all__ = ["ENDINGS", "function_tool", "offered", "tool_name"]

ENDINGS: tuple[type[a.Action], ...] = (a.Submit, a.GiveUp)
_SHELL = (
    "Run a command with bash, in a new shell that starts in the home folder; its output comes back."
)
_NO_HANDS = (a.Wait, a.Shell, *ENDINGS)


def offered(policy: ToolPolicy) -> tuple[type[a.Action], ...]:
    """The actions that a task's tool policy allows."""
    return tuple(
        kind
        for kind in a.ACTIONS
        if (kind is not a.Shell or policy != "gui") and (kind in _NO_HANDS or policy != "shell")
    )


def tool_name(kind: type[a.Action]) -> str:
    """Its name in the JSON form: ``mouse_down``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def function_tool(kind: type[a.Action]) -> dict[str, Any]:
    """``{"name", "description", "parameters"}``; the parameters are a JSON schema."""
    hints = get_type_hints(kind)
    said = _SHELL if kind is a.Shell else (kind.__doc__ or "").split("\n\n")[0]
    return {
        "name": tool_name(kind),
        "description": said.replace("`", ""),
        "parameters": {
            "type": "object",
            "properties": {f.name: _schema(hints[f.name]) for f in fields(kind)},
            "required": [f.name for f in fields(kind) if f.default is MISSING],
            "additionalProperties": False,
        },
    }


def _schema(hint: Any) -> dict[str, Any]:
    plain = {int: "integer", float: "number", str: "string", str | None: "string"}
    if hint in plain:
        return {"type": plain[hint]}
    parts: Sequence[Any] = get_args(hint)
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(parts)}
    if parts[-1] is Ellipsis:
        return {"type": "array", "items": _schema(parts[0])}
    return {"type": "array", "items": _schema(parts[0]), "minItems": 2, "maxItems": 2}
