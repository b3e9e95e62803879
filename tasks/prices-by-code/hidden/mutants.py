"""Another way to look a price up, and ways that only look like one."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

from openpyxl import load_workbook

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence
from cua_gym.task.authoring import workbook_bytes


def mutants(params: dict[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the solved workbook; its other columns are computed from the prices."""
    data = solved["book"].bytes()
    shown = load_workbook(io.BytesIO(data), data_only=True)["Orders"]
    first = params["top"] + 1
    rows = range(first, first + len(params["orders"]))
    code = "ABC"[params["columns"].index("Code")]
    codes, prices = ("ABC"[params["listing"].index(name)] for name in ("Code", "Price"))
    other = next(year for year in params["years"] if year != params["year"])

    def looked_up(row: int, year: int = params["year"], shift: int = 0) -> str:
        listed = f"'Prices {year}'!"
        return (
            f"=SUMIF({listed}{codes}$2:{codes}$40,{code}{row + shift},"
            f"{listed}{prices}$2:{prices}$40)"
        )

    def book(column: str, cell: Callable[[int], Any]) -> bytes:
        workbook = load_workbook(io.BytesIO(data))
        for row in rows:
            workbook["Orders"][f"{column}{row}"] = cell(row)
        return workbook_bytes(workbook)

    def one(sheet: str, name: str, value: Any) -> bytes:
        workbook = load_workbook(io.BytesIO(data))
        workbook[sheet][name] = value
        return workbook_bytes(workbook)

    yield keeps("looked up by SUMIF", book=book("D", looked_up))
    yield keeps("amounts that were typed", book=book("E", lambda row: shown[f"E{row}"].value))
    yield breaks("prices that were typed", book=book("D", lambda row: shown[f"D{row}"].value))
    yield breaks("the other year", book=book("D", lambda row: looked_up(row, other)))
    yield breaks("off by a row", book=book("D", lambda row: looked_up(row, shift=1)))
    yield breaks("prices where the amounts belong", book=book("E", lambda row: f"=D{row}"))
    yield breaks("a row too many", book=one("Orders", f"D{rows[-1] + 1}", "=D3"))
    yield breaks("another price in the list", book=one(f"Prices {other}", f"{prices}3", 0.5))
    yield breaks("the total one row lower", book=_moved(data, params["total_cell"]))


def _moved(data: bytes, name: str) -> bytes:
    workbook = load_workbook(io.BytesIO(data))
    sheet = workbook["Orders"]
    sheet[f"H{int(name[1:]) + 1}"] = sheet[name].value
    sheet[name] = None
    return workbook_bytes(workbook)
