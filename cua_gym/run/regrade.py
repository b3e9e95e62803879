"""Grades recorded attempts again, without a machine: a corrected grader, the same evidence."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cua_gym.errors import GradingError, TaskError
from cua_gym.grading.grade import grading
from cua_gym.grading.outcome import Outcome
from cua_gym.record.layout import RunFolder
from cua_gym.run.differences import Difference, Graded, differences, reasons, same
from cua_gym.run.row import Row
from cua_gym.task import Task, Variation, find_task

__all__ = ["Regraded", "regrade"]

_GRADED = ("evidence", "grader", "judge")
"""Reasons of unscored attempts that came as far as a grading; others have nothing to grade."""


@dataclass(frozen=True, slots=True)
class Regraded:
    """What the present checks say of one attempt.

    Attributes:
        row: with the outcome of now.
        before: the outcome that was in force, None where there is none or it cannot be read.
        compared: name of the file with that outcome.
        reasons: why it may differ, a text each.
        saved: the new file with the outcome of now, when asked for and there is news.
    """

    row: Row
    before: Outcome | None = None
    compared: str | None = None
    reasons: tuple[str, ...] = ()
    saved: Path | None = None

    @property
    def changed(self) -> bool:
        """Whether the attempt's verdict or a checkpoint's is another one than before."""
        return self.before is not None and not same(self.before, self.row.outcome)

    @property
    def differences(self) -> list[Difference]:
        """The checkpoints that are not what they were."""
        return [] if self.before is None else differences(self.before, self.row.outcome)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: the row's, and what changed."""
        before = self.before
        keys = ("score", "success", "reason", "phase", "cause")
        told = before and {"outcome": before.kind} | {key: getattr(before, key) for key in keys}
        return self.row.to_dict() | {
            "before": told,
            "compared_with": self.compared,
            "changed": self.changed,
            "checkpoints": [difference.to_dict() for difference in self.differences],
            "reasons": list(self.reasons),
            "saved": None if self.saved is None else str(self.saved.resolve()),
        }


def regrade(
    folders: Iterable[RunFolder],
    *,
    save: bool,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Regraded]:
    """What the tasks' present checks say about the evidence of attempts, each when it is known.

    An attempt that broke off before there was evidence keeps its outcome. What is broken about one
    attempt, or missing in the record of an older version, is its own outcome and ends nothing.

    Args:
        save: write each outcome beside the earlier ones, unless the same checks said the same.
    """
    tasks = _Tasks()
    with grading() as judge:
        for folder in folders:
            yield _Attempt(folder).again(tasks, judge, now if save else None)


class _Tasks:
    """Tasks and variations, loaded once."""

    def __init__(self) -> None:
        self._tasks: dict[str | Path, Task | TaskError] = {}
        self._variations: dict[tuple[str, int], Variation] = {}

    def variation(self, episode: Mapping[str, Any]) -> Variation:
        """The task of the folder that was attempted, by name when that folder is gone.

        Raises:
            TaskError: it cannot be loaded, or means other values now.
        """
        seed, place = episode["seed"], episode.get("task_folder")
        folder = Path(place) if isinstance(place, str) else None
        task = self._task(folder if folder is not None and folder.is_dir() else episode["task"])
        name = str(task.folder)
        if (name, seed) not in self._variations:
            self._variations[name, seed] = task.variation(seed)
        variation = self._variations[name, seed]
        if variation.params != episode["params"]:
            raise TaskError(f"seed {seed} no longer gives the values of that attempt")
        return variation

    def _task(self, name: str | Path) -> Task:
        if name not in self._tasks:
            try:
                self._tasks[name] = find_task(name)
            except TaskError as error:
                self._tasks[name] = error
        task = self._tasks[name]
        if isinstance(task, TaskError):
            raise task
        return task


@dataclass(slots=True)
class _Attempt:
    """The record of one attempt, as far as it can be read."""

    folder: RunFolder
    episode: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    before: Outcome | None = None
    compared: str | None = None
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.episode = self._read(self.folder.episode)
        if results := self.folder.results:
            self.result = self._read(results[-1])
        if self.result:
            self.compared = results[-1].name
            try:
                self.before = Outcome.from_dict(self.result)
            except GradingError as error:
                self.faults.append(f"{self.compared} cannot be compared: {error}")

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            value = json.loads(path.read_bytes())
            if isinstance(value, dict):
                return value
            self.faults.append(f"{path.name} is no JSON object")
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError) as error:
            self.faults.append(f"{path.name} cannot be read: {error}")
        return {}

    def again(
        self,
        tasks: _Tasks,
        judge: Callable[[Path, Variation], Outcome],
        now: Callable[[], datetime] | None,
    ) -> Regraded:
        """Grade it.

        Args:
            now: to be written beside a saved outcome; None: nothing is saved.
        """
        before = self.before
        if before is not None and before.reason is not None and before.reason not in _GRADED:
            return self._told(before, [f"there is nothing to grade: {before.reason} failed"])
        if missing := [key for key in ("task", "seed", "params") if key not in self.episode]:
            said = "; ".join(self.faults) or "another version of cua_gym recorded it"
            cause = f"{self.folder.episode.name} lacks {', '.join(missing)}: {said}"
            return self._told(Outcome.unscored("evidence", "grade", cause), [])
        try:
            variation = tasks.variation(self.episode)
        except TaskError as error:
            cause = f"the task cannot be graded now: {error}"
            return self._told(Outcome.unscored("grader", "grade", cause), [])
        outcome = judge(self.folder.evidence, variation)
        news = before is None or not same(before, outcome)
        then, today = self._then(), _today(variation.task, outcome)
        saved = None
        if now is not None and (news or then != today):
            saved = self._save(outcome, today, now())
        return self._told(outcome, [*self.faults, *reasons(then, today, news)], saved)

    def _told(self, outcome: Outcome, why: list[str], saved: Path | None = None) -> Regraded:
        path = self.folder.path
        who = self.episode or self.result
        task, agent = who.get("task", path.parent.parent.name), who.get("agent", path.parent.name)
        row = Row(task, agent, who.get("seed"), outcome, path)
        return Regraded(row, self.before, self.compared, tuple(why), saved)

    def _then(self) -> Graded:
        graded = self.result.get("graded")
        if not isinstance(graded, dict):  # the first grading, which the episode describes
            versions = self.episode.get("versions")
            version = versions.get("cua_gym") if isinstance(versions, dict) else None
            graded = {"task_hash": self.episode.get("task_hash"), "cua_gym": version}
        grader_hash = self.result.get("grader_hash") or self.episode.get("grader_hash")
        return Graded(graded.get("task_hash"), grader_hash, graded.get("cua_gym"))

    def _save(self, outcome: Outcome, today: Graded, now: datetime) -> Path:
        graded = {
            "date": now.isoformat(timespec="seconds"),
            "task_hash": today.task_hash,
            "cua_gym": today.version,
            "instead_of": self.compared,
        }
        who = {key: self.episode.get(key) for key in ("task", "seed", "agent")}
        return self.folder.add_result(self.result | who | outcome.to_dict() | {"graded": graded})


def _today(task: Task, outcome: Outcome) -> Graded:
    return Graded(task.hash, outcome.grader_hash, importlib.metadata.version("cua-gym"))
