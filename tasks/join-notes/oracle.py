"""Copy the notes from their tabs, one after the other, into a new one."""

from __future__ import annotations

import re
import shlex
from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.moves import save_as, with_effect
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """Alt and a number is a tab; the new one is the seventh."""
    tabs = {params[f"tab_{n}"]: n for n in range(1, 7)}
    desk.wait_window("Mousepad", active=True)
    yield Key("ctrl+n")
    desk.wait_window("Untitled", active=True)
    for number, name in enumerate(params["order"].split("\n")):
        path = f"/home/user/{params['folder']}/{name}"
        yield Key(f"alt+{tabs[name]}")
        # The title has the folder before the name.
        desk.wait_window(f"/{re.escape(name)}", active=True)
        yield Key("ctrl+a")
        yield Key("ctrl+c")
        desk.until(f"xclip -o -selection clipboard | cmp -s - {shlex.quote(path)}")
        observation, _ = yield Key("alt+7")
        window = desk.wait_window("Untitled", active=True)
        if number:
            observation, _ = yield Type(f"{params['separator']}\n")
        # What is pasted comes a moment later, and keys do not wait for it.
        box = (window.x, window.y, window.width, window.height)
        yield from with_effect(Key("ctrl+v"), observation["screenshot"], box)
        if not params[f"text_{tabs[name]}"].endswith("\n"):
            yield Key("enter")
    path = f"/home/user/{params['folder']}/{params['result']}"
    yield from save_as(desk, path)
    desk.until(f"test -s {shlex.quote(path)}")
    return None
