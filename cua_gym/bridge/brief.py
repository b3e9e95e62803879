"""Steps in short, for a person who watches: who did what, and what came of it.

Everything here may have been written by the agent or the guest; it is plain text, never markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["brief"]

LONGEST = 300
_USUAL = {"button": "left", "count": 1, "modifiers": [], "dx": 0, "dy": 0}


def brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """One line of ``traj.jsonl`` in short.

    Returns:
        ``step``, ``elapsed_s``, ``by`` and ``bridge`` as recorded; ``what`` was done (an action or
        a tool); ``how``, its arguments; ``error`` and ``end`` (what ended the attempt), or None.
    """
    info, call, action = record["info"], record.get("call"), record["action"]
    if call is not None:
        what, arguments = call["tool"], call["arguments"]
    elif action is not None:
        what, arguments = action["type"], {k: v for k, v in action.items() if k != "type"}
    else:
        what, arguments = "start", {}
    error = info.get("action_error") or info.get("error")
    return {
        "step": record["step"],
        "elapsed_s": record["elapsed_s"],
        "by": record["by"],
        "bridge": None if call is None else call["bridge"],
        "what": _clipped(str(what)),
        "how": _clipped(_said(arguments)),
        "error": None if error is None else _clipped(str(error)),
        "end": _end(record),
    }


def _said(arguments: Mapping[str, Any]) -> str:
    """``(10, 20) count=2``: where first, both ends of a path, what is usual left out."""
    rest = {k: v for k, v in arguments.items() if v is not None and v != _USUAL.get(k)}
    words = []
    if "x" in rest and "y" in rest:
        words.append(f"({rest.pop('x')}, {rest.pop('y')})")
    path = rest.get("path")
    if isinstance(path, Sequence) and not isinstance(path, str) and len(path) > 1:
        words.append(" → ".join(_point(point) for point in (path[0], path[-1])))
        del rest["path"]
    if len(rest) == 1 and not words:
        return _value(*rest.values())
    return " ".join([*words, *(f"{k}={_value(v)}" for k, v in rest.items())])


def _point(point: Any) -> str:
    return f"({', '.join(map(_value, point))})" if isinstance(point, list) else _value(point)


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _end(record: Mapping[str, Any]) -> str | None:
    action, info = record["action"] or {}, record["info"]
    if record["terminated"]:
        done = "submitted" if action.get("type") == "submit" else "gave up"
        said = action.get("answer") or action.get("reason")
        whole = f"{'a person' if record['by'] == 'human' else 'the agent'} {done}"
        return _clipped(f"{whole}: {said}" if said else whole)
    if record["truncated"]:
        limit = info.get("limit")
        return f"no {limit} are left" if limit else "the machine was lost"
    return None


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
