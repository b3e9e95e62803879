"""Workbooks that LibreOffice cannot compute, several in one grading: zeros, and no way out."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from cua_gym.grading.checkpoints import Checkpoint, Rubric
from cua_gym.grading.grade import grade
from cua_gym.grading.items import MANIFEST, VERSION
from cua_gym.grading.limits import Limits
from cua_gym.grading.probes import Probe

from .conftest import ROOT
from .test_recalculation import book


@dataclass(frozen=True)
class Asked:
    """What a task asks, as the grader takes it."""

    probes: tuple[Probe, ...]
    rubric: Rubric


def endless(number: int) -> bytes:
    """Hours of multiplying, another workbook for each number."""
    product = "*".join(f"(A1:A1000000<>{n + number})" for n in range(40))
    return book({f"B{n}": f"=SUMPRODUCT({product})+{n}" for n in range(1, 40)})


@pytest.mark.slow
def test_three_exhausting_workbooks_are_three_zeros(tmp_path: Path):
    """Each checkpoint has a time of its own, so the last one is judged as the first is."""
    evaluators = tmp_path / "evaluators"
    shutil.copytree(ROOT / "evaluators", evaluators)
    source = evaluators / "recalculation.py"
    source.write_text(source.read_text().replace("CPU_S = 15", "CPU_S = 6"))
    folder = tmp_path / "evidence"
    folder.mkdir()
    contents = {"submission": json.dumps({"kind": "submit"}).encode()}
    contents |= {f"book{n}": endless(n) for n in range(3)} | {"good": book({"B1": "=1+1"})}
    items = []
    for name, data in contents.items():
        (folder / name).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        entry = {"guest": f"/{name}", "kind": "file", "size": len(data), "stored": name,
                 "sha256": digest}  # fmt: skip
        items.append({"name": name, "kind": "file", "source": f"/{name}", "state": "present",
                      "note": "", "exit": None, "entries": [entry]})  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps({"version": VERSION, "items": items}))
    arguments = {"sheet": "S", "cell": "B1", "expected": 2}
    points = tuple(
        Checkpoint(name, 0.25, True, "spreadsheets.cell", (name,), args=arguments)
        for name in contents
        if name != "submission"
    )
    rubric = Rubric(True, points, tmp_path / "hidden", evaluators, {}, {})
    outcome = grade(folder, Asked((), rubric), Limits())
    assert [p.value for p in outcome.checkpoints] == [0.0, 0.0, 0.0, 1.0], outcome
    assert all("cannot compute" in p.message for p in outcome.checkpoints[:3])
