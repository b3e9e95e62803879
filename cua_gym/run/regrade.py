"""Grades a recorded attempt again, without a machine: a corrected grader, the same evidence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cua_gym.errors import TaskError
from cua_gym.grading.grade import grade
from cua_gym.grading.outcome import Outcome
from cua_gym.record.layout import RunFolder
from cua_gym.run.row import Row
from cua_gym.task import Task, find_task

__all__ = ["regrade"]

_NO_EVIDENCE = ("machine", "setup", "agent")


def regrade(folder: RunFolder, *, save: bool, note: Callable[[str], None]) -> Row:
    """What the task's present checks say about the evidence of an attempt.

    An attempt that broke off before there was evidence keeps its outcome.

    Args:
        save: put the outcome into ``result.json``.
        note: told when the task is no longer the one that was attempted.

    Raises:
        TaskError: the folder's own files are no JSON.
    """
    episode = _read(folder.episode)
    result = _read(folder.result) if folder.result.exists() else {}
    old = Outcome.from_dict(result) if result else None
    if old is not None and (old.reason in _NO_EVIDENCE or not episode):
        who = episode or result
        return Row(who["task"], who["agent"], who["seed"], old, folder.path)
    try:
        task = _task(episode)
        variation = task.variation(episode["seed"])
        if variation.params != episode["params"]:
            raise TaskError(f"seed {episode['seed']} no longer gives the values of that attempt")
    except TaskError as error:
        # One lost task must not keep the other attempts of a run from being graded.
        outcome = Outcome.unscored("grader", "grade", f"the task cannot be graded now: {error}")
        return Row(episode["task"], episode["agent"], episode["seed"], outcome, folder.path)
    if task.hash != episode["task_hash"]:
        note(f"{folder.path}: the task {task.name} has changed since this attempt")
    outcome = grade(folder.evidence, variation)
    if save:
        who = {key: episode[key] for key in ("task", "seed", "agent")}
        folder.write_result(result | who | outcome.to_dict())
    return Row(episode["task"], episode["agent"], episode["seed"], outcome, folder.path)


def _task(episode: dict[str, Any]) -> Task:
    """The task of the folder that was attempted; by name when that folder is gone."""
    folder = Path(episode["task_folder"])
    return find_task(folder if folder.is_dir() else episode["task"])


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise TaskError(f"{path} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise TaskError(f"{path} is no JSON object")
    return value
