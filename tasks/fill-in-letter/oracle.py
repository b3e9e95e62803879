"""Replace each word in brackets everywhere, then save under the new name."""

from __future__ import annotations

from typing import Any

from cua_gym.agent.office_moves import replace_all, save_office_as
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """What the list tells needs no second look."""
    desk.focused(params["template"])
    yield from replace_all(desk, {f"[{key}]": value for key, value in params["filled"].items()})
    yield from save_office_as(desk, f"/home/user/{params['folder']}/{params['result']}")
    return None
