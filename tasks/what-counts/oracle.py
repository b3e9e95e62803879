"""Two formulas, each entered through the Name Box."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key
from cua_gym.agent.office_moves import SAVED_S, fill_cells
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The formulas are those of a person who read the notes."""
    window = desk.wait_window(params["file"], active=True)
    for what in ("count", "total"):
        cell = f"Summary.{params[f'{what}_cell']}"
        yield from fill_cells(desk, window, cell, params[f"{what}_formula"])
    yield Key("ctrl+s")
    path = f"~/Documents/{params['file']}"
    desk.until(f"unzip -p {path} xl/worksheets/sheet3.xml 2>/dev/null | grep -q SUMIFS", SAVED_S)
    return None
