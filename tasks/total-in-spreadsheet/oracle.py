"""Walk to the cell, enter a formula, save in the same format."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.moves import with_effect
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """This desktop's Calc keeps a file's format without asking."""
    window = desk.wait_window("orders.xlsx", active=True)
    name_box = (window.x + 5, window.y + 110, 120, 30)
    observation, _ = yield Key("ctrl+home")
    screen = observation["screenshot"]
    for key in ("right", "right", "right", "right", "right", "down"):
        screen = yield from with_effect(Key(key), screen, name_box)
    yield Type(params["formula"])
    yield Key("enter")
    yield Key("ctrl+s")
    desk.until("unzip -p ~/Documents/orders.xlsx xl/worksheets/sheet1.xml | grep -q SUMIF")
    return None
