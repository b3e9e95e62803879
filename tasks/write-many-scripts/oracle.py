"""Type the four lines, save, name the file."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Type
from cua_gym.agent.moves import save_as
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """As a person at the keyboard would."""
    desk.wait_window("Mousepad")
    yield Type("\n".join(params[key] for key in ("greeting", "sentence", "price", "sign")))
    yield from save_as(desk, f"/home/user/Documents/{params['file']}")
    desk.wait_window(params["file"])
    return None
