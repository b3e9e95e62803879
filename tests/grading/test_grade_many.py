"""Many folders in one process: streamed, apart from each other, each with its own fate."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cua_gym.grading import grader
from cua_gym.grading.grade import LIMITS, Limits, grade, grade_many
from cua_gym.grading.outcome import Outcome

from .conftest import Asked, Bench

PATIENCE_S = 8.0
"""What hangs costs it; what does not is never given up, however busy the host is."""

WORDS = """
STATE = []

@check
def says(item: Item, *, word: str) -> Verdict:
    '''Accepts the word. Does whatever else the note asks for.'''
    import os, pathlib, sys, time, subprocess
    text = item.text()
    marks = pathlib.Path(os.environ["TMPDIR"], "mark"), pathlib.Path("here")
    found = len(STATE) + sum(m.exists() for m in marks)
    STATE.append(1)
    for mark in marks: mark.touch()
    if text == "kill": os.kill(os.getpid(), 9)
    if text == "kill the grader": os.kill(os.getppid(), 9)
    if text == "hang": time.sleep(600)
    if text == "raise": raise ValueError("broken")
    if text == "burn":
        while True: pass
    if text == "leave": subprocess.Popen(["sleep", "600"], start_new_session=True)
    if text == "read": return Verdict(float(bool(sys.stdin.read())), "what else was asked")
    return Verdict(1.0 if text == word and not found else 0.0, seen=found)
"""


@dataclass(slots=True)
class Copies:
    """Evidence folders that differ in the note alone."""

    bench: Bench

    def make(self, *texts: str) -> list[Path]:
        made = []
        for number, text in enumerate(texts):
            self.bench.machine.shell.write("/home/user/note.txt", text.encode())
            self.bench.collect()
            made.append(self.bench.folder / f"copy{number}")
            shutil.copytree(self.bench.evidence, made[-1])
        return made


@pytest.fixture
def copies(bench: Bench) -> Copies:
    """With one checkpoint: the note says ``yes``."""
    bench.checks(WORDS)
    bench.values["params.word"] = "yes"
    bench.point("checks.says", args={"word": "{params.word}"})
    return Copies(bench)


def told(outcomes: Iterator[Outcome]) -> list[float | str | None]:
    """Score, or reason."""
    return [o.reason if o.score is None else o.score for o in outcomes]


@pytest.mark.parametrize("deed", ["kill", "kill the grader", "hang", "raise"])
def test_a_folder_that_breaks_its_grading_is_unscored_alone(copies: Copies, deed: str):
    """The folders before and after it are scored."""
    asked = copies.bench.asked
    pairs = [(folder, asked) for folder in copies.make("yes", deed, "yes", "no")]
    outcomes = grade_many(pairs, replace(LIMITS, wall_s=PATIENCE_S))
    assert told(outcomes) == [1.0, "grader", 1.0, 0.0]


def test_a_folder_that_exhausts_its_grading_fails_alone(copies: Copies):
    """It has limits of its own, whatever the others took."""
    asked = copies.bench.asked
    pairs = [(folder, asked) for folder in copies.make("burn", "yes", "burn", "yes")]
    assert told(grade_many(pairs, replace(LIMITS, cpu_s=1))) == [0.0, 1.0, 0.0, 1.0]


def test_no_folder_reaches_the_next(copies: Copies):
    """Not by a module's state, scratch files, processes left running or the standard input."""
    asked = copies.bench.asked
    folders = copies.make("yes", "leave", "yes", "read", "yes")
    assert told(grade_many([(f, asked) for f in folders])) == [1.0, 0.0, 1.0, 0.0, 1.0]


def test_broken_evidence_is_unscored_alone(copies: Copies):
    """With the reason evidence; a folder that is not there too."""
    asked = copies.bench.asked
    good, bad = copies.make("yes", "yes")
    (bad / "manifest.json").write_text("{")
    pairs = [(bad, asked), (good, asked), (bad.parent / "nowhere", asked), (good, asked)]
    assert told(grade_many(pairs)) == ["evidence", 1.0, "evidence", 1.0]


def test_folders_of_different_tasks(copies: Copies):
    """Each is asked its own questions; a task whose checks cannot be imported spoils no other."""
    yes = copies.bench.asked
    no = Asked((), replace(yes.rubric, values={"params.word": "no"}))
    broken = Asked((), replace(yes.rubric, hidden=copies.bench.folder / "empty"))
    (folder,) = copies.make("yes")
    asked = [yes, no, broken, broken, yes, no]
    outcomes = list(grade_many((folder, a) for a in asked))
    assert told(iter(outcomes)) == [1.0, 0.0, "grader", "grader", 1.0, 0.0]
    assert "no evaluators module 'checks'" in (outcomes[2].cause or "")


@pytest.mark.parametrize("line", ["import os; os._exit(0)", "import time; time.sleep(600)"])
def test_checks_that_end_or_hang_when_imported(
    copies: Copies, monkeypatch: pytest.MonkeyPatch, line: str
):
    """They are the grader's fault, found once for all folders of the task; others are graded."""
    monkeypatch.setattr(grader, "SLACK_S", 1.0)
    good = copies.bench.asked
    hidden = copies.bench.folder / "other"
    hidden.mkdir()
    (hidden / "checks.py").write_text(f"{line}\n")
    bad = Asked((), replace(good.rubric, hidden=hidden))
    (folder,) = copies.make("yes")
    pairs = [(folder, bad)] * 5 + [(folder, good)]
    assert told(grade_many(pairs, replace(LIMITS, wall_s=PATIENCE_S))) == ["grader"] * 5 + [1.0]


def test_each_outcome_comes_before_the_next_folder_is_asked_for(copies: Copies):
    """So evidence can be made while it is graded, and none has to be kept."""
    asked = copies.bench.asked
    (folder,) = copies.make("yes")
    begun = []

    def pairs() -> Iterator[tuple[Path, Asked]]:
        for number in range(3):
            begun.append(number)
            yield folder, asked

    outcomes = grade_many(pairs())
    assert begun == []
    assert next(outcomes).score == 1.0
    assert begun == [0]
    outcomes.close()  # type: ignore[attr-defined]
    assert begun == [0]


def test_one_folder_or_many_is_the_same(copies: Copies):
    """`grade` is the case of one."""
    asked = copies.bench.asked
    yes, no = copies.make("yes", "no")
    many = list(grade_many([(yes, asked), (no, asked)], Limits()))
    assert many == [grade(yes, asked), grade(no, asked)]


def test_nothing_asked_starts_nothing():
    """No process for an empty list."""
    assert list(grade_many([])) == []
