"""Which deliveries are in the list, and lists that forget a change."""

from __future__ import annotations

import csv
import io
from typing import Any

from cua_gym.grading.check import Item, Verdict, check, verdict


def _rows(item: Item) -> list[list[str]]:
    lines = csv.reader(io.StringIO(item.text("utf-8-sig"), newline=""))
    return [[cell.strip() for cell in row] for row in lines if row]


@check
def deliveries(item: Item, *, orders: list[str]) -> Verdict:
    """The third column below the header has exactly these orders, each once, in any order."""
    seen = sorted(row[2] for row in _rows(item)[1:] if len(row) > 2)
    return verdict(seen == sorted(orders), "the orders", seen=seen, wanted=sorted(orders))


@check
def one_of(item: Item, *, tables: list[list[list[Any]]]) -> Verdict:
    """The list is one of these tables, its rows in any order."""
    seen = sorted(_rows(item))
    wanted = [sorted([str(cell) for cell in row] for row in table) for table in tables]
    return verdict(seen in wanted, "the list", seen=seen, wanted=wanted)
