"""Other formulas that are right, and right values in the wrong places."""

from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from openpyxl import load_workbook

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence
from cua_gym.task.authoring import workbook_bytes


def mutants(params: dict[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the solved workbook."""
    data = solved["book"].bytes()
    values = load_workbook(io.BytesIO(data), data_only=True)["Summary"]
    count_cell, total_cell = params["count_cell"], params["total_cell"]
    count, total = values[count_cell].value, values[total_cell].value

    def book(cells: dict[str, Any], sheet: str = "Summary") -> bytes:
        workbook = load_workbook(io.BytesIO(data))
        for name, value in cells.items():
            workbook[sheet][name] = value
        return workbook_bytes(workbook)

    both = {count_cell: count, total_cell: total}
    yield keeps("numbers that were typed", book=book(both))
    yield keeps("a sum of single amounts", book=book({**both, total_cell: _sum(params)}))
    column = [Decimal(str(row[4])) for row in params["rows"]]
    yield breaks("the column's sum", book=book({**both, total_cell: float(sum(column))}))
    yield breaks("changed places", book=book({count_cell: total, total_cell: count}))
    yield breaks("a cent less", book=book({**both, total_cell: round(total - 0.01, 2)}))
    yield breaks("text that looks like it", book=book({**both, total_cell: f"{total:.2f}"}))
    yield breaks("beside its cell", book=book({**both, total_cell: None, "F1": total}))
    yield breaks("with a helper column", book=book({"H9": total}, params["sheet"]))
    yield breaks("a note removed", book=book({"A2": None}, "Notes"))


def _sum(params: dict[str, Any]) -> str:
    """``=12.5+0.93*20+...``, without what does not count."""
    rows = list(params["rows"])
    rows.remove(params["twice"])
    parts = [
        f"{amount}" if currency == "EUR" else f"{params['rate']}*{amount}"
        for _, _, state, currency, amount in rows
        if state != "cancelled"
    ]
    return "=" + "+".join(parts)
