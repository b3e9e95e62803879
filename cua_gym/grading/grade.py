"""From evidence to an outcome, in a process of its own.

The grader's process has limits on memory, processor time, open files and wall time, no network
where this host can take it away, and speaks only JSON over its standard streams. Whatever goes
wrong in it is `unscored`, never a zero. A grading takes no machine, so it can be repeated for ever.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cua_gym.errors import GradingError
from cua_gym.grading.checkpoints import Rubric, gated, score, success
from cua_gym.grading.grader import Grader
from cua_gym.grading.items import Altered, Evidence
from cua_gym.grading.limits import LIMITS, Limits
from cua_gym.grading.outcome import Outcome
from cua_gym.grading.probes import Asks
from cua_gym.grading.sources import grader_hash

__all__ = ["Limits", "grade", "grade_many", "grading"]


def grade(evidence: Path, asked: Asks, limits: Limits = LIMITS) -> Outcome:
    """The outcome of what lies in an evidence folder.

    Args:
        evidence: folder written by `cua_gym.grading.evidence.collect`.
        asked: the variation that was attempted.

    Returns:
        `scored`, or `unscored` with reason ``evidence`` (it is broken) or ``grader``.
    """
    (outcome,) = grade_many([(evidence, asked)], limits)
    return outcome


def grade_many(pairs: Iterable[tuple[Path, Asks]], limits: Limits = LIMITS) -> Iterator[Outcome]:
    """The outcomes of many evidence folders, in their order, each as soon as it is there.

    One process judges them, each folder in a fork of its own, so a folder costs milliseconds and
    none can influence another. One that breaks or kills its grading is `unscored` alone. The next
    pair is asked for when its turn has come.

    Args:
        pairs: evidence folder and what was attempted, as for `grade`. Folders of the same
            variation object should follow each other: what is sent once is kept until another
            comes.
        limits: of each checkpoint of each folder.
    """
    with grading(limits) as judge:
        for evidence, asked in pairs:
            yield judge(evidence, asked)


@contextmanager
def grading(limits: Limits = LIMITS) -> Iterator[Callable[[Path, Asks], Outcome]]:
    """`grade` as a function whose process lives as long as the context; see `grade_many`."""
    with Grader(limits) as grader:
        last: Asks | None = None
        rubric: Rubric
        digest: str

        def judge(evidence: Path, asked: Asks) -> Outcome:
            nonlocal last, rubric, digest
            if asked is not last:
                last, rubric, digest = asked, asked.rubric, grader_hash(asked.rubric)
            return replace(_outcome(grader, evidence, rubric), grader_hash=digest)

        yield judge


def _outcome(grader: Grader, evidence: Path, rubric: Rubric) -> Outcome:
    try:
        found = Evidence(evidence)
        gave_up = _submission(found).get("kind") == "give_up"
        _need(found, rubric)
    except GradingError as error:
        return Outcome.unscored("evidence", "grade", str(error))
    try:
        results = gated(rubric.checkpoints, grader.judge(evidence, rubric))
    except GradingError as error:
        reason = "evidence" if isinstance(error, Altered) else "grader"
        return Outcome.unscored(reason, "grade", str(error))
    if gave_up and rubric.feasible:
        return Outcome.scored(0.0, False, results, grader.network)
    return Outcome.scored(score(results), success(results), results, grader.network)


def _need(evidence: Evidence, rubric: Rubric) -> None:
    """An attempt from before a task asked for something cannot answer it now."""
    for point in rubric.checkpoints:
        for name in point.evidence:
            if name not in evidence:
                raise GradingError(
                    f"checkpoint {point.id} wants the evidence {name!r}, which was not collected; "
                    f"there is {', '.join(sorted(evidence))}"
                )


def _submission(evidence: Evidence) -> Mapping[str, Any]:
    data = json.loads(evidence["submission"].bytes())
    if not isinstance(data, dict):
        raise GradingError(f"submission.json is {data!r:.80}, not an object")
    return data
