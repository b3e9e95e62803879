"""Drag the one file onto the folder, rename the other with F2."""

from __future__ import annotations

import re
from typing import Any

from cua_gym.actions import Click, Key, MouseDown, MouseUp, Move, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The rows of its list view are in the accessibility tree by name."""
    desk.wait_window("Project")

    def row(name: str) -> tuple[int, int]:
        return desk.find("table cell", f"^{re.escape(name)}$", app="[Tt]hunar")

    (x0, y0), (x1, y1) = row(params["moved"]), row("Archive")
    # Step by step, with a look at the folder's row: it is framed once it would take the file, and
    # a busy desktop is not there yet when the pointer is.
    observation, _ = yield Move(x0, y0)
    band = slice(y1 - 16, y1 - 10), slice(x1 + 100, x1 + 250)
    plain = observation["screenshot"][band]
    yield MouseDown()
    yield Move(x0 + 60, y0 + 60)
    observation, _ = yield Move(x1 + 20, y1)
    for wiggle in range(20):
        if (observation["screenshot"][band] != plain).any():
            break
        observation, _ = yield Move(x1 + wiggle % 2, y1)
    yield MouseUp()
    yield Click(*row(params["old"]))
    yield Key("f2")
    desk.wait_window("Rename")
    yield Key("ctrl+a")
    yield Type(params["new"])
    yield Key("enter")
    row(params["new"])
    return None
