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

    (x0, y0), (x1, y1) = row(params["moved"]), row("Archive")
    # A way round: a drag of one row's height would be over before it is one.
    yield Drag(((x0, y0), (x0 + 90, y0 + 60), (x1 + 40, y1 + 20), (x1, y1)))
    yield Click(*row(params["old"]))
    yield Key("f2")
    desk.wait_window("Rename")
    yield Key("ctrl+a")
    yield Type(params["new"])
    yield Key("enter")
    row(params["new"])
    return None
