"""What counts, and what the mistakes come to that suggest themselves."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Summed in decimals, as money is."""
    rate = Decimal(str(params["rate"]))
    rows = list(params["rows"])
    twice = params["twice"]
    once = list(rows)
    once.remove(twice)

    def total(rows: list[Any], *, cancelled: bool = False, convert: bool = True) -> float:
        amounts = [
            Decimal(str(amount)) * (rate if convert and currency != "EUR" else 1)
            for _, _, state, currency, amount in rows
            if cancelled or state != "cancelled"
        ]
        return float(sum(amounts))

    return {
        "count": sum(row[2] != "cancelled" for row in once),
        "total": total(once),
        "column_sum": total(rows, cancelled=True, convert=False),
        "doubled": total(rows),
        "with_cancelled": total(once, cancelled=True),
    }
