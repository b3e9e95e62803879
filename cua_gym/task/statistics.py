"""How a suite's tasks are distributed: by area, level, tools, and how long they are."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

from cua_gym.task.model import Task

__all__ = ["distribution"]

STEPS = ((1, 4), (5, 9), (10, 14), (15, 24), (25, 39), (40, None))
"""Classes of ``expected_steps``, ends included; None is no end."""

_SIDES: dict[str, Callable[[Task], str]] = {
    "area": lambda task: task.area,
    "level": lambda task: str(task.level),
    "tool_policy": lambda task: task.tool_policy,
    "backend": lambda task: task.backend,
    "feasible": lambda task: "yes" if task.feasible else "no",
}


def distribution(tasks: Sequence[Task]) -> dict[str, dict[str, int]]:
    """For each side of a task, how many tasks have which value, sorted by value.

    The classes of ``expected_steps`` are all there, empty ones too.
    """
    found = {
        side: dict(sorted(collections.Counter(map(value, tasks)).items()))
        for side, value in _SIDES.items()
    }
    steps = [task.expected_steps for task in tasks]
    found["expected_steps"] = {
        f"{low} and more" if high is None else f"{low} to {high}": sum(
            low <= count and (high is None or count <= high) for count in steps
        )
        for low, high in STEPS
    }
    return found
