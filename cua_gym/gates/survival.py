"""Mutants: what a grader makes of evidence in which something was changed.

They are laid out one after the other beside the evidence they stand on and graded by one process,
a folder each in a fork. Making them is `cua_gym.gates.generic`'s and the task's own.
"""

from __future__ import annotations

import collections
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from cua_gym.gates.attempts import Attempt
from cua_gym.gates.floors import said
from cua_gym.gates.generic import generic_mutants
from cua_gym.gates.mutant import Mutant, exempt, exemptions, task_mutants, unmatched, write
from cua_gym.gates.record import Judgement
from cua_gym.grading.grade import grade_many
from cua_gym.grading.items import Evidence
from cua_gym.grading.outcome import Outcome
from cua_gym.task import Task, Variation

__all__ = ["survival"]

SHOWN = 40
"""How many offenders are told of."""


@dataclass(slots=True)
class _Count:
    """What was seen so far."""

    keeps: int = 0
    breaks: int = 0
    exempt: int = 0
    names: list[str] = field(default_factory=list)
    offenders: dict[str, tuple[str, list[int]]] = field(default_factory=dict)


def survival(
    task: Task,
    attempts: Mapping[int, tuple[Attempt, Attempt]],
    making: Callable[[], AbstractContextManager[Path]],
    go_on: Callable[[int], None] = lambda _: None,
) -> Judgement:
    """A mutant that keeps its meaning keeps the score; one that breaks it loses part of it.

    Args:
        attempts: of the agents ``null`` and ``oracle``, by seed.
        making: a folder for what is graded, best on the disk of the attempts.
        go_on: told how many were graded; what it raises ends the grading.

    Raises:
        TaskError: the task's own mutants cannot be made.
    """
    patterns = exemptions(task.folder)
    count = _Count()
    for seed, (start, solved) in attempts.items():
        variation = task.variation(seed)
        mutants = _mutants(variation, start, solved, patterns, count)
        with making() as folder:
            for mutant, outcome in _graded(mutants, variation, solved, folder):
                count.keeps += mutant.keeps
                count.breaks += not mutant.keeps
                if fault := _offence(mutant, outcome):
                    count.offenders.setdefault(mutant.name, (fault, []))[1].append(seed)
                go_on(count.keeps + count.breaks)
    faults = list(_offenders(count))
    faults += [
        f"EXEMPT of hidden/mutants.py has {pattern!r}, which is the name of no mutant; remove it"
        for pattern in unmatched(count.names, patterns)
    ]
    well = f"{count.breaks} that break and {count.keeps} that keep"
    if count.exempt:
        well += f", {count.exempt} exempt"
    return Judgement.of(faults, well, list(attempts))


def _mutants(
    variation: Variation,
    start: Attempt,
    solved: Attempt,
    patterns: Mapping[str, str],
    count: _Count,
) -> Iterator[Mutant]:
    before, after = Evidence(start.evidence), Evidence(solved.evidence)
    task = variation.task
    for mutant in generic_mutants(before, after, task.checkpoints):
        count.names.append(mutant.name)
        if exempt(mutant.name, patterns) is None:
            yield mutant
        else:
            count.exempt += 1
    yield from task_mutants(task.folder, variation.params, before, after)


def _graded(
    mutants: Iterator[Mutant], variation: Variation, solved: Attempt, folder: Path
) -> Iterator[tuple[Mutant, Outcome]]:
    """Each mutant with what it comes to; only the one under way takes room."""
    laid: collections.deque[tuple[Mutant, Path]] = collections.deque()

    def folders() -> Iterator[tuple[Path, Variation]]:
        for mutant, number in zip(mutants, itertools.count(), strict=False):
            path = folder / f"{number:06}"
            write(mutant, solved.evidence, path)
            laid.append((mutant, path))
            yield path, variation

    for outcome in grade_many(folders()):
        mutant, path = laid.popleft()
        shutil.rmtree(path, ignore_errors=True)
        yield mutant, outcome


def _offence(mutant: Mutant, outcome: Outcome) -> str:
    """Why this outcome is wrong for this mutant; "" when it is right."""
    if outcome.score is None:
        return f"is unscored ({outcome.reason}): {outcome.cause}"
    if mutant.worthless:
        return f"scores {outcome.score:g} although it is worth nothing" if outcome.score else ""
    if not mutant.keeps:
        full = outcome.success or outcome.score == 1.0
        return f"scores {outcome.score:g} although it breaks what counts" if full else ""
    if outcome.score == 1.0 and outcome.success:
        return ""
    lost = [p for p in outcome.checkpoints if p.passed != (p.weight > 0)]
    why = "; ".join(f"{point.id}: {said(point)}" for point in lost)
    return f"scores {outcome.score:g} although it keeps what counts: {why}"


def _offenders(count: _Count) -> Iterator[str]:
    for name, (fault, seeds) in itertools.islice(count.offenders.items(), SHOWN):
        yield f"{name} (seed {', '.join(map(str, seeds))}) {fault}"
    if (more := len(count.offenders) - SHOWN) > 0:
        yield f"and {more} more"
    if count.offenders:
        yield f"of {count.breaks + count.keeps} mutants"
