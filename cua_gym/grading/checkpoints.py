"""Checkpoints: questions about the evidence, their weights, and what they come to."""

from __future__ import annotations

import base64
import errno
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from cua_gym import template
from cua_gym.errors import GradingError
from cua_gym.grading.check import Check, Verdict
from cua_gym.grading.items import Altered, Evidence
from cua_gym.grading.library import CheckLibrary
from cua_gym.grading.outcome import CheckpointResult

__all__ = ["Checkpoint", "Question", "Rubric", "gated", "score", "success"]

SHOWN = 2000
"""Longest seen or wanted text that a result keeps, in characters."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One question about the evidence.

    Attributes:
        weight: share of the score; the positive ones of a task sum to 1, a negative one is
            subtracted when its check holds.
        check: ``module.function`` of the suite's evaluators, or ``checks.function`` of the
            task's own ``hidden/checks.py``.
        evidence: the names it looks at.
        listed: whether the task wrote them as a list; the check is then given an `Evidence`.
        args: keyword arguments, with placeholders.
        negate: turn the verdict round: it holds as far as the check does not.
        after: ids of checkpoints that must pass, or this one counts for nothing.
    """

    id: str
    weight: float
    required: bool
    check: str
    evidence: tuple[str, ...]
    listed: bool = False
    args: Mapping[str, Any] = field(default_factory=dict)
    negate: bool = False
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rubric:
    """Everything a grader needs beside the evidence; it never enters the guest.

    Attributes:
        feasible: False when giving up can be right.
        hidden: the task's hidden folder.
        evaluators: the suite's evaluators folder.
        values: what placeholders stand for: ``params.x`` and ``answer.x``, plain JSON values.
        inputs: the files that the setup gave, by name; placeholder ``input.NAME``.
    """

    feasible: bool
    checkpoints: tuple[Checkpoint, ...]
    hidden: Path
    evaluators: Path
    values: Mapping[str, Any]
    inputs: Mapping[str, bytes]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that crosses to the grader's process."""
        return {
            "feasible": self.feasible,
            "checkpoints": [
                {field.name: getattr(c, field.name) for field in fields(c)}
                for c in self.checkpoints
            ],
            "hidden": str(self.hidden),
            "evaluators": str(self.evaluators),
            "values": dict(self.values),
            "inputs": {k: base64.b64encode(v).decode() for k, v in self.inputs.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rubric:
        """The inverse of `to_dict`."""
        return cls(
            feasible=data["feasible"],
            checkpoints=tuple(
                Checkpoint(**{**c, "evidence": tuple(c["evidence"]), "after": tuple(c["after"])})
                for c in data["checkpoints"]
            ),
            hidden=Path(data["hidden"]),
            evaluators=Path(data["evaluators"]),
            values=data["values"],
            inputs={k: base64.b64decode(v) for k, v in data["inputs"].items()},
        )

    def questions(self) -> list[Question]:
        """Every checkpoint with its check and its arguments, ready to be asked of any evidence.

        Raises:
            GradingError: a check is missing, or a placeholder.
        """
        library = CheckLibrary(self.evaluators, self.hidden)
        values = self._values()
        return [Question.of(point, library, values) for point in self.checkpoints]

    def _values(self) -> dict[str, Any]:
        files = {f"input.{name}": data for name, data in self.inputs.items()}
        for path in sorted(self.hidden.rglob("*")):
            if path.is_file():
                name = path.relative_to(self.hidden).as_posix()
                files[f"hidden.{name}"] = path.read_bytes()
        return {**self.values, **files}


@dataclass(frozen=True, slots=True)
class Question:
    """A checkpoint that can be asked: `answer` for each evidence folder."""

    point: Checkpoint
    check: Check
    arguments: Mapping[str, Any]

    @classmethod
    def of(cls, point: Checkpoint, library: CheckLibrary, values: Mapping[str, Any]) -> Question:
        """Find the check, fill its arguments.

        Raises:
            GradingError: either failed.
        """
        try:
            check = library.find(point.check)
            return cls(point, check, template.fill(dict(point.args), values))
        except (GradingError, template.TemplateError) as error:
            raise GradingError(f"checkpoint {point.id}: {error}") from error

    def answer(self, evidence: Evidence) -> CheckpointResult:
        """The verdict.

        Raises:
            Altered: the evidence is not what was collected.
            GradingError: the check raised; no verdict means anything then.
        """
        point = self.point
        try:
            subject = evidence.only(point.evidence) if point.listed else evidence[point.evidence[0]]
            return _result(point, self.check(subject, **self.arguments))
        except GradingError as error:
            kind = Altered if isinstance(error, Altered) else GradingError
            raise kind(f"checkpoint {point.id}: {error}") from error
        except Exception as error:
            # The one broad catch: a check is other people's code, and whatever it raises must
            # become "unscored", never a zero. But for what content alone can bring about.
            if isinstance(error, MemoryError | RecursionError) or (
                isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.EMFILE)
            ):
                return self.exhausted(f"{type(error).__name__} {error}".strip())
            raise GradingError(
                f"checkpoint {point.id}: {point.check} raised {type(error).__name__}: {error}"
            ) from error

    def exhausted(self, why: str) -> CheckpointResult:
        """The verdict where the check took too much: the worst for the attempt, whatever it asks.

        Else who leaves a file that no parser survives could have itself left out of the count.
        """
        point = self.point
        value = 1.0 if point.weight < 0 else 0.0
        message = f"{point.check} could not be finished on what was left there: {why}"
        return CheckpointResult(
            point.id, point.weight, value == 1.0, value, point.required, point.evidence,
            message[:SHOWN], exhausted=True,
        )  # fmt: skip


def gated(
    points: Sequence[Checkpoint], results: Sequence[CheckpointResult]
) -> list[CheckpointResult]:
    """The verdicts with those of checkpoints taken away that stand behind one which did not pass.

    Args:
        results: what the checks alone found, one for each of ``points``.
    """
    done: dict[str, CheckpointResult] = {}
    left = list(zip(points, results, strict=True))
    while left:
        # `cua_gym.task` refuses circles, so there is always one whose gates are decided.
        ready = [(p, r) for p, r in left if done.keys() >= set(p.after)]
        if not ready:
            raise GradingError(
                f"checkpoints {', '.join(p.id for p, _ in left)} wait for each other"
            )
        left = [(p, r) for p, r in left if p.id not in {q.id for q, _ in ready}]
        for point, result in ready:
            missing = [gate for gate in point.after if not done[gate].passed]
            done[point.id] = _closed(result, missing) if missing else result
    return [done[point.id] for point in points]


def _closed(result: CheckpointResult, missing: Sequence[str]) -> CheckpointResult:
    alone = f"; alone it is {result.value:g}: {result.message}"
    message = f"counts only after {', '.join(missing)}, which did not pass{alone}"[:SHOWN]
    return replace(result, value=0.0, passed=False, message=message)


def score(results: Sequence[CheckpointResult]) -> float:
    """Sum of ``weight * value``, from 0 to 1."""
    total = math.fsum(r.weight * r.value for r in results)
    # Weights such as 0.1 have no exact binary form; nine digits hide that and nothing else.
    return round(min(1.0, max(0.0, total)), 9)


def success(results: Sequence[CheckpointResult]) -> bool:
    """Every required checkpoint passed and no negative one fired."""
    return all(r.passed for r in results if r.required) and not any(
        r.value > 0 for r in results if r.weight < 0
    )


def _result(point: Checkpoint, found: Verdict) -> CheckpointResult:
    value = 1.0 - found.value if point.negate else found.value
    return CheckpointResult(
        id=point.id,
        weight=point.weight,
        passed=value == 1.0,
        value=value,
        required=point.required,
        evidence=point.evidence,
        message=found.message[:SHOWN],
        seen=_shown(found.seen),
        wanted=_shown(found.wanted),
    )


def _shown(value: Any) -> Any:
    """A plain JSON value, long text cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"
