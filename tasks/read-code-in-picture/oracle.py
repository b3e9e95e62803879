"""Bring the editor to the front, type the code, save."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Click, Type
from cua_gym.agent.moves import save_as
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """An oracle knows the code; an agent has to read it."""
    desk.wait_window("label.png")
    yield Click(*desk.find("toggle button", "Mousepad", app="panel"))
    desk.wait_window("Mousepad", active=True)
    yield Type(params["code"])
    yield from save_as(desk, "/home/user/Documents/code.txt")
    desk.wait_window("code.txt")
    return None
