"""One formula for a whole column, entered with Alt+Enter."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key
from cua_gym.agent.office_moves import SAVED_S, fill_cells
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The total last: it is waited for in the file."""
    window = desk.wait_window(params["file"], active=True)
    for cells, formula in (
        ("price_cells", "price_formula"),
        ("amount_cells", "amount_formula"),
        ("total_cell", "total_formula"),
    ):
        yield from fill_cells(desk, window, params[cells], params[formula])
    yield Key("ctrl+s")
    sheet = f"unzip -p ~/Documents/{params['file']} xl/worksheets/sheet1.xml 2>/dev/null"
    desk.until(f"{sheet} | grep -q 'SUM(E'", SAVED_S)
    return None
