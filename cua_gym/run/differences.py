"""What two gradings of one attempt say differently, and why as far as that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cua_gym.grading.outcome import CheckpointResult, Outcome

__all__ = ["Difference", "Graded", "differences", "reasons", "same"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One checkpoint that is not what it was; a message alone makes no difference.

    Attributes:
        before: None where it was added.
        after: None where it was removed.
    """

    id: str
    before: CheckpointResult | None
    after: CheckpointResult | None

    @property
    def kind(self) -> Literal["added", "removed", "verdict", "weight"]:
        """What happened to it; a verdict that changed outweighs a weight that did."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        return "weight" if _verdict(self.before) == _verdict(self.after) else "verdict"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "id": self.id,
            "kind": self.kind,
            "before": _shown(self.before),
            "after": _shown(self.after),
        }


@dataclass(frozen=True, slots=True)
class Graded:
    """What a grading was done with; None where that was not recorded."""

    task_hash: str | None
    grader_hash: str | None
    version: str | None


def differences(before: Outcome, after: Outcome) -> list[Difference]:
    """Checkpoints whose value, verdict, weight or being there differs, in the order of now.

    Where one of the two could not be scored, no checkpoint is compared.
    """
    if "unscored" in (before.kind, after.kind):
        return []
    old = {point.id: point for point in before.checkpoints}
    new = {point.id: point for point in after.checkpoints}
    pairs = [(key, old.get(key), new.get(key)) for key in {**new, **old}]
    return [Difference(k, a, b) for k, a, b in pairs if not a or not b or _what(a) != _what(b)]


def same(before: Outcome, after: Outcome) -> bool:
    """Whether both say the same of the attempt and of each checkpoint."""
    return _of(before) == _of(after) and not differences(before, after)


def reasons(then: Graded, now: Graded, changed: bool) -> Iterator[str]:
    """What differs between the two gradings besides their verdicts.

    Args:
        changed: whether the verdicts differ.
    """
    known = len([pair for pair in _pairs(then, now) if None not in pair])
    found = [
        f"{what} {a:.12} then and {b:.12} now"
        for what, (a, b) in zip(_WHAT, _pairs(then, now), strict=True)
        if a is not None and b is not None and a != b
    ]
    yield from found
    if changed and not found:
        if known == len(_WHAT):
            yield (
                "neither the task nor its checks nor cua_gym have changed: something else decides "
                "here, such as this host's programs"
            )
        else:
            yield "what it was graded with then was not recorded"


_WHAT = ("the task has changed:", "its checks have changed:", "cua_gym is another:")


def _pairs(then: Graded, now: Graded) -> Sequence[tuple[str | None, str | None]]:
    return (
        (then.task_hash, now.task_hash),
        (then.grader_hash, now.grader_hash),
        (then.version, now.version),
    )


def _of(outcome: Outcome) -> tuple[Any, ...]:
    return outcome.kind, outcome.score, outcome.success, outcome.reason


def _verdict(point: CheckpointResult) -> tuple[float, bool]:
    return point.value, point.passed


def _what(point: CheckpointResult) -> tuple[Any, ...]:
    return *_verdict(point), point.weight, point.required


def _shown(point: CheckpointResult | None) -> Mapping[str, Any] | None:
    if point is None:
        return None
    names = ("value", "passed", "weight", "required", "message")
    return {name: getattr(point, name) for name in names}
