"""One form after the other; the desk offers the next when one is saved."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key
from cua_gym.agent.browsing import fill_form, follow
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The note lies in front of the browser."""
    desk.focused(params["note"])
    yield Key("alt+tab")
    desk.focused("Start - Order desk")
    yield from follow(desk, "New order", "New order - ")
    for number, which in enumerate(("first", "second", "third"), params["last"] + 1):
        [[customer, article, quantity, _, due, _]] = params[which]
        fields = {
            "Customer number": str(customer),
            "Article number": article,
            "Quantity": str(quantity),
            "Day of delivery": due,
            "Reference": params[f"{which}_reference"],
        }
        yield from fill_form(desk, fields, f"Saved order {number} ")
    return None
