"""What an attempt is: its part of ``episode.json`` and of ``result.json``."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cua_gym.grading.sources import grader_hash
from cua_gym.machine.settle import Settle

if TYPE_CHECKING:
    from cua_gym.attempt import Attempt

__all__ = ["account", "describe"]


def describe(attempt: Attempt, rule: Settle) -> dict[str, Any]:
    """Task, seed, machine, limits and versions of a prepared attempt."""
    variation, task = attempt.variation, attempt.variation.task
    return {
        "task": task.name,
        "task_hash": task.hash,
        "task_folder": str(task.folder),
        "grader_hash": grader_hash(variation.rubric),
        "seed": variation.seed,
        "params": variation.params,
        "instruction": variation.instruction,
        "agent": attempt.agent,
        "spec": asdict(task.spec),
        "limits": {"steps": attempt.max_steps, "seconds": attempt.max_seconds},
        "settle": asdict(rule),
        "machine": getattr(attempt.machine, "description", {}),
        "versions": {
            "cua_gym": importlib.metadata.version("cua-gym"),
            "python": platform.python_version(),
        },
    }


def account(attempt: Attempt, submission: Mapping[str, Any], machine_s: float) -> dict[str, Any]:
    """How an attempt ended and what it cost.

    Args:
        machine_s: seconds in which the machine was at work for it.
    """
    return {
        "task": attempt.variation.task.name,
        "seed": attempt.variation.seed,
        "agent": attempt.agent,
        "steps": attempt.steps,
        "human_steps": attempt.human_steps,
        "submission": dict(submission),
        "usage": {**attempt.meter(), "machine_s": round(machine_s, 3)},
    }
