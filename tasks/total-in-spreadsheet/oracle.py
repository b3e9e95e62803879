"""Walk to the cell, enter a formula, save in the same format."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """This desktop's Calc keeps a file's format without asking."""
    desk.wait_window("orders.xlsx")
    yield Key("ctrl+home")
    for _ in range(5):
        yield Key("right")
    yield Key("down")
    yield Type(params["formula"])
    yield Key("enter")
    yield Key("ctrl+s")
    desk.until("unzip -p ~/Documents/orders.xlsx xl/worksheets/sheet1.xml | grep -q SUMIF")
    return None
