"""Filter the types, open the list of programs, type the program's name."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown

APP = "mime-settings"


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """What is typed into the list of programs is searched for there, and Enter takes it."""
    desk.focused("Default Applications")
    yield Click(*desk.find("page tab", "^Others$", app=APP))
    for n in (1, 2):
        kind, program = params[f"type_{n}"], params[f"program_{n}"]
        yield Click(*desk.find("text", "", app=APP))
        yield Key("ctrl+a")
        yield Type(kind)
        yield Click(*desk.find("table cell", f"^{re.escape(kind)}$", app=APP))
        yield Click(*desk.find("push button", r"^Open with\.\.\.$", app=APP))
        desk.focused("Select Application")
        # The list is filled after the window has come.
        desk.node("table cell", f"^{re.escape(program)}$", app=APP)
        chosen = f'test "$(xdg-mime query default {kind})" = {params[f"desktop_{n}"]}'
        for _ in range(3):
            yield Type(program)
            yield Key("enter")
            with contextlib.suppress(NotShown):
                desk.until(chosen, timeout_s=60.0)
                break
        desk.until(chosen)
        desk.focused("Default Applications")
    return None
