"""What was asked for: the content of an attempt's ``episode.json``."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cua_gym.grading.sources import grader_hash
from cua_gym.machine.settle import Settle

if TYPE_CHECKING:
    from cua_gym.episode import Episode

__all__ = ["describe"]


def describe(episode: Episode, rule: Settle) -> dict[str, Any]:
    """Task, seed, machine, limits and versions of a prepared episode."""
    variation, task = episode.variation, episode.variation.task
    return {
        "task": task.name,
        "task_hash": task.hash,
        "task_folder": str(task.folder),
        "grader_hash": grader_hash(variation.rubric),
        "seed": variation.seed,
        "params": variation.params,
        "instruction": variation.instruction,
        "agent": episode.agent,
        "spec": asdict(task.spec),
        "limits": {"steps": episode.max_steps, "seconds": episode.max_seconds},
        "settle": asdict(rule),
        "machine": getattr(episode.machine, "description", {}),
        "versions": {
            "cua_gym": importlib.metadata.version("cua-gym"),
            "python": platform.python_version(),
        },
    }
