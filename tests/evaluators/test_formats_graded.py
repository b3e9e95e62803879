"""A whole grading of files of every format at once, in the grader's own process and sandbox."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cua_gym.grading.checkpoints import Checkpoint, Rubric
from cua_gym.grading.grade import grade
from cua_gym.grading.items import MANIFEST, VERSION
from cua_gym.grading.outcome import Outcome
from cua_gym.grading.probes import Probe

from . import test_archives, test_documents, test_pdf, test_slides, test_spreadsheet_looks
from .conftest import ROOT
from .test_spreadsheets import book, ods


@dataclass(frozen=True)
class Asked:
    """What a task asks, as the grader takes it."""

    probes: tuple[Probe, ...]
    rubric: Rubric


Case = tuple[str, bytes, dict[str, Any]]


def graded(folder: Path, cases: list[Case]) -> Outcome:
    """One grading of all of them."""
    evidence, hidden = folder / "evidence", folder / "hidden"
    evidence.mkdir()
    hidden.mkdir()
    contents = [("submission", json.dumps({"kind": "submit"}).encode())]
    contents += [(f"e{number}", data) for number, (_, data, _) in enumerate(cases)]
    items = []
    for name, data in contents:
        (evidence / name).write_bytes(data)
        entry = {"guest": f"/{name}", "kind": "file", "size": len(data), "stored": name}
        entry["sha256"] = hashlib.sha256(data).hexdigest()
        items.append({"name": name, "kind": "file", "source": f"/{name}", "state": "present",
                      "note": "", "exit": None, "entries": [entry]})  # fmt: skip
    (evidence / MANIFEST).write_text(json.dumps({"version": VERSION, "items": items}))
    points = tuple(
        Checkpoint(f"{number} {check}", 1 / len(cases), True, check, (f"e{number}",), args=args)
        for number, (check, _, args) in enumerate(cases)
    )
    rubric = Rubric(True, points, hidden, ROOT / "evaluators", {}, {})
    return grade(evidence, Asked((), rubric))


GOOD: list[Case] = [
    *(
        (f"documents.{name}", test_documents.REPORTS["report.odt"], wanted)
        for name, wanted in test_documents.HOLDS
    ),
    *(
        (f"slides.{name}", test_slides.TALKS["talk.pptx"], wanted)
        for name, wanted in test_slides.HOLDS
        if "images" not in wanted  # bytes come from files
    ),
    *(
        (f"spreadsheets.{name}", test_spreadsheet_looks.GOOD, wanted)
        for name, wanted in test_spreadsheet_looks.WANTED.items()
    ),
    ("pdf.text", test_pdf.THREE, {"page": 1, "expected": "First page"}),
    ("archives.format", test_archives.ALL["tar.xz"], {"kind": "tar.xz"}),
    (
        "spreadsheets.cell",
        book({"A1": 2, "A2": "=A1*21"}),
        {"sheet": "S", "cell": "A2", "expected": 42},
    ),
]


@pytest.mark.slow
def test_what_is_right_is_right_in_the_graders_process(tmp_path: Path):
    """With its limits and without a network; LibreOffice's sandbox lies within."""
    outcome = graded(tmp_path, GOOD)
    assert outcome.kind == "scored", outcome
    assert [p.id for p in outcome.checkpoints if not p.passed] == []


CELL = {"sheet": "S", "cell": "B2", "expected": 1}
ROWS = "".join(f"<w:p>{test_documents.run('a')}</w:p>" for _ in range(90_000))
WIDE = '<table:table-cell table:number-columns-repeated="100"><text:p>a</text:p></table:table-cell>'
HIGH = f'<table:table-row table:number-rows-repeated="100">{WIDE * 100}</table:table-row>'
HOSTILE: list[Case] = [
    *(("archives.contents", d, {"expected": {"a": "1"}}) for d in test_archives.HOSTILE.values()),
    *(("pdf.pages", d, {"count": 7}) for d in test_pdf.HOSTILE.values()),
    ("pdf.states", test_pdf.pdf([], content=[test_pdf.SHOWS * 40] * 40), {"facts": [["1"]]}),
    ("spreadsheets.cell", book({"B2": "A" * 32_000}), {**CELL, "expected": "x"}),
    ("spreadsheets.cell", ods("<x" * 200_000), CELL),
    ("spreadsheets.cell", book({"B2": '=REPT("x",A1)*1', "A1": 1}), CELL),
    ("documents.format", test_documents.docx(ROWS), {"phrase": "b", "bold": True}),
    (
        "documents.table",
        test_documents.odt(f"<table:table>{HIGH * 500}</table:table>"),
        {"expected": [["a"]]},
    ),
    ("slides.titles", test_documents.odt("<text:p/>"), {"expected": ["a"]}),
]


@pytest.mark.slow
def test_every_zero_is_given(tmp_path: Path):
    """None of what an agent can leave makes the attempt `unscored`."""
    outcome = graded(tmp_path, HOSTILE)
    assert outcome.kind == "scored", outcome
    assert [p.id for p in outcome.checkpoints if p.value or not p.message] == []
