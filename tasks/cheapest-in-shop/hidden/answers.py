"""The article, and those that are cheaper where a condition is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Article numbers: of the right one; without delivery, stock or size in mind."""
    charge = dict(
        zip(["small", "medium", "large"], params["charges"][params["country"]], strict=True)
    )
    articles = params["articles"]

    def cheapest(rows: Iterable[list[Any]], *, delivered: bool = True) -> str:
        costs = sorted((row[3] + (charge[row[4]] if delivered else 0), row[0]) for row in rows)
        assert costs[0][0] < costs[1][0]
        return str(costs[0][1])

    fits = [row for row in articles if row[2] >= params["enough"]]
    there = [row for row in articles if row[5]]
    both = [row for row in fits if row[5]]
    return {
        "number": cheapest(both),
        "without_delivery": cheapest(both, delivered=False),
        "not_in_stock": cheapest(fits),
        "too_small": cheapest(there),
    }
