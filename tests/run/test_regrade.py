"""Grading recorded runs again: what changed, why, and nothing written over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cua_gym.errors import MachineLost
from cua_gym.record.layout import RunFolder, attempts
from cua_gym.run.regrade import Regraded, regrade
from cua_gym.task import Suite, Task
from tests.run import agents
from tests.run.test_local import plan, rows_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def attempt(toy_task: Task, tmp_path: Path) -> RunFolder:
    """One attempt that got half of the score."""
    (row,) = rows_of(plan(toy_task, tmp_path / "runs", agents.HalfWorker))
    assert row.outcome.score == 0.5
    assert row.folder is not None
    return RunFolder(row.folder)


def again(*folders: RunFolder, save: bool = False) -> list[Regraded]:
    """What is said of these attempts at noon."""
    return list(regrade(folders, save=save, now=lambda: NOON))


@pytest.fixture
def checkpoints(suite: Suite) -> Path:
    """The file that says how the toy task is graded."""
    return suite.path / "tasks/type-word/hidden/checkpoints.toml"


def edit(path: Path, old: str, new: str) -> None:
    """Replace one text, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_same_again(attempt: RunFolder) -> None:
    """An unchanged task gives the same outcome, and nothing is written."""
    before = {p: p.read_bytes() for p in attempt.path.rglob("*") if p.is_file()}
    (found,) = again(attempt)
    assert (found.row.task, found.row.agent, found.row.seed) == ("type-word", "HalfWorker", 0)
    assert (found.row.outcome.score, found.before, found.changed) == (
        0.5, found.row.outcome, False,
    )  # fmt: skip
    assert (found.differences, found.reasons, found.compared) == ([], (), "result.json")
    (found,) = again(attempt, save=True)
    assert found.saved is None  # no news
    assert before == {p: p.read_bytes() for p in attempt.path.rglob("*") if p.is_file()}


def test_what_graded_it_is_recorded(attempt: RunFolder, checkpoints: Path) -> None:
    """With what was asked for and with the outcome; it changes with the checks alone."""
    first = json.loads(attempt.result.read_text())["grader_hash"]
    assert first == json.loads(attempt.episode.read_text())["grader_hash"]
    for name in ("oracle.py", "hidden/mutants.py"):
        path = checkpoints.parent.parent / name
        path.write_text(path.read_text() + "\n# a word\n" if path.exists() else "# a word\n")
        assert again(attempt)[0].row.outcome.grader_hash == first
    evaluators = checkpoints.parents[3] / "evaluators"
    (evaluators / "other.py").write_text('"""Not used."""\n')
    assert again(attempt)[0].row.outcome.grader_hash == first
    edit(evaluators / "toy.py", "@check\ndef says", "from . import other\n\n\n@check\ndef says")
    second = again(attempt)[0].row.outcome.grader_hash
    assert second != first
    (evaluators / "other.py").write_text('"""Used."""\n')
    assert again(attempt)[0].row.outcome.grader_hash not in (first, second)


def test_a_corrected_check(attempt: RunFolder, checkpoints: Path) -> None:
    """Each verdict before and after, why, and the new outcome beside the old one."""
    old = attempt.result.read_bytes()
    edit(checkpoints, "toy.says", "toy.begins")
    edit(checkpoints, 'args = { expected = "toy" }', 'args = { expected = "to" }')
    (found,) = again(attempt, save=True)
    assert (found.before and found.before.score, found.row.outcome.score) == (0.5, 1.0)
    assert found.changed
    (difference,) = found.differences
    assert (difference.id, difference.kind) == ("word-saved", "verdict")
    assert (difference.before and difference.before.value, difference.after) == (
        0.0, found.row.outcome.checkpoints[0],
    )  # fmt: skip
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "the task has changed", "its checks have changed",
    ]  # fmt: skip
    assert attempt.result.read_bytes() == old
    assert found.saved == attempt.path / "result-2.json"
    saved = json.loads(found.saved.read_text())
    assert (saved["score"], saved["agent"], saved["steps"]) == (1.0, "HalfWorker", 3)
    assert saved["grader_hash"] == found.row.outcome.grader_hash
    assert saved["graded"]["date"] == NOON.isoformat()
    assert saved["graded"]["instead_of"] == "result.json"


def test_the_outcome_in_force_is_the_newest(attempt: RunFolder, checkpoints: Path) -> None:
    """Compared with that, and saved again only when there is news."""
    edit(checkpoints, "toy.says", "toy.begins")
    edit(checkpoints, 'args = { expected = "toy" }', 'args = { expected = "to" }')
    again(attempt, save=True)
    (found,) = again(attempt, save=True)
    assert (found.compared, found.changed, found.saved) == ("result-2.json", False, None)
    edit(checkpoints, '{ expected = "to" }', '{ expected = "no" }')
    (found,) = again(attempt, save=True)
    assert found.changed
    assert [p.name for p in attempt.results] == ["result.json", "result-2.json", "result-3.json"]
    assert [r.partition(":")[0] for r in found.reasons][1:] == ["its checks have changed"]


def test_another_grader_that_says_the_same_is_news(attempt: RunFolder, checkpoints: Path) -> None:
    """Its hash is saved; the verdict did not change."""
    edit(checkpoints, 'args = { expected = "toy" }', 'args = { expected = "to" }')
    (found,) = again(attempt, save=True)
    assert not found.changed
    assert found.saved is not None


def test_a_message_alone_is_no_change(attempt: RunFolder, suite: Suite) -> None:
    """A check that words it better changes no verdict."""
    edit(suite.path / "evaluators/toy.py", '"the note"', '"what was noted"')
    (found,) = again(attempt)
    assert (found.changed, found.differences) == (False, [])
    assert found.row.outcome.checkpoints[0].message == "what was noted"


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        ('id = "begun"', 'id = "begins"', {"begins": "added", "begun": "removed"}),
        ("weight = 0.5", "weight = 0.25", {"word-saved": "weight"}),
        ('id = "begun"\n', 'id = "begun"\nrequired = true\n', {"word-saved": "weight"}),
    ],
)
def test_checkpoints_that_came_went_or_weigh_something_else(
    attempt: RunFolder, checkpoints: Path, old: str, new: str, kinds: dict[str, str]
) -> None:
    """Each is told, though its check says the same."""
    text = checkpoints.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    if "0.25" in new:
        text = text.replace("weight = 0.5", "weight = 0.75", 1)
        kinds = {**kinds, "begun": "weight"}
    checkpoints.write_text(text)
    (found,) = again(attempt)
    assert {d.id: d.kind for d in found.differences} == kinds


def test_no_evidence_no_new_grade(toy_task: Task, tmp_path: Path) -> None:
    """An attempt that broke off keeps its outcome, and nothing is written."""
    (row,) = rows_of(plan(toy_task, tmp_path, agents.Crasher))
    assert row.folder is not None
    (found,) = again(RunFolder(row.folder), save=True)
    assert (found.row.outcome, found.changed, found.saved) == (row.outcome, False, None)
    assert "nothing to grade" in found.reasons[0]


def test_a_machine_that_never_started(toy_task: Task, tmp_path: Path) -> None:
    """It has an outcome and nothing else."""

    def start(*_: Any, **__: Any) -> Any:
        raise MachineLost("gone")

    (row,) = rows_of(plan(toy_task, tmp_path, agents.Worker, options={"start": start}))
    assert row.folder is not None
    (found,) = again(RunFolder(row.folder))
    assert (found.row.task, found.row.agent, found.row.seed) == ("type-word", "Worker", 0)
    assert found.row.outcome.reason == "machine"


def test_a_task_that_is_gone(attempt: RunFolder, suite: Suite) -> None:
    """A lost task makes its attempt unscored and ends nothing; that is no outcome to keep."""
    (suite.path / "tasks/type-word/task.toml").unlink()
    (found,) = again(attempt, save=True)
    assert (found.row.outcome.reason, found.saved) == ("grader", None)


def test_other_values_are_another_question(attempt: RunFolder) -> None:
    """What a seed gave then is what its evidence answers; other values are graded by nobody."""
    episode = json.loads(attempt.episode.read_text())
    attempt.episode.write_text(json.dumps(episode | {"params": {"word": "another"}}))
    (found,) = again(attempt)
    assert found.row.outcome.reason == "grader"
    assert "no longer gives the values" in (found.row.outcome.cause or "")


def change(path: Path, do: Callable[[dict[str, Any]], object]) -> None:
    """Alter a JSON file."""
    data = json.loads(path.read_text())
    do(data)
    path.write_text(json.dumps(data))


def older_manifest(folder: RunFolder) -> None:
    """Evidence of a layout to come."""
    change(folder.evidence / "manifest.json", lambda d: d.update(version=7))


def no_params(folder: RunFolder) -> None:
    """A description that lacks something."""
    change(folder.episode, lambda d: d.pop("params"))


def no_episode(folder: RunFolder) -> None:
    """No description at all."""
    folder.episode.unlink()


def broken_episode(folder: RunFolder) -> None:
    """A description that was cut off."""
    folder.episode.write_text('{"task": ')


def no_evidence(folder: RunFolder) -> None:
    """Somebody saved room."""
    shutil.rmtree(folder.evidence)


def altered(folder: RunFolder) -> None:
    """Somebody helped."""
    (folder.evidence / "note.txt").write_text("better")


def not_collected(folder: RunFolder) -> None:
    """The task asks for more than it did."""
    change(folder.evidence / "manifest.json", lambda d: d["items"].pop())


@pytest.mark.parametrize(
    ("spoil", "reason", "cause"),
    [
        (older_manifest, "evidence", "is of version 7, and this cua_gym reads 1"),
        (no_params, "evidence", "episode.json lacks params: another version"),
        (no_episode, "evidence", "episode.json lacks task, seed, params"),
        (broken_episode, "evidence", "episode.json cannot be read"),
        (no_evidence, "evidence", "not a manifest"),
        (altered, "evidence", "was changed after it was collected"),
        (not_collected, "evidence", "checkpoint word-saved wants the evidence 'note', which was"),
    ],
)
def test_a_record_that_lacks_something_says_what(
    attempt: RunFolder, spoil: Callable[[RunFolder], None], reason: str, cause: str
) -> None:
    """It is unscored for that; the old outcome stays where it is."""
    before = attempt.result.read_bytes()
    spoil(attempt)
    (found,) = again(attempt)
    assert (found.row.task, found.row.agent, found.changed) == ("type-word", "HalfWorker", True)
    assert found.row.outcome.reason == reason
    assert cause in (found.row.outcome.cause or "")
    assert attempt.result.read_bytes() == before


def test_a_record_of_an_older_version_is_graded(attempt: RunFolder) -> None:
    """What it does not say is not compared."""
    for path in (attempt.episode, attempt.result):
        for key in ("task_hash", "grader_hash", "versions", "task_folder"):
            change(path, lambda data, key=key: data.pop(key, None))
    change(attempt.evidence / "manifest.json", lambda d: [i.pop("at") for i in d["items"]])
    change(attempt.result, lambda d: [c.pop("exhausted") for c in d["checkpoints"]])
    change(attempt.result, lambda d: d["checkpoints"][0].update(colour="green"))
    (found,) = again(attempt)
    # Its folder is not recorded, and no task of that name is bundled.
    assert found.row.outcome.reason == "grader"
    task_folder = attempt.path.parents[4] / "suite/tasks/type-word"
    change(attempt.episode, lambda d: d.update(task_folder=str(task_folder)))
    (found,) = again(attempt)
    assert (found.row.outcome.score, found.changed, found.reasons) == (0.5, False, ())
    change(attempt.result, lambda d: d.update(score=0.75))
    (found,) = again(attempt)
    assert found.reasons == ("what it was graded with then was not recorded",)


def test_a_result_that_cannot_be_read_is_not_compared(attempt: RunFolder) -> None:
    """It is graded all the same, and the old file stays."""
    attempt.result.write_text('{"kind": "scored"')
    (found,) = again(attempt, save=True)
    assert (found.before, found.changed, found.row.outcome.score) == (None, False, 0.5)
    assert "result.json cannot be read" in found.reasons[0]
    assert found.saved == attempt.path / "result-2.json"
    assert attempt.result.read_text() == '{"kind": "scored"'


def test_another_verdict_of_the_same_grader_is_suspicious(attempt: RunFolder) -> None:
    """A grading should be the same everywhere."""
    change(attempt.result, lambda d: d["checkpoints"][0].update(value=1.0, passed=True))
    (found,) = again(attempt)
    assert found.changed
    assert "neither the task nor its checks nor cua_gym have changed" in found.reasons[0]


def test_two_that_save_at_once_lose_nothing(attempt: RunFolder) -> None:
    """A name that is taken is never taken again."""
    first = attempt.add_result({"n": 1})
    (attempt.path / "result-3.json").write_text("somebody else's")
    assert attempt.add_result({"n": 2}).name == "result-4.json"
    assert json.loads(first.read_text()) == {"n": 1}
    assert [p.name for p in attempt.path.glob(".*")] == []


@pytest.mark.slow
def test_exactly_the_changed_verdicts_of_a_hundred_are_reported(
    attempt: RunFolder, checkpoints: Path, tmp_path: Path
) -> None:
    """A corrected check, and no attempt too many or too few."""
    runs = tmp_path / "hundred"
    wrong = {7, 31, 64, 99}
    word = json.loads(attempt.episode.read_text())["params"]["word"]
    for number in range(100):
        folder = runs / f"r/type-word/agent{number:02}/001"
        shutil.copytree(attempt.path, folder)
        if number in wrong:  # what the first check took for right
            _note(RunFolder(folder), f"{word}x".encode())
        else:
            _note(RunFolder(folder), b"nothing like it")
    edit(checkpoints, "toy.says", "toy.begins")
    edit(checkpoints, 'args = { expected = "toy" }', 'args = { expected = "nothing" }')
    for folder in attempts(runs):
        change(folder.result, lambda d: d["checkpoints"][0].update(value=0.0, passed=False))
        change(folder.result, lambda d: d["checkpoints"][1].update(value=1.0, passed=True))
    found = again(*attempts(runs))
    changed = {int(one.row.folder.parent.name[5:]) for one in found if _verdict_differs(one)}
    assert changed == wrong
    assert len(found) == 100


def _note(folder: RunFolder, data: bytes) -> None:
    import hashlib

    (folder.evidence / "note.txt").write_bytes(data)

    def alter(manifest: dict[str, Any]) -> None:
        (entry,) = next(i for i in manifest["items"] if i["name"] == "note")["entries"]
        entry.update(sha256=hashlib.sha256(data).hexdigest(), size=len(data))

    change(folder.evidence / "manifest.json", alter)


def _verdict_differs(one: Regraded) -> Iterable[Any]:
    return one.differences
