"""The report, reckoned order by order and without a query."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
from decimal import Decimal
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """The rows, single columns of it, and the rows with repeated orders counted."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(inputs["dump.sql"].decode())
        buyers = database.execute(f"SELECT id, country FROM {params['buyers']}").fetchall()
        orders = database.execute(f"SELECT * FROM {params['orders']} ORDER BY id").fetchall()
    country_of = {number: country or "unknown" for number, country in buyers}
    once = {row[1]: row[1:] for row in orders}

    def rows(found: list[tuple[Any, ...]]) -> list[list[Any]]:
        counts: dict[str, int] = {}
        sums: dict[str, Decimal] = {}
        for _, buyer, placed, amount, status in found:
            if not params["first"] <= _day(placed) <= params["last"] or status == params["void"]:
                continue
            country = country_of.get(buyer, "unknown")
            counts[country] = counts.get(country, 0) + 1
            sums[country] = sums.get(country, Decimal()) + Decimal(str(amount or 0))
        return [[c, counts[c], float(sums[c])] for c in sorted(counts)]

    header = ["country", "orders", "revenue"]
    right = rows(list(once.values()))
    return {
        "rows": [header, *right],
        "orders": {country: count for country, count, _ in right},
        "revenue": {country: revenue for country, _, revenue in right},
        "with_repeats": [header, *rows([row[1:] for row in orders])],
    }


def _day(placed: str) -> str:
    if placed[2] == ".":
        return datetime.datetime.strptime(placed, "%d.%m.%Y").date().isoformat()
    return placed[:10]
