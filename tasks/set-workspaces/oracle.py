"""Open Workspaces in the settings, set the number, close."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The number is a spin button; typing over it and leaving it sets it."""
    desk.wait_window("^Settings$")
    yield Click(*desk.find(None, "^Workspaces$", app="settings"))
    desk.wait_window("^Workspaces$")
    yield Click(*desk.find("spin button", "", app="workspace"), count=2)
    yield Key("ctrl+a")
    yield Type(str(params["count"]))
    yield Key("tab")
    return None
