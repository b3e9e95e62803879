"""Grading recorded runs again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cua_gym.record.layout import RunFolder
from cua_gym.run.regrade import regrade
from cua_gym.task import Suite, Task
from tests.run import agents
from tests.run.test_local import plan, rows_of


@pytest.fixture
def attempt(toy_task: Task, tmp_path: Path) -> RunFolder:
    """One attempt that got half of the score."""
    (row,) = rows_of(plan(toy_task, tmp_path / "runs", agents.HalfWorker))
    assert row.outcome.score == 0.5
    assert row.folder is not None
    return RunFolder(row.folder)


def test_the_same_again(attempt: RunFolder) -> None:
    """An unchanged task gives the same outcome, and nothing is written."""
    before = attempt.result.read_bytes()
    notes: list[str] = []
    row = regrade(attempt, save=False, note=notes.append)
    assert (row.task, row.agent, row.seed) == ("type-word", "HalfWorker", 0)
    assert row.outcome.score == 0.5
    assert attempt.result.read_bytes() == before
    assert not notes


def test_a_corrected_check(attempt: RunFolder, suite: Suite) -> None:
    """A corrected check changes the outcome, which is saved when asked for."""
    check = suite.path / "tasks/type-word/hidden/checkpoints.toml"
    check.write_text(check.read_text().replace("toy.says", "toy.begins"))
    notes: list[str] = []
    row = regrade(attempt, save=True, note=notes.append)
    assert row.outcome.score == 1.0
    assert "changed" in notes[0]
    saved = json.loads(attempt.result.read_text())
    assert (saved["score"], saved["agent"]) == (1.0, "HalfWorker")


def test_no_evidence_no_new_grade(toy_task: Task, tmp_path: Path) -> None:
    """An attempt that broke off keeps its outcome."""
    (row,) = rows_of(plan(toy_task, tmp_path, agents.Crasher))
    assert row.folder is not None
    again = regrade(RunFolder(row.folder), save=True, note=lambda _: None)
    assert again.outcome == row.outcome


def test_a_task_that_is_gone(attempt: RunFolder, suite: Suite) -> None:
    """A lost task makes its attempt unscored and ends nothing."""
    (suite.path / "tasks/type-word/task.toml").unlink()
    row = regrade(attempt, save=False, note=lambda _: None)
    assert row.outcome.reason == "grader"


def test_other_values_are_another_question(attempt: RunFolder) -> None:
    """What a seed gave then is what its evidence answers; other values are graded by nobody."""
    episode = json.loads(attempt.episode.read_text())
    attempt.episode.write_text(json.dumps(episode | {"params": {"word": "another"}}))
    row = regrade(attempt, save=False, note=lambda _: None)
    assert row.outcome.reason == "grader"
    assert "no longer gives the values" in (row.outcome.cause or "")
