"""Sheets with names or places that are almost right."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from openpyxl import load_workbook

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence
from cua_gym.task.authoring import workbook_bytes


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the solved workbook."""
    data = solved["book"].bytes()
    order: list[str] = params["order"]

    def book(change: Callable[[Any], object]) -> bytes:
        workbook = load_workbook(io.BytesIO(data))
        change(workbook)
        return workbook_bytes(workbook)

    def renamed(names: Mapping[str, str]) -> bytes:
        def change(workbook: Any) -> None:
            found = {workbook[old]: new for old, new in names.items()}
            for number, sheet in enumerate(found):
                sheet.title = f"between {number}"
            for sheet, new in found.items():
                sheet.title = new

        return book(change)

    first, second = order[:2]
    yield keeps("another sheet shown", book=book(lambda b: setattr(b, "active", 2)))
    yield keeps("a wider column", book=book(lambda b: _wider(b[first])))
    yield breaks("two names exchanged", book=renamed({first: second, second: first}))
    yield breaks("in the order in which they were", book=book(lambda b: _as_found(b, params)))
    yield breaks("the last one first", book=book(lambda b: b.move_sheet(order[3], -3)))
    yield breaks("in small letters", book=renamed({name: name.lower() for name in order}))
    yield breaks("one name left as it was", book=renamed({first: "Sheet1"}))
    yield breaks("a blank at the end", book=renamed({first: f"{first} "}))
    yield breaks("an empty sheet more", book=book(lambda b: b.create_sheet("Sheet5")))
    yield breaks("a copy instead of a move", book=book(lambda b: b.copy_worksheet(b[first])))
    yield breaks("one deleted", book=book(lambda b: b.remove(b[second])))
    yield breaks("one hidden", book=book(lambda b: setattr(b[second], "sheet_state", "hidden")))
    yield breaks("a title changed", book=book(lambda b: b[first].__setitem__("A1", "Sheet1")))
    yield breaks("a year changed", book=book(lambda b: b[second].__setitem__("B2", 2024)))


def _wider(sheet: Any) -> None:
    sheet.column_dimensions["B"].width = 30


def _as_found(workbook: Any, params: Mapping[str, Any]) -> None:
    titles = [rows[0][0] for rows in params["sheets"]]
    workbook._sheets.sort(key=lambda sheet: titles.index(sheet.title))
