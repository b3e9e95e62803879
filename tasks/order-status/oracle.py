"""Search, choose by town, open the order, subtract what was paid."""

from __future__ import annotations

from typing import Any

from cua_gym.agent.browsing import fill_form, follow
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The numbers are those that the pages show."""
    name, customer, order = params["name"], params["customer"], params["order"]
    desk.focused("Start - Order desk")
    yield from fill_form(desk, {"Name, town": name}, f"Customers like {name}")
    yield from follow(desk, str(customer), f"Customer {customer} ")
    yield from follow(desk, str(order), f"Order {order} ")
    prices = {article: cents for article, _, cents in params["articles"]}
    [row] = [row for row in params["orders"] if row[0] == order]
    left = prices[row[2]] * row[3]
    left -= sum(cents for _, number, _, cents in params["payments"] if number == order)
    return f"{left / 100:.2f} {order}"
