"""What is wanted must be known, or be listed; what is listed must be needed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cua_gym.gates.attempts import SEEN, Attempt
from cua_gym.gates.consistency import consistency
from cua_gym.gates.record import Judgement
from cua_gym.grading.outcome import Outcome
from cua_gym.task import Task

from .conftest import Make
from .sound import SOUND, Edit, make_task


@dataclass(frozen=True, slots=True)
class Recorded:
    """Two attempts without a run: what was collected at the start, and what the oracle did."""

    task: Task
    make: Make
    folder: Path

    def judge(
        self,
        *steps: dict[str, Any],
        seen: tuple[tuple[int, str], ...] = (),
        **start: bytes,
    ) -> Judgement:
        """The gate's verdict on seed 0; each step has ``action`` and ``stdout``."""
        collected = self.make("start/evidence", note=None, **start)
        self.folder.mkdir()
        lines = [
            {
                "step": number, "time": "", "elapsed_s": 0.0, "by": None, "terminated": False,
                "truncated": False, "frame": {"file": ""}, "action": step.get("action"),
                "info": {"shell": {"stdout": step["stdout"]}} if "stdout" in step else {},
            }
            for number, step in enumerate(({}, *steps))
        ]  # fmt: skip
        traj = "".join(json.dumps(line) + "\n" for line in lines)
        (self.folder / "traj.jsonl").write_text(traj)
        (self.folder / SEEN).write_text(json.dumps(seen))
        start_attempt = attempt(collected.folder.parent)
        return consistency(self.task, {0: (start_attempt, attempt(self.folder))})


def attempt(folder: Path) -> Attempt:
    """An attempt that lies in a folder."""
    return Attempt("any", 0, 1, Outcome.scored(1.0, True), "", 1, 0.0, "", folder)


@pytest.fixture
def recorded(tmp_path: Path, make: Make) -> Recorded:
    """The sound task without its list of what is to be found out."""
    edit = Edit(
        replace={
            "hidden/checkpoints.toml": (
                ('[discovered]\n"answer.sum" = "by adding the prices"', ""),
            )
        }
    )  # fmt: skip
    return Recorded(make_task(tmp_path / "suite", edit), make, tmp_path / "oracle")


def total(task: Task) -> str:
    """What the sound task wants for seed 0."""
    return str(task.variation(0).answers["sum"])


def test_nowhere(recorded: Recorded) -> None:
    """The fault names checkpoint, argument, value and what to list."""
    judged = recorded.judge()
    assert not judged.passed
    for words in ("sum-noted", "expected", total(recorded.task), '"answer.sum"'):
        assert words in judged.detail


def test_in_the_start_state(recorded: Recorded) -> None:
    """What was collected of the start state can be known."""
    assert recorded.judge(prices=f"all: {total(recorded.task)}\n".encode()).passed


def test_shown_to_the_oracle(recorded: Recorded) -> None:
    """The output of a command that does not hold it, before it is typed."""
    said = total(recorded.task)
    steps = (
        {"action": {"type": "shell", "command": "sum"}, "stdout": said},
        {"action": {"type": "type", "text": said}},
    )
    assert recorded.judge(*steps).passed


def test_a_title(recorded: Recorded) -> None:
    """What its eyes were shown counts too, if it had not written it before."""
    said = total(recorded.task)
    typed = {"action": {"type": "type", "text": said}}
    assert recorded.judge(typed, seen=((0, f"{said} - Editor"),)).passed


@pytest.mark.parametrize("shell", [True, False])
def test_its_own_words(recorded: Recorded, shell: bool) -> None:
    """What it wrote is no proof when it comes back, from a command or as a title."""
    said = total(recorded.task)
    if shell:
        steps = [{"action": {"type": "shell", "command": f"echo {said}"}, "stdout": said}]
        assert not recorded.judge(*steps).passed
    else:
        typed = {"action": {"type": "type", "text": said}}
        assert not recorded.judge(typed, seen=((1, f"{said} - Editor"),)).passed


def test_listed(tmp_path: Path, make: Make) -> None:
    """What is listed need not stand anywhere."""
    task = make_task(tmp_path / "suite", SOUND)
    assert Recorded(task, make, tmp_path / "oracle").judge().passed


def test_listed_for_nothing(tmp_path: Path, make: Make) -> None:
    """A list that excuses what is given is a fault."""
    task = make_task(tmp_path / "suite", SOUND)
    prices = total(task).encode()
    judged = Recorded(task, make, tmp_path / "oracle").judge(prices=prices)
    assert judged.detail.startswith("[discovered] lists 'answer.sum'")
