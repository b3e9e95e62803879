"""The reports that come of a step left out."""

from __future__ import annotations

import csv
import io
from typing import Any

from cua_gym.grading.check import Item, Verdict, check, verdict


@check
def one_of(item: Item, *, tables: list[list[list[Any]]]) -> Verdict:
    """The report is one of these tables, its rows in any order. It refuses a row more or less."""
    rows = csv.reader(io.StringIO(item.text(), newline=""))
    seen = sorted([cell.strip() for cell in row] for row in rows if row)
    wanted = [sorted([str(cell) for cell in row] for row in table) for table in tables]
    return verdict(seen in wanted, "the report", seen=seen, wanted=wanted)
