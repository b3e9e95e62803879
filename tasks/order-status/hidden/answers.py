"""What is left to be paid, and what the mistakes come to that suggest themselves."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Amounts in euros: what is left, the total, what was paid; and what the namesake owes."""
    prices = {article: cents for article, _, cents in params["articles"]}

    def total(number: int) -> int:
        [row] = [row for row in params["orders"] if row[0] == number]
        return prices[row[2]] * int(row[3])

    def paid(number: int) -> int:
        return sum(cents for _, order, _, cents in params["payments"] if order == number)

    order, other = params["order"], params["other"]
    return {
        "left": (total(order) - paid(order)) / 100,
        "total": total(order) / 100,
        "paid": paid(order) / 100,
        "namesake": (total(other) - paid(other)) / 100,
    }
