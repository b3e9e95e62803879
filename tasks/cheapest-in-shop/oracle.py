"""Look at the article and the charges, and submit its number."""

from __future__ import annotations

from typing import Any

from cua_gym.agent.browsing import follow
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """Reckoned from what the pages say."""
    sizes = ["small", "medium", "large"]
    charge = dict(zip(sizes, params["charges"][params["country"]], strict=True))
    fits = [row for row in params["articles"] if row[5] and row[2] >= params["enough"]]
    number, name, *_ = min(fits, key=lambda row: row[3] + charge[row[4]])
    desk.focused(", first page - Shop")
    if params["articles"].index([number, name, *_]) >= (len(params["articles"]) + 1) // 2:
        yield from follow(desk, "Second page", "second page - Shop")
    yield from follow(desk, name, f"{name} - Shop")
    yield from follow(desk, "Delivery", "Delivery - Shop")
    return str(number)
