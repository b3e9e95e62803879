"""How a workbook looks: formats, charts, filters, conditional formats, sheets."""

from __future__ import annotations

import io
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.chart import BarChart, LineChart, Reference
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Alignment, Font, PatternFill

from cua_gym.errors import GradingError

from .conftest import Judge
from .hostile_files import bad_packages, damaged, edited


def saved(workbook: Any) -> bytes:
    """Its bytes."""
    data = io.BytesIO()
    workbook.save(data)
    return data.getvalue()


def made() -> Any:
    """A small table with a bold header, a chart, a filter, a conditional format, a hidden sheet."""
    workbook = Workbook()
    sheet = workbook.active
    sheet.title = "Data"
    for row in (["Name", "Sum"], ["a", 1], ["b", 2.5], ["c", 3]):
        sheet.append(row)
    for cell in sheet[1]:
        cell.font = Font(bold=True, color="FF0000", size=14)
        cell.fill = PatternFill("solid", "FFFF00")
        cell.alignment = Alignment(horizontal="center")
    for row in (2, 3, 4):
        sheet[f"B{row}"].number_format = "0.00%"
    chart = BarChart()
    chart.title = "Sums"
    values = Reference(sheet, min_col=2, min_row=1, max_row=4)
    chart.add_data(values, titles_from_data=True)
    chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=4))
    sheet.add_chart(chart, "E2")
    green = PatternFill("solid", bgColor="00FF00")
    rule = CellIsRule(operator="greaterThan", formula=["2"], fill=green, font=Font(bold=True))
    sheet.conditional_formatting.add("B2:B4", rule)
    sheet.auto_filter.ref = "A1:B4"
    sheet.row_dimensions[3].hidden = True
    workbook.create_sheet("Old").sheet_state = "hidden"
    return workbook


GOOD = saved(made())

WANTED: dict[str, dict[str, Any]] = {
    "sheets": {"expected": ["Data", "Old"], "hidden": ["Old"]},
    "values": {
        "sheet": "Data",
        "cells": "A1:B4",
        "expected": [["Name", "Sum"], ["a", 1], ["b", 2.5], ["c", 3]],
    },
    "format": {
        "sheet": "Data",
        "cells": "A1:B1",
        "bold": True,
        "size": 14,
        "color": "ff0000",
        "fill": "FFFF00",
        "align": "center",
        "number_format": "General",
        "only": True,
    },
    "chart": {
        "sheet": "Data",
        "kind": "column",
        "series": ["Data!B2:B4"],
        "categories": "'Data'!$A$2:$A$4",
        "title": "Sums",
    },
    "filtered": {"sheet": "Data", "cells": "A1:B4", "shown": [2, 4]},
    "conditional": {
        "sheet": "Data",
        "cells": "B2:B4",
        "rule": "greaterThan",
        "values": ["2"],
        "bold": True,
        "fill": "00ff00",
    },
}

NEAR: list[tuple[str, dict[str, Any]]] = [
    ("sheets", {"expected": ["Old", "Data"]}),
    ("sheets", {"expected": ["Data", "old"], "hidden": ["old"]}),
    ("sheets", {"hidden": []}),
    ("sheets", {"expected": ["Data"], "hidden": []}),
    ("values", {"expected": [["Name", "Sum"], ["a", 1], ["b", 2.5], ["c", "3"]]}),
    ("values", {"expected": [["Name", "Sum"], ["b", 2.5], ["a", 1], ["c", 3]]}),
    ("values", {"expected": [["Name", "Sum"], ["a", 1], ["b", 2.5], ["c", ""]]}),
    ("values", {"cells": "A2:B5"}),
    ("format", {"cells": "A1:B2"}),
    ("format", {"cells": "A1:A1"}),
    ("format", {"italic": True}),
    ("format", {"color": "FF0001"}),
    ("format", {"fill": "00FFFF"}),
    ("format", {"size": 1}),
    ("format", {"sheet": "Old"}),
    ("format", {"number_format": "Gen"}),
    ("format", {"cells": "B2:B4", "number_format": "0%"}),
    ("chart", {"kind": "bar"}),
    ("chart", {"series": ["Data!B1:B4"]}),
    ("chart", {"series": ["Data!B2:B4", "Data!A2:A4"]}),
    ("chart", {"categories": "Data!A1:A4"}),
    ("chart", {"title": "Sum"}),
    ("chart", {"sheet": "Old"}),
    ("filtered", {"shown": [2, 3]}),
    ("filtered", {"cells": "A1:B5"}),
    ("conditional", {"cells": "B2:B5"}),
    ("conditional", {"rule": "greaterThanOrEqual"}),
    ("conditional", {"values": ["2.5"]}),
    ("conditional", {"fill": "00FF01"}),
    ("conditional", {"bold": False}),
]


@pytest.mark.parametrize("name", WANTED)
def test_a_look_holds(judge: Judge, name: str):
    """All that was asked is there; an untouched workbook has none of it."""
    found = judge(f"spreadsheets.{name}", GOOD, **WANTED[name])
    assert found.passed, found
    assert not judge(f"spreadsheets.{name}", saved(Workbook()), **WANTED[name]).passed


@pytest.mark.parametrize(("name", "change"), NEAR)
def test_a_near_miss_is_none(judge: Judge, name: str, change: dict[str, Any]):
    """Off by a row, a colour, a word."""
    assert not judge(f"spreadsheets.{name}", GOOD, **{**WANTED[name], **change}).passed


def test_only_means_that_nothing_else_looks_so(judge: Judge):
    """A whole sheet in bold has no bold header."""
    workbook = made()
    workbook["Data"]["A3"].font = Font(bold=True)
    wanted = {"sheet": "Data", "cells": "A1:B1", "bold": True}
    assert judge("spreadsheets.format", saved(workbook), **wanted).passed
    assert not judge("spreadsheets.format", saved(workbook), **wanted, only=True).passed


def test_rows_hidden_by_hand_are_no_filter(judge: Judge):
    """Nor is a filter that shows all."""
    workbook = made()
    workbook["Data"].auto_filter.ref = None
    assert not judge("spreadsheets.filtered", saved(workbook), **WANTED["filtered"]).passed
    workbook = made()
    workbook["Data"].row_dimensions[3].hidden = False
    assert not judge("spreadsheets.filtered", saved(workbook), **WANTED["filtered"]).passed


def test_charts_of_other_kinds(judge: Judge):
    """A line chart is no column chart, and one of several may be the right one."""
    workbook = made()
    line = LineChart()
    line.add_data(Reference(workbook["Data"], min_col=2, min_row=2, max_row=4))
    workbook["Data"].add_chart(line, "E20")
    data = saved(workbook)
    assert judge("spreadsheets.chart", data, **WANTED["chart"]).passed
    wanted = {"sheet": "Data", "kind": "line", "series": ["Data!B2:B4"]}
    assert judge("spreadsheets.chart", data, **wanted).passed
    assert not judge("spreadsheets.chart", GOOD, **wanted).passed


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("format", {"cells": "A:B"}),
        ("format", {"cells": "A1:XFD9999"}),
        ("values", {"expected": [["Name"]]}),
        ("values", {"cells": "A1:A1", "expected": [[""]]}),
        ("sheets", {"hidden": ["No"]}),
        ("filtered", {"shown": [2, 3, 4]}),
    ],
)
def test_what_cannot_be_meant_is_the_authors_fault(judge: Judge, name: str, change: dict[str, Any]):
    """Named, before it gives anybody a wrong score."""
    with pytest.raises(GradingError):
        judge(f"spreadsheets.{name}", GOOD, **{**WANTED[name], **change})


def test_a_format_must_be_named(judge: Judge):
    """Every cell has none of them."""
    with pytest.raises(GradingError, match="at least one"):
        judge("spreadsheets.format", GOOD, sheet="Data", cells="A1:A1")


def test_hostile_workbooks_are_a_plain_fail(judge: Judge):
    """For each check, and copies with a few bytes changed give a verdict each."""
    for what, data in bad_packages(GOOD, "xl/workbook.xml"):
        # What reads the file is one for all checks.
        few = WANTED if what in ("random", "another XML") else ["sheets"]
        for name in few:
            assert not judge(f"spreadsheets.{name}", data, **WANTED[name]).passed, (what, name)
    for part in ("xl/charts/chart1.xml", "xl/styles.xml"):
        another = edited(GOOD, lambda name, data, part=part: b"<a/>" if name == part else data)
        for name in ("format", "chart"):
            judge(f"spreadsheets.{name}", another, **WANTED[name])
    for data in damaged(GOOD, 12):
        for name in ("format", "chart", "conditional", "filtered"):
            judge(f"spreadsheets.{name}", data, **WANTED[name])
