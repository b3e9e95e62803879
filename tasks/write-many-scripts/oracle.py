"""Type the four lines, save, name the file."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """As a person at the keyboard would."""
    desk.wait_window("Mousepad")
    yield Type("\n".join(params[key] for key in ("greeting", "sentence", "price", "sign")))
    yield Key("ctrl+s")
    desk.wait_window("Save As")
    yield Key("ctrl+a")
    yield Type(f"/home/user/Documents/{params['file']}")
    yield Key("enter")
    desk.wait_window(params["file"])
    return None
