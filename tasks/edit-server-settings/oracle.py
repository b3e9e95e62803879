"""Go to each line by its number and type it anew."""

from __future__ import annotations

import re
import shlex
from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The dialog takes the keyboard and gives it back; each time it is waited for."""
    title = re.escape(params["file"])
    path = f"/home/user/{params['folder']}/{params['file']}"
    for number in (1, 2, 3):
        desk.wait_window(title, active=True)
        key, value = params[f"key_{number}"], params[f"value_{number}"]
        yield Key("ctrl+l")
        desk.wait_window("^Go To$", active=True)
        yield Type(f"{_line(params['before'], params[f'section_{number}'], key)}")
        yield Key("enter")
        while not desk.gone("^Go To$", timeout_s=5.0):
            yield Key("enter")
        desk.wait_window(title, active=True)
        yield Key("home")
        yield Key("shift+end")
        yield Type(f"{key} = {value}")
    yield Key("ctrl+s")
    desk.until(f"grep -qFx {shlex.quote(f'{key} = {value}')} {shlex.quote(path)}")
    return None


def _line(text: str, section: str, key: str) -> int:
    lines = text.split("\n")
    start = lines.index(f"[{section}]")
    return 1 + next(n for n in range(start, len(lines)) if lines[n].startswith(f"{key} ="))
