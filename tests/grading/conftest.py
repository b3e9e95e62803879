"""A computer in memory, evidence of it, and rubrics made in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cua_gym.grading.checkpoints import Checkpoint, Rubric
from cua_gym.grading.evidence import collect
from cua_gym.grading.probes import Probe
from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.fake import FakeMachine

ROOT = Path(__file__).parents[2]
SUBMIT = {"kind": "submit", "answer": None, "reason": None}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task's variation is to the grader."""

    probes: tuple[Probe, ...]
    rubric: Rubric


@dataclass(slots=True)
class Bench:
    """A machine and a folder for evidence and hidden files."""

    machine: FakeMachine
    folder: Path
    probes: tuple[Probe, ...] = ()
    points: list[Checkpoint] = field(default_factory=list)
    start: StartEvidence | None = None
    feasible: bool = True
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def evidence(self) -> Path:
        return self.folder / "evidence"

    @property
    def hidden(self) -> Path:
        path = self.folder / "hidden"
        path.mkdir(exist_ok=True)
        return path

    def checks(self, source: str) -> None:
        """The task's own checks.py, imports given."""
        head = "from cua_gym.grading.check import *\nfrom cua_gym.grading.check import Verdict\n"
        (self.hidden / "checks.py").write_text(head + source)

    def point(self, check: str, evidence: str = "note", weight: float = 1.0, **more: Any) -> None:
        required = more.pop("required", weight > 0)
        self.points.append(
            Checkpoint(f"c{len(self.points)}", weight, required, check, (evidence,), **more)
        )

    @property
    def asked(self) -> Asked:
        rubric = Rubric(
            feasible=self.feasible,
            checkpoints=tuple(self.points),
            hidden=self.hidden,
            evaluators=ROOT / "evaluators",
            values=self.values,
            inputs={},
        )
        return Asked(self.probes, rubric)

    def begin(self) -> None:
        """The start's evidence, of the machine as it is now."""
        self.start = StartEvidence.take(self.machine, self.probes)

    def collect(self, submission: Mapping[str, Any] = SUBMIT) -> None:
        self.machine.freeze()
        collect(self.machine, self.asked, self.evidence, submission, self.start)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """With one probe, ``note``, for /home/user/note.txt."""
    with FakeMachine(MachineSpec(backend="fake")) as machine:
        yield Bench(machine, tmp_path, (Probe("note", "file", "/home/user/note.txt"),))
