"""Type one expression into the calculator and round what it shows."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The result is a row of its own below the expression, to twelve digits."""
    yield Click(*desk.find("text", "", app="galculator"))
    desk.wait_window("^galculator$", active=True)
    charged = [f"{n}*{price}" for _, n, price, state in params["lines"] if state == "charged"]
    less, tax = (100 - params["discount"]) / 100, params["tax"]
    yield Type(f"({'+'.join(charged)})*{less:.2f}*(1+{tax}/100)")
    yield Key("enter")
    row = desk.node("table cell", r"^[0-9]+\.[0-9]+$", app="galculator")
    return str(Decimal(row["name"]).quantize(Decimal("0.01"), ROUND_HALF_UP))
