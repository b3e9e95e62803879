"""Open the order, see that no button cancels it, give up."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import GiveUp
from cua_gym.agent.browsing import fill_form, shown
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The page says so where the button would be."""
    order = str(params["order"])
    desk.focused("Start - Order desk")
    yield from fill_form(desk, {"Name, town": order}, f"Order {order} ")
    shown(desk, "push button", "Take this order back")
    yield GiveUp("the order is shipped, and the order desk does not cancel shipped orders")
    return None
