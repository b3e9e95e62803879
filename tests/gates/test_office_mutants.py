"""Mutants of office files: documents, slides and workbooks, as real programs saved them."""

from __future__ import annotations

import io
import shutil
import zipfile

import openpyxl
import pytest

from cua_gym.errors import GradingError
from cua_gym.gates.formats import recalculated
from cua_gym.task.authoring import workbook_bytes

from .conftest import ROOT, At, Judge, Make, point

SAVED = ROOT / "tests/evaluators/saved"


@pytest.fixture
def no_libreoffice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes seconds for each workbook."""
    real = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, *rest, **more: None if name == "soffice" else real(name)
    )


def edited(data: bytes, member: str, *pairs: tuple[str, str]) -> bytes:
    """A package with other texts in one member."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            part = old.read(info)
            if info.filename == member:
                for was, now in pairs:
                    assert was.encode() in part
                    part = part.replace(was.encode(), now.encode())
            new.writestr(info, part)
    return out.getvalue()


PARAGRAPHS = [
    "Report", "The quick brown fox and red end.", "Centred words", "Aims", "one", "twain",
    "three", "Between", "first", "second", "Said he", "Name", "Sum", "x", "Ann", "3", "y",
    "Tabs\tand  two spaces",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "member"), [("report.docx", "word/document.xml"), ("report.odt", "content.xml")]
)
def test_document(make: Make, judged: Judge, name: str, member: str) -> None:
    """Every changed paragraph counts to a check of all of them; how the zip is packed does not."""
    old = (SAVED / name).read_bytes()
    new = edited(old, member, ("Centred line", "Centred words"), (">two<", ">twain<"))
    start, solved = make("start", doc=At(f"/{name}", old)), make("solved", doc=At(f"/{name}", new))
    found = judged(start, solved, point("documents.paragraphs", "doc", expected=PARAGRAPHS))
    assert not found.offenders
    changed = {n.split(":")[2] for n in found.names if n.startswith("altered:doc")}
    assert len(changed) == 2
    assert {"half:doc:first", "half:doc:cut", "repacked:doc:stored"} <= set(found.names)
    assert any(n.startswith("altered:doc:") and n.endswith(":prefixed") for n in found.names)


def test_part_of_a_document(make: Make, judged: Judge) -> None:
    """A check of one of two changed paragraphs is caught."""
    old = (SAVED / "report.docx").read_bytes()
    pairs = ("Centred line", "Centred words"), (">two<", ">twain<")
    new = edited(old, "word/document.xml", *pairs)
    start, solved = make("start", doc=At("/a.docx", old)), make("solved", doc=At("/a.docx", new))
    items = {"expected": ["one", "twain", "three"], "kind": "bullet"}
    found = judged(start, solved, point("documents.items", "doc", **items))
    assert [n for n in found.offenders if n.startswith("reverted:doc:paragraph")]


@pytest.mark.parametrize(
    ("name", "member"), [("talk.pptx", "ppt/slides/slide1.xml"), ("talk.odp", "content.xml")]
)
def test_slides(make: Make, judged: Judge, name: str, member: str) -> None:
    """A changed title counts to a check of the titles."""
    old = (SAVED / name).read_bytes()
    new = edited(old, member, (">Annual plan<", ">Annual report<"))
    start, solved = (
        make("start", talk=At(f"/{name}", old)),
        make("solved", talk=At(f"/{name}", new)),
    )
    titles = ["Annual report", "Aims", "Picture", ""]
    found = judged(start, solved, point("slides.titles", "talk", expected=titles))
    assert not found.offenders
    assert [n for n in found.names if n.startswith("altered:talk:paragraph")]


def book(total: object, kind: str = "Sum", extra: object = None) -> bytes:
    """A workbook with a total in B4, saved by a library."""
    made = openpyxl.Workbook()
    sheet = made.active
    sheet.title = "Orders"
    for row in (["Item", "Amount"], ["a", 1.5], ["b", 2.5], [kind, total]):
        sheet.append(row)
    sheet["D1"] = extra
    return workbook_bytes(made)


@pytest.mark.usefixtures("no_libreoffice")
def test_workbook(make: Make, judged: Judge) -> None:
    """Every changed cell counts, where it stands too; who saved the file does not."""
    start = make("start", book=At("/a.xlsx", book(None)))
    solved = make("solved", book=At("/a.xlsx", book(400, "Total")))
    cells = {"sheet": "Orders", "cells": "A4:B4", "expected": [["Total", 400]]}
    found = judged(start, solved, point("spreadsheets.values", "book", **cells))
    assert not found.offenders
    assert {
        "half:book:first",
        "reverted:book:Orders!A4",
        "altered:book:Orders!A4:cut",
        "altered:book:Orders!B4:digit",
        "altered:book:Orders!B4:nan",
        "altered:book:Orders!B4:empty",
        "moved:book:Orders!B4",
        "repacked:book:compressed",
        "resaved:book:openpyxl",
    } <= set(found.names)
    # Beside A4 there is no room.
    assert not [n for n in found.names if "Orders!B3" in n or n == "moved:book:Orders!A4"]


@pytest.mark.usefixtures("no_libreoffice")
def test_part_of_a_workbook(make: Make, judged: Judge) -> None:
    """A check of one of two changed cells is caught."""
    start = make("start", book=At("/a.xlsx", book(None)))
    solved = make("solved", book=At("/a.xlsx", book(4, "Total")))
    one = {"sheet": "Orders", "cell": "B4", "expected": 4}
    found = judged(start, solved, point("spreadsheets.cell", "book", **one))
    assert "reverted:book:Orders!A4" in found.offenders
    assert not [n for n in found.offenders if "B4" in n]


@pytest.mark.usefixtures("no_libreoffice")
def test_sheet_name(make: Make, judged: Judge) -> None:
    """A new name of a sheet is altered; the cells below it are the old ones."""
    renamed = edited(book(4), "xl/workbook.xml", ('"Orders"', '"Orders 2025"'))
    start, solved = (
        make("start", book=At("/a.xlsx", book(4))),
        make("solved", book=At("/", renamed)),
    )
    found = judged(start, solved, point("spreadsheets.sheets", "book", expected=["Orders 2025"]))
    assert not found.offenders
    assert "altered:book:Orders-2025:name-digit" in found.names
    assert not [n for n in found.names if "!" in n]


@pytest.mark.slow
def test_saved_by_libreoffice(make: Make, judged: Judge) -> None:
    """A workbook with a formula, whoever saved it: LibreOffice, the library, or both in turn."""
    if shutil.which("soffice") is None:
        pytest.skip("needs LibreOffice")
    start = make("start", book=At("/a.xlsx", book(None)))
    data = recalculated(book("=SUM(B2:B3)"), "xlsx")
    solved = make("solved", book=At("/a.xlsx", data))
    total = {"sheet": "Orders", "cell": "B4", "expected": 4}
    found = judged(start, solved, point("spreadsheets.cell", "book", **total))
    assert not found.offenders
    assert {"resaved:book:libreoffice", "resaved:book:openpyxl"} <= set(found.names)


@pytest.mark.slow
def test_not_saved_by_libreoffice() -> None:
    """A workbook that LibreOffice cannot save is an error that says so."""
    if shutil.which("soffice") is None:
        pytest.skip("needs LibreOffice")
    with pytest.raises(GradingError, match="cannot be saved anew"):
        recalculated(edited(book(4), "xl/workbook.xml", ("<sheets>", "<")), "xlsx")


@pytest.mark.usefixtures("no_libreoffice")
def test_ods(make: Make, judged: Judge) -> None:
    """In an ods the changed cells count likewise, wherever they are moved to."""
    old = (SAVED / "looks.ods").read_bytes()
    value = 'office:value="{}" calcext:value-type="percentage"><text:p>{}00.00%'
    pairs = (">Name<", ">Label<"), (value.format(1, 1), value.format(4, 4))
    new = edited(old, "content.xml", *pairs)
    start, solved = make("start", book=At("/a.ods", old)), make("solved", book=At("/a.ods", new))
    cells = {"sheet": "Data", "cells": "A1:B2", "expected": [["Label", "Sum"], ["a", 4]]}
    found = judged(start, solved, point("spreadsheets.values", "book", **cells))
    assert not found.offenders
    assert {
        "half:book:first",
        "reverted:book:Data!A1",
        "altered:book:Data!A1:appended",
        "altered:book:Data!B2:digit",
        "altered:book:Data!B2:empty",
        "moved:book:Data!B2",
        "repacked:book:stored",
    } <= set(found.names)
    assert {n.split(":")[2] for n in found.names if "!" in n} == {"Data!A1", "Data!B2"}
