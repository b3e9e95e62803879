"""What an attempt came to: scored with its checkpoints, or unscored with phase and cause."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cua_gym.errors import GradingError

__all__ = ["REASONS", "CheckpointResult", "Outcome"]

Reason = Literal["machine", "setup", "bridge", "evidence", "grader", "judge", "agent", "stopped"]
REASONS = get_args(Reason)


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """One checkpoint's verdict.

    Attributes:
        weight: share of the score; a negative one is subtracted when the checkpoint fires.
        passed: whether the check holds wholly. For a negative weight that is bad news.
        value: how far it holds, 0 to 1; the score counts ``weight * value``.
        required: whether success needs it.
        evidence: names of the evidence it looked at.
        message: what was found, for a person.
        seen: the value found, shortened.
        wanted: the value asked for, shortened.
        exhausted: the check took more time or memory than any honest work needs, or broke its
            parser; it then counts against the attempt.
    """

    id: str
    weight: float
    passed: bool
    value: float
    required: bool = False
    evidence: tuple[str, ...] = ()
    message: str = ""
    seen: Any = None
    wanted: Any = None
    exhausted: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an episode. Build it with `scored` or `unscored`.

    Attributes:
        kind: ``scored``, or ``unscored`` when something other than the agent's work failed; an
            unscored outcome has no score, so it cannot be mistaken for a zero.
        score: 0 to 1, None when unscored.
        success: every required checkpoint passed and no negative one fired. A partial score is
            not a success.
        reason, phase, cause: of an unscored outcome: whose fault, when, and what happened.
        network: how the grader was kept off the network, or that it was not.
        grader_hash: of the hidden files and check functions that graded it; None where nothing did.
    """

    kind: Literal["scored", "unscored"]
    score: float | None = None
    success: bool = False
    checkpoints: tuple[CheckpointResult, ...] = ()
    reason: str | None = None
    phase: str | None = None
    cause: str | None = None
    network: str | None = None
    grader_hash: str | None = None

    def __post_init__(self) -> None:
        if self.kind == "scored":
            if self.score is None or not 0 <= self.score <= 1 or self.reason is not None:
                raise GradingError(f"a scored outcome needs a score from 0 to 1, got {self!r}")
        elif self.kind == "unscored":
            if self.score is not None or self.success or self.reason not in REASONS:
                raise GradingError(f"an unscored outcome has one of {REASONS}, got {self!r}")
        else:
            raise GradingError(f"an outcome is scored or unscored, not {self.kind!r}")

    @classmethod
    def scored(
        cls,
        score: float,
        success: bool,
        checkpoints: Sequence[CheckpointResult] = (),
        network: str | None = None,
    ) -> Outcome:
        """The checks could be made; ``score`` is what they gave."""
        return cls("scored", score, success, tuple(checkpoints), network=network)

    @classmethod
    def unscored(cls, reason: str, phase: str, cause: str) -> Outcome:
        """Nothing can be said about the agent: ``reason`` is one of `REASONS`."""
        return cls("unscored", reason=reason, phase=phase, cause=cause)

    def __str__(self) -> str:
        if self.kind == "unscored":
            return f"unscored ({self.reason}, {self.phase}): {self.cause}"
        return f"scored {self.score!s:.6}{' (success)' if self.success else ''}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, the inverse of `from_dict`."""
        fields: dict[str, Any] = dataclasses.asdict(self)
        fields["checkpoints"] = [
            {**point, "evidence": list(point["evidence"])} for point in fields["checkpoints"]
        ]
        return fields

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Outcome:
        """Parse the JSON form; keys that belong to others are left alone.

        Raises:
            GradingError: it is no outcome.
        """
        try:
            points = [_point(point) for point in data["checkpoints"]]
            names = {f.name for f in dataclasses.fields(cls)} - {"checkpoints"}
            fields = {name: data[name] for name in names if name in data}
            return cls(checkpoints=tuple(points), **fields)
        except (KeyError, TypeError, AttributeError) as error:
            raise GradingError(f"no outcome: {error!r} in {str(data)[:200]}") from error


def _point(data: Mapping[str, Any]) -> CheckpointResult:
    known = {f.name for f in dataclasses.fields(CheckpointResult)}
    fields: dict[str, Any] = {key: value for key, value in data.items() if key in known}
    return CheckpointResult(**fields | {"evidence": tuple(fields.get("evidence", ()))})
