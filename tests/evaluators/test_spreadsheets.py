"""Workbooks: values as a person would see them, hostile files refused."""

from __future__ import annotations

import datetime
import io
import random
import re
import zipfile

import pytest
from openpyxl import Workbook

from .conftest import Judge
from .hostile_files import ENTITIES, edited


def book(cells: dict[str, object], sheet: str = "S") -> bytes:
    """An xlsx with these cells."""
    workbook = Workbook()
    workbook.active.title = sheet
    for name, value in cells.items():
        workbook.active[name] = value
    data = io.BytesIO()
    workbook.save(data)
    return data.getvalue()


ODS = """<?xml version="1.0"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>
 <table:table table:name="S"><table:table-row table:number-rows-repeated="2"><table:table-cell
 table:number-columns-repeated="1024"/></table:table-row><table:table-row><table:table-cell/>
 <table:table-cell table:formula="of:=[.A1]*2" office:value-type="float" office:value="7.5">
 <text:p>7.50</text:p></table:table-cell><table:table-cell office:value-type="string"><text:p>hi
</text:p></table:table-cell></table:table-row></table:table></office:spreadsheet></office:body>
</office:document-content>"""


def ods(content: str = ODS) -> bytes:
    """A minimal OpenDocument workbook."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
    return data.getvalue()


def test_a_cell_has_its_value_in_its_place(judge: Judge):
    """Not as text, not elsewhere, not empty for 0."""
    wanted = {"sheet": "S", "cell": "B2", "expected": 0}
    assert judge("spreadsheets.cell", book({"B2": 0}), **wanted).passed
    for other in ({"B2": "0"}, {"B3": 0}, {"B2": False}, {}, {"B2": " "}):
        assert not judge("spreadsheets.cell", book(other), **wanted).passed
    assert not judge("spreadsheets.cell", book({"B2": 0}, "T"), **wanted).passed


def test_an_ods_cell_is_found_behind_repeated_rows(judge: Judge):
    """Row 3, second column, with the formula's cached value."""
    assert judge("spreadsheets.cell", ods(), sheet="S", cell="B3", expected=7.5).passed
    assert not judge("spreadsheets.cell", ods(), sheet="S", cell="B2", expected=7.5).passed


def test_collateral_changes_are_seen(judge: Judge):
    """Every cell but the named ones must have its original value."""
    before = book({"A1": 1, "A2": "x"})
    after = book({"A1": 1, "A2": "x", "F2": 5})
    free = {"original": before, "except_cells": ["S!F2"]}
    assert judge("spreadsheets.unchanged", after, **free).passed
    assert not judge("spreadsheets.unchanged", after, original=before).passed
    assert not judge("spreadsheets.unchanged", book({"A1": 2, "A2": "x"}), **free).passed
    assert not judge("spreadsheets.unchanged", book({"A1": 1}), **free).passed


def edited_xml(data: bytes, part: str, pattern: str, new: str) -> bytes:
    """A workbook with one place in a part replaced."""

    def edit(name: str, content: bytes) -> bytes:
        if name != part:
            return content
        text, times = re.subn(pattern, lambda _: new, content.decode())
        assert times == 1
        return text.encode()

    return edited(data, edit)


def stored(data: bytes, cell: str, kind: str, value: str, anew: bool = False) -> bytes:
    """An openpyxl workbook with a formula's value stored, as spreadsheet programs do."""
    sheet = "xl/worksheets/sheet1.xml"
    pattern = f'(?<=<c r="{cell}")([^>]*)>(<f>[^<]*</f>)(<v ?/>|<v></v>)'
    formula = re.search(pattern, zipfile.ZipFile(io.BytesIO(data)).read(sheet).decode())
    assert formula is not None
    data = edited_xml(data, sheet, pattern, f" {kind}>{formula[2]}<v>{value}</v>")
    if anew:
        return data
    return edited_xml(data, "xl/workbook.xml", ' fullCalcOnLoad="1"', "")


def test_a_range_of_formulas(judge: Judge):
    """Each must be like the pattern, and come to its value; a number that was typed is none."""
    cells = {"A1": 2, "A2": 3, "B1": "=A1*2", "B2": "=A2*2"}
    data = stored(stored(book(cells), "B1", "", "4", anew=True), "B2", "", "6")
    wanted = {"sheet": "S", "cells": "B1:B3", "expected": [[4], [6], [""]]}
    assert judge("spreadsheets.values", data, **wanted).passed
    assert judge("spreadsheets.values", data, formula=r"=A\d\*2", **wanted).passed
    assert not judge("spreadsheets.values", data, formula=r"=A1\*2", **wanted).passed
    typed = stored(book({**cells, "B2": 6}), "B1", "", "4")
    assert judge("spreadsheets.values", typed, **wanted).passed
    found = judge("spreadsheets.values", typed, formula=".+", **wanted)
    assert not found.passed
    assert "B2: no such formula" in found.message


def test_the_kind_is_told_by_the_content(judge: Judge):
    """Whatever the name says."""
    assert judge("spreadsheets.kind", book({"A1": 1}), expected="xlsx").passed
    assert judge("spreadsheets.kind", ods(), expected="ods").passed
    assert not judge("spreadsheets.kind", ods(), expected="xlsx").passed
    assert not judge("spreadsheets.kind", b"no workbook", expected="xlsx").passed


def test_a_formulas_empty_text_is_a_value(judge: Judge):
    """What Calc writes for =IF(A1=2,"","x") is no missing value."""
    data = stored(book({"A1": 2, "A2": "=A1"}), "A2", 't="str"', "")
    assert judge("spreadsheets.cell", data, sheet="S", cell="A1", expected=2).passed
    assert judge("spreadsheets.cell", data, sheet="S", cell="A2", expected="").passed


def test_a_stray_cell_far_away_costs_nothing(judge: Judge):
    """The box between it and A1 is never made: its 17 thousand million cells could not be."""
    data = book({"A1": 1, "XFD1048576": 1})
    assert judge("spreadsheets.cell", data, sheet="S", cell="A1", expected=1).passed


def test_a_workbook_of_another_program_is_unchanged(judge: Judge):
    """Dates and times are the same saved as ods; another day is not."""
    original = book({"A1": datetime.datetime(2024, 1, 2), "B1": datetime.time(9, 30)})
    row = """<table:table-row>
     <table:table-cell office:value-type="date" office:date-value="2024-01-02"/>
     <table:table-cell office:value-type="time" office:time-value="PT09H30M00S"/>
    </table:table-row></table:table>"""
    same = ods(
        ODS[: ODS.index("<table:table-row")] + row + ODS[ODS.index("</office:spreadsheet>") :]
    )
    assert judge("spreadsheets.unchanged", same, original=original).passed
    other = book({"A1": datetime.datetime(2024, 1, 3), "B1": datetime.time(9, 30)})
    assert not judge("spreadsheets.unchanged", other, original=original).passed
    free = {"original": original, "except_cells": ["S!a1"]}
    assert judge("spreadsheets.unchanged", other, **free).passed


def test_ods_text_is_read_as_it_is_shown(judge: Judge):
    """Spaces in a row and tabs are elements; a comment is not part of the cell."""
    text = '<office:annotation><text:p>no</text:p></office:annotation><text:p>a<text:s text:c="2"/>'
    data = ods(ODS.replace("<text:p>hi\n", text + "b<text:tab/>c"))
    assert judge("spreadsheets.cell", data, sheet="S", cell="C3", expected="a  b\tc").passed


def test_damage_is_never_the_graders_fault(judge: Judge):
    """300 copies with a few bytes changed give a verdict each."""
    rng = random.Random(1)
    for good in (book({"A1": 1, "B2": "x"}), ods()):
        for _ in range(150):
            data = bytearray(good)
            for _ in range(rng.randint(1, 20)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            judge("spreadsheets.cell", bytes(data), sheet="S", cell="B2", expected="x")


def bomb() -> bytes:
    """A small zip that unpacks to 110 MB."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"")
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 110_000_000)
    return data.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04",
        book({"A1": 1})[:-40],
        b"a,b\n",
        ods("<x"),
        ods(ODS.replace("1024", "9e9")),
        ods(ODS.replace("1024", "20000")),
        ods(ODS.replace('"7.5"', '"x"')),
    ],
)
def test_broken_workbooks_are_a_plain_fail(judge: Judge, data: bytes):
    """Never a hang, never the grader's fault."""
    assert not judge("spreadsheets.cell", data, sheet="S", cell="B3", expected=1).passed


def test_a_workbook_of_millions_of_cells_is_a_plain_fail(judge: Judge):
    """Refused before it is parsed, which would take minutes."""
    rows = "<row><c><v>1</v></c></row>" * 500_000
    sheet = "xl/worksheets/sheet1.xml"
    data = edited_xml(book({"A1": 1}), sheet, "</sheetData>", rows + "</sheetData>")
    found = judge("spreadsheets.cell", data, sheet="S", cell="A1", expected=1)
    assert "no workbook of a task" in found.message


def test_a_zip_bomb_is_a_plain_fail(judge: Judge):
    """It is refused by what it claims, before it is unpacked."""
    found = judge("spreadsheets.cell", bomb(), sheet="S", cell="A1", expected=1)
    assert "no workbook of a task" in found.message


def test_an_entity_bomb_is_a_plain_fail(judge: Judge):
    """A billion laughs are refused by the parser."""
    hostile = ODS.replace('<?xml version="1.0"?>', '<?xml version="1.0"?>' + ENTITIES)
    hostile = hostile.replace(">hi", ">&j;")
    assert not judge("spreadsheets.cell", ods(hostile), sheet="S", cell="A1", expected=1).passed
