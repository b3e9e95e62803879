"""What a gate's verdict depends on, as hashes: of a whole task, and of one attempt at it.

A verdict holds as long as the task, the check functions that it uses and its image are the same. An
attempt depends on less: nothing hidden decides what a machine does, so a changed grader judges old
attempts anew.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cua_gym import agent
from cua_gym.grading import sources
from cua_gym.grading.items import VERSION
from cua_gym.image.recipe import bundled_images, find_recipe
from cua_gym.syntax import syntax_tree
from cua_gym.task import Task, Variation

__all__ = ["attempt_hash", "content_hash", "evaluator_files"]

FORMAT = 1
"""Raised when gates come to other verdicts on the same content."""


def content_hash(task: Task) -> str:
    """Hash of all that decides the verdicts: task folder, check functions, image's recipe."""
    parts = {
        "format": FORMAT,
        "task": task.hash,
        "evaluators": {path.name: _file_hash(path) for path in evaluator_files(task)},
        "image": _image_hash(task),
    }
    return _hash(parts)


def attempt_hash(variation: Variation, agent: str, options: Mapping[str, Any]) -> str:
    """Hash of all that decides what an agent does at a variation, and what is collected then.

    Args:
        options: further things that it depends on, plain JSON values.
    """
    task = variation.task
    parts = {
        "format": [FORMAT, VERSION],
        "task": task.name,
        "seed": variation.seed,
        "image": _image_hash(task),
        "spec": asdict(task.spec),
        "limits": asdict(task.limits),
        "policy": task.tool_policy,
        "setup": [step.model_dump(mode="json") for step in task.setup],
        "params": variation.params,
        "inputs": {
            name: hashlib.sha256(data).hexdigest() for name, data in variation.inputs.items()
        },
        "probes": [asdict(probe) for probe in variation.probes],
        "agent": agent,
        "options": dict(options),
    }
    if agent == "oracle":
        files = [*sorted(task.folder.glob("*.py")), *_moves(task.folder / "oracle.py")]
        # By folder too: `cua_gym.agent` has an ``oracle.py`` of its own.
        parts["oracle"] = {f"{path.parent.name}/{path.name}": _file_hash(path) for path in files}
    return _hash(parts)


def evaluator_files(task: Task) -> list[Path]:
    """The suite's modules that the task's checkpoints use, and those that they import."""
    return sources.evaluator_files(
        [p.check for p in task.checkpoints], task.evaluators, task.hidden
    )


def _moves(oracle: Path) -> list[Path]:
    """The modules of `cua_gym.agent` that an oracle imports, and that they import from there."""
    folder = Path(agent.__file__).parent
    found: set[Path] = set()
    queue = [oracle]
    while queue:
        for node in ast.walk(syntax_tree(queue.pop().read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                package, _, name = node.module.rpartition(".")
                path = folder / f"{name}.py"
                if package == agent.__name__ and path.is_file() and path not in found:
                    found.add(path)
                    queue.append(path)
    return sorted(found)


def _image_hash(task: Task) -> str:
    return find_recipe(task.spec.image, (task.images, bundled_images())).hash


def _file_hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _hash(parts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
