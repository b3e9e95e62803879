"""Drag the one file onto the folder, rename the other with F2."""

from __future__ import annotations

import re
from typing import Any

from cua_gym.actions import Click, Drag, Key, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The rows of its list view are in the accessibility tree by name."""
    desk.wait_window("Project")

    def row(name: str) -> tuple[int, int]:
        return desk.find("table cell", f"^{re.escape(name)}$", app="[Tt]hunar")

    yield Drag((row(params["moved"]), row("Archive")))
    desk.until(f"test -e ~/Project/Archive/{params['moved']}")
    yield Click(*row(params["old"]))
    yield Key("f2")
    desk.wait_window("Rename")
    yield Key("ctrl+a")
    yield Type(params["new"])
    yield Key("enter")
    # Until it has looked at the name, the dialog takes no Enter.
    while not desk.gone("^Rename", timeout_s=3.0):
        yield Key("enter")
    row(params["new"])
    return None
