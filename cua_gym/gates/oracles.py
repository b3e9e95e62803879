"""The oracle: it solves every variation, each time in the same way, in about the expected steps."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cua_gym.gates.attempts import Attempt
from cua_gym.gates.floors import said, unscored_fault
from cua_gym.gates.record import Judgement
from cua_gym.grading.outcome import CheckpointResult, Outcome
from cua_gym.task import Task

__all__ = ["Tried", "oracle", "solves"]

Tried = tuple[Attempt, Outcome]
"""An attempt of the oracle and what it comes to now."""

STEPS_FACTOR = 2.0
STEPS_SLACK = 3
"""How far an oracle may be from ``expected_steps``: between half and twice of it, and this much."""


def solves(tried: Tried) -> bool:
    """Whether an attempt is worth everything."""
    return tried[1].score == 1.0 and tried[1].success


def oracle(task: Task, tried: Sequence[Tried], planned: int) -> Judgement:
    """Full score and success each time, with the same verdicts on each attempt at a seed.

    Args:
        tried: in order; shorter than planned if one failed, since the rest would tell no more.
        planned: how many attempts there were to be.
    """
    faults = [fault for one in tried if not solves(one) for fault in _failed(one)]
    if faults and len(tried) < planned:
        faults.append(f"{planned - len(tried)} of {planned} attempts were not made")
    faults += _differences(tried)
    steps = statistics.median(attempt.steps for attempt, _ in tried)
    seconds = statistics.median(attempt.seconds for attempt, _ in tried)
    if not faults:
        faults = list(_step_faults(task, steps))
    seeds = sorted({attempt.seed for attempt, _ in tried})
    well = f"{len(tried)} attempts, each 1.0; median {steps:g} steps, {seconds:.1f} s"
    judgement = Judgement.of(faults, well, seeds)
    return replace(judgement, steps=steps, seconds=round(seconds, 1))


def _failed(tried: Tried) -> Iterator[str]:
    attempt, outcome = tried
    label = attempt.label
    if outcome.score is None:
        yield unscored_fault(label, outcome)
    else:
        yield f"{label}: scored {outcome.score:g} after {attempt.steps} steps, not 1"
        for point in outcome.checkpoints:
            if point.passed != (point.weight > 0) or (point.weight < 0 and point.value > 0):
                yield f"{label}: checkpoint {point.id}: {said(point)}"


def _differences(tried: Sequence[Tried]) -> Iterator[str]:
    """Verdicts that are not the same on each attempt at a seed."""
    first: dict[int, Tried] = {}
    for attempt, outcome in tried:
        earlier, before = first.setdefault(attempt.seed, (attempt, outcome))
        for one, two in zip(before.checkpoints, outcome.checkpoints, strict=False):
            if _verdict(one) != _verdict(two):
                yield (
                    f"seed {attempt.seed}: checkpoint {one.id} came to {one.value:g} on attempt "
                    f"{earlier.number} and to {two.value:g} on attempt {attempt.number}"
                )


def _verdict(point: CheckpointResult) -> tuple[str, bool, float]:
    return point.id, point.passed, point.value


def _step_faults(task: Task, steps: float) -> Iterator[str]:
    expected = task.expected_steps
    low, high = expected / STEPS_FACTOR - STEPS_SLACK, expected * STEPS_FACTOR + STEPS_SLACK
    if not low <= steps <= high:
        yield (
            f"the oracle takes {steps:g} steps (median), expected_steps is {expected}; correct "
            "the one that is wrong"
        )
