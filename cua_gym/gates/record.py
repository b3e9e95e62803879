"""``tasks/NAME/gates.json``: what each gate said of a task, and of which content it said so.

The file changes only when a verdict does, so that making the gates again leaves no difference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cua_gym.errors import TaskError
from cua_gym.gates.content import content_hash
from cua_gym.gates.names import GATES, SEEDS
from cua_gym.record.layout import write_json
from cua_gym.task import Task

__all__ = ["RECORD", "Judgement", "Standing", "record", "standing"]

RECORD = "gates.json"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one gate says of a task.

    Attributes:
        passed: None when there is no verdict: ``fault`` tells whether that is a fault of ours, or
            there was nothing to look at because another gate failed.
        detail: what was seen, a line each; of a gate that failed, each fault.
        seeds: the variations that were looked at.
        steps, seconds: of the gate ``oracle``: medians over its attempts.
    """

    passed: bool | None
    detail: str
    seeds: tuple[int, ...] = ()
    steps: float | None = None
    seconds: float | None = None
    fault: bool = False

    @classmethod
    def unjudged(cls, cause: str) -> Judgement:
        """Something of ours failed, so nothing can be said about the task."""
        return cls(None, cause, fault=True)

    @classmethod
    def untried(cls, why: str) -> Judgement:
        """There was nothing to look at."""
        return cls(None, f"not tried: {why}")

    @classmethod
    def of(cls, faults: Sequence[str], well: str, seeds: Sequence[int] = ()) -> Judgement:
        """Failed with these faults; with none, passed, and ``well`` says what was seen."""
        return cls(not faults, "\n".join(faults) or well, tuple(seeds))


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a task has passed its gates as it is now.

    Attributes:
        kind: ``missing``: not all of them were tried; ``partly``: all, on fewer seeds than count;
            ``stale``: on another content.
        message: which gates, in a few words.
    """

    kind: Literal["passed", "partly", "missing", "stale", "failed"]
    message: str = ""


def record(task: Task, content: str, judgements: Mapping[str, Judgement], date: str) -> None:
    """Put verdicts into the task's record; those of other gates stay.

    What could not be judged is not recorded, nor a verdict on fewer seeds than the one that stands.

    Args:
        content: of the task when it was judged.
        date: of today, ISO 8601.

    Raises:
        OutOfSpace: the disk is full.
        TaskError: the task's folder cannot be written to.
    """
    old = _read(task.folder / RECORD)
    new = dict(old)
    for name, judged in judgements.items():
        if judged.passed is not None:
            entry = _entry(task, judged, content)
            if not _stands(old.get(name), entry):
                new[name] = {**entry, "date": date}
    if new == old:
        return
    try:
        write_json(task.folder / RECORD, {"gates": {g: new[g] for g in GATES if g in new}})
    except OSError as error:
        raise TaskError(f"{task.folder / RECORD} cannot be written: {error.strerror}") from error


def standing(task: Task) -> Standing:
    """What a task's record says of the task as it is now; nothing is tried."""
    entries = _read(task.folder / RECORD)
    if not entries:
        return Standing("missing", "its gates were never tried")
    content = content_hash(task)
    here = {name: e for name, e in entries.items() if e["content"] == content}
    if failed := [name for name in GATES if name in here and not here[name]["passed"]]:
        return Standing("failed", f"it failed {', '.join(failed)}")
    if stale := [name for name in GATES if name in entries and name not in here]:
        return Standing("stale", f"it has changed since {', '.join(stale)} were tried")
    if absent := [name for name in GATES if name not in here]:
        return Standing("missing", f"{', '.join(absent)} were never tried")
    if (tried := len(here["oracle"]["seeds"])) < SEEDS:
        return Standing("partly", f"its oracle was tried on {tried} of {SEEDS} seeds")
    return Standing("passed")


def _entry(task: Task, judged: Judgement, content: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "passed": judged.passed,
        # Where somebody keeps the folder is nothing that others need to know.
        "detail": judged.detail.replace(f"{task.folder}/", ""),
        "content": content,
        "seeds": list(judged.seeds),
    }
    if judged.steps is not None:
        entry |= {"steps": judged.steps, "seconds": judged.seconds}
    return entry


def _stands(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Whether the old entry says as much as the new one, or more, of the same content."""
    if old is None or (old["content"], old["passed"]) != (new["content"], new["passed"]):
        return False
    fewer = len(new["seeds"]) < len(old["seeds"])
    same = {**old, "date": None} == {**new, "date": None}
    return same or (fewer and bool(new["passed"]))


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Entries by gate; a file that is not ours, or half merged, counts as none."""
    try:
        entries = json.loads(path.read_text())["gates"]
        known = ("passed", "content", "seeds")
        return {g: e for g, e in entries.items() if g in GATES and all(key in e for key in known)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
