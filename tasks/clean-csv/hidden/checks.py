"""Who is in the list, and lists that come of a rule not kept."""

from __future__ import annotations

import csv
import io
from typing import Any

from cua_gym.grading.check import Item, Verdict, check, verdict


def _rows(item: Item) -> list[list[str]]:
    lines = csv.reader(io.StringIO(item.text("utf-8-sig"), newline=""))
    return [[cell.strip() for cell in row] for row in lines if row]


@check
def members(item: Item, *, expected: list[str]) -> Verdict:
    """The first column below the header has exactly these, each once, in any order."""
    seen = sorted(row[0] for row in _rows(item)[1:])
    return verdict(seen == sorted(expected), "the members", seen=seen, wanted=sorted(expected))


@check
def one_of(item: Item, *, tables: list[list[list[Any]]]) -> Verdict:
    """The list is one of these tables, its rows in any order, fees with two decimals."""
    seen = sorted(_rows(item))
    wanted = [
        sorted([f"{c:.2f}" if isinstance(c, float) else str(c) for c in row] for row in table)
        for table in tables
    ]
    return verdict(seen in wanted, "the list", seen=seen, wanted=wanted)
