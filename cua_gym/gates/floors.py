"""The floors: doing nothing, giving up and acting at random must be worth nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from cua_gym.gates.attempts import Attempt
from cua_gym.gates.mutant import breaks, write
from cua_gym.gates.record import Judgement
from cua_gym.grading.grade import grade
from cua_gym.grading.outcome import CheckpointResult, Outcome
from cua_gym.task import Task, Variation

__all__ = ["give_up", "judged", "no_op", "random_actions", "said", "unscored_fault"]

RANDOM_SCORE = 0.05
"""What a random agent may reach by chance."""
SHOWN = 200
_GIVES_UP = b'{"kind": "give_up", "answer": null, "reason": "gives up at once"}'


def judged(attempt: Attempt, variation: Variation, content: str) -> Outcome:
    """What an attempt comes to by the task's present checks, graded anew if they have changed."""
    if attempt.content == content or not (attempt.evidence / "manifest.json").is_file():
        return attempt.outcome
    return grade(attempt.evidence, variation)


def said(point: CheckpointResult) -> str:
    """What a checkpoint found, in a line."""
    seen = "" if point.seen is None else f"; it saw {str(point.seen)[:SHOWN]!r}"
    wanted = "" if point.wanted is None else f", it wants {str(point.wanted)[:SHOWN]!r}"
    return f"{point.message}{seen}{wanted}"


def unscored_fault(label: str, outcome: Outcome) -> str:
    """The line that says why an attempt has no score."""
    return f"{label}: {outcome.reason}, {outcome.phase}: {outcome.cause}"


def no_op(outcomes: Mapping[int, Outcome]) -> Judgement:
    """Nothing was done: the score is 0, and no positive checkpoint holds even in part.

    Args:
        outcomes: of the agent ``null``, by seed.
    """
    faults = [fault for seed, outcome in outcomes.items() for fault in _held(seed, outcome)]
    return Judgement.of(faults, "doing nothing scores 0", list(outcomes))


def _held(seed: int, outcome: Outcome) -> Iterator[str]:
    if outcome.score is None:
        yield unscored_fault(f"seed {seed}", outcome)
        return
    # One that holds at the start is not shown by the score when a negative one takes it back.
    held = [p for p in outcome.checkpoints if p.weight > 0 and p.value > 0]
    for point in held:
        yield (
            f"seed {seed}: checkpoint {point.id} holds ({point.value:g}) although nothing was "
            f"done: {said(point)}"
        )
    if outcome.score > 0 and not held:
        yield f"seed {seed}: doing nothing scores {outcome.score:g}"


def give_up(task: Task, attempts: Mapping[int, Attempt]) -> Judgement:
    """Giving up at once is worth nothing, unless the task cannot be done.

    No machine is needed: what it leaves is what doing nothing leaves.

    Args:
        attempts: of the agent ``null``, by seed.
    """
    faults = []
    scores = []
    for seed, attempt in attempts.items():
        with tempfile.TemporaryDirectory(prefix="cua-gym-gates-") as scratch:
            evidence = Path(scratch) / "evidence"
            write(breaks("gives up", submission=_GIVES_UP), attempt.evidence, evidence)
            outcome = grade(evidence, task.variation(seed))
        if outcome.score is None:
            faults.append(unscored_fault(f"seed {seed}", outcome))
        elif outcome.score > 0 and task.feasible:
            faults.append(f"seed {seed}: giving up scores {outcome.score:g} in a feasible task")
        else:
            scores.append(outcome.score)
    well = "giving up scores 0"
    if scores and max(scores) > 0:
        well = f"infeasible, but giving up at once scores {max(scores):g}: ask for the reason"
    return Judgement.of(faults, well, list(attempts))


def random_actions(outcomes: Mapping[int, Outcome]) -> Judgement:
    """Random actions come to next to nothing.

    Args:
        outcomes: of the agent ``random``, by seed.
    """
    faults = []
    for seed, outcome in outcomes.items():
        if outcome.score is None:
            faults.append(unscored_fault(f"seed {seed}", outcome))
        elif outcome.score > RANDOM_SCORE or outcome.success:
            held = ", ".join(p.id for p in outcome.checkpoints if p.weight > 0 and p.value > 0)
            faults.append(f"seed {seed}: random actions score {outcome.score:g}: {held} held")
    return Judgement.of(faults, "random actions come to nothing", list(outcomes))
