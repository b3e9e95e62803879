"""Formulas without a value that holds: LibreOffice computes them, and reaches nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.formula import ArrayFormula

from cua_gym.errors import GradingError
from cua_gym.grading.check import Verdict

from .conftest import ROOT, Judge
from .test_spreadsheet_looks import WANTED, saved
from .test_spreadsheets import ODS, book, ods, stored

FORMULA: dict[str, object] = {"A1": 2, "B2": "=A1*2"}


def cell(judge: Judge, data: bytes, name: str, expected: Any) -> Verdict:
    """What the cell holds, against this."""
    return judge("spreadsheets.cell", data, sheet="S", cell=name, expected=expected)


@pytest.mark.slow
def test_a_formula_that_a_library_wrote_is_computed(judge: Judge):
    """Its value as a spreadsheet program shows it, errors and empty texts too (B142)."""
    data = book(
        {
            **FORMULA,
            "B3": "=B2+1",
            "C1": "=1/0",
            "C2": '=IF(A1=2,"","x")',
            "C3": '=A1&"x"',
            "C4": "=A1=2",
            "C5": "=NOSUCH(1)",
            "C6": "=DATE(2024,2,30)",
        }
    )
    assert cell(judge, data, "B2", 4).passed
    assert cell(judge, data, "b3", 5).passed
    assert not cell(judge, data, "B2", 0).passed
    assert cell(judge, data, "C1", "#DIV/0!").passed
    assert not cell(judge, data, "C1", 0).passed
    assert cell(judge, data, "C2", "").passed
    assert cell(judge, data, "C3", "2x").passed
    assert cell(judge, data, "C4", True).passed
    assert cell(judge, data, "C5", "#NAME?").passed
    assert cell(judge, data, "C6", "2024-03-01").passed
    assert cell(judge, data, "A1", 2).passed


@pytest.mark.slow
def test_a_formula_fills_further_cells(judge: Judge):
    """Which hold nothing in the file that a library wrote."""
    workbook = Workbook()
    workbook.active.title = "S"
    for row in (1, 2, 3):
        workbook.active[f"A{row}"] = row
    workbook.active["B1"] = ArrayFormula("B1:B3", "=A1:A3*2")
    data = saved(workbook)
    assert cell(judge, data, "B3", 6).passed
    assert not cell(judge, data, "B4", 6).passed


@pytest.mark.slow
def test_a_value_that_is_said_to_be_old_is_computed(judge: Judge):
    """What a library stores as 0 everywhere, or what somebody wrote there, is not believed."""
    data = stored(book(FORMULA), "B2", "", "0", anew=True)
    assert cell(judge, data, "B2", 4).passed
    assert not cell(judge, data, "B2", 0).passed
    kept = stored(book(FORMULA), "B2", "", "5")
    assert cell(judge, kept, "B2", 5).passed
    forged = {"sheet": "S", "cell": "B2", "formula": r"=A1\*2", "anew": True}
    assert not judge("spreadsheets.cell", kept, expected=5, **forged).passed
    assert judge("spreadsheets.cell", kept, expected=4, **forged).passed


@pytest.mark.slow
def test_an_ods_formula_without_a_value_is_computed(judge: Judge):
    """And is written as in xlsx for the pattern."""
    data = ods(
        ODS.replace(
            'table:formula="of:=[.A1]*2" office:value-type="float" office:value="7.5">\n'
            " <text:p>7.50</text:p>",
            'table:formula="of:=SUM([.C3:.C4];2)*[$S.$A$9]+5">',
        )
    )
    assert cell(judge, data, "B3", 5).passed
    pattern = r"=SUM\(C3:C4,2\)\*S!\$A\$9\+5"
    wanted = {"sheet": "S", "cell": "B3", "expected": 5, "formula": pattern}
    assert judge("spreadsheets.cell", data, **wanted).passed


@pytest.mark.slow
def test_the_same_workbook_has_the_same_values_tomorrow(judge: Judge):
    """What changes by itself is no value, nor is what depends on it."""
    data = book({"A1": "=TODAY()", "A2": "=A1+1", "A3": "=IFERROR(rand(),1)", "A4": "=2+2"})
    for name in ("A1", "A2", "A3"):
        assert cell(judge, data, name, "#N/A").passed
    assert cell(judge, data, "A4", 4).passed


@pytest.mark.slow
def test_a_formula_reads_no_file_of_the_host(judge: Judge, tmp_path: Path):
    """Not by a link, and not by a path that is put together in it."""
    (tmp_path / "answer.csv").write_text("4711")
    place = f"'{tmp_path.as_uri()}/answer.csv'#$answer.A1"
    hidden = place.replace("file", 'fi"&"le')
    proc = hidden.replace(str(tmp_path), f"/proc/self/root{tmp_path}")
    data = book(
        {
            "A1": f"={place}",
            "A2": f'=INDIRECT("{hidden}")',
            "A3": f'=INDIRECT("{proc}")',
            "A4": "=4",
        }
    )
    for name in ("A1", "A2", "A3"):
        for answer in (4711, "4711"):
            assert not cell(judge, data, name, answer).passed
    assert cell(judge, data, "A4", 4).passed


@pytest.mark.slow
def test_what_libreoffice_cannot_compute_is_a_plain_fail(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
):
    """It works with a workbook of ours, so this one is to blame; and it is tried once."""
    cell(judge, book({"A1": 1}), "A1", 1)
    for name, module in list(sys.modules.items()):
        if name.endswith(".recalculation"):
            monkeypatch.setattr(module, "CPU_S", 4)
    product = "*".join(f"(A1:A1000000<>{n})" for n in range(40))
    data = book(
        {
            "B1": f"=SUMPRODUCT({product})",
            **{f"B{n}": f"=SUMPRODUCT({product})+{n}*B{n - 1}" for n in range(2, 40)},
        }
    )
    found = cell(judge, data, "B1", 1)
    assert "cannot compute" in found.message
    monkeypatch.setenv("PATH", "/nowhere")
    assert not cell(judge, data, "B1", 1).passed


def test_without_libreoffice_the_fault_is_ours(judge: Judge, monkeypatch: pytest.MonkeyPatch):
    """Never a blank or a zero; the message names the package. Other cells need none."""
    monkeypatch.setenv("PATH", "/nowhere")
    data = book({"A1": 3, "B2": "=A1*3"})
    with pytest.raises(GradingError, match="libreoffice-calc-nogui"):
        cell(judge, data, "B2", 9)
    with pytest.raises(GradingError, match="libreoffice-calc-nogui"):
        judge("spreadsheets.unchanged", data, original=data)
    assert cell(judge, data, "A1", 3).passed
    assert not cell(judge, data, "B3", 9).passed


def test_a_libreoffice_that_fails_is_our_fault(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """It fails with a workbook of ours too."""
    for name in ("soffice", "soffice.bin"):
        (tmp_path / name).symlink_to("/bin/false" if name == "soffice.bin" else "/nowhere")
    (tmp_path / "soffice").unlink()
    (tmp_path / "soffice").write_text("#!/bin/false\n")
    (tmp_path / "soffice").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    with pytest.raises(GradingError, match="does not work here"):
        cell(judge, book({"A1": "=4*4"}), "A1", 16)


LOOKS = ["sheets", "values", "format", "chart", "filtered", "conditional"]


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_holds_in_an_xlsx_of_libreoffice(judge: Judge, name: str):
    """It writes the same things in other ways than openpyxl."""
    data = (ROOT / "tests/evaluators/saved/looks.xlsx").read_bytes()
    assert judge(f"spreadsheets.{name}", data, **WANTED[name]).passed


@pytest.mark.slow
def test_a_look_holds_in_an_ods(judge: Judge):
    """It is looked at as xlsx."""
    data = (ROOT / "tests/evaluators/saved/looks.ods").read_bytes()
    for name in LOOKS:
        found = judge(f"spreadsheets.{name}", data, **WANTED[name])
        assert found.passed, found
    near = {**WANTED["format"], "color": "FF0001"}
    assert not judge("spreadsheets.format", data, **near).passed
