"""Whether another process makes the same of a seed, as one that grades again must.

The order of a set and much else stands still while a process lives, so two calls in one process
tell nothing about them. `load_task` does not wait for other processes; ``task show`` does.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cua_gym.errors import TaskError
from cua_gym.task.load import load_task
from cua_gym.task.model import Task, Variation

__all__ = ["try_elsewhere"]

_PLACES = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC-11"},
    {"PYTHONHASHSEED": "2", "TZ": "UTC+11"},
)


def try_elsewhere(task: Task, seeds: Sequence[int]) -> None:
    """Compare these seeds' variations with those of two other processes.

    Raises:
        TaskError: one differs, or a process could not make it.
    """
    here = [_digest(task.variation(seed)) for seed in seeds]
    command = [sys.executable, "-m", __name__, str(task.folder), str(task.evaluators)]
    for place in _PLACES:
        done = subprocess.run(
            [*command, *map(str, seeds)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **place},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.strip()[-1000:]
            raise TaskError(f"{task.folder}: another process could not load it: {said}")
        for seed, one, two in zip(seeds, here, json.loads(done.stdout), strict=True):
            if one != two:
                raise TaskError(
                    f"{task.folder}: seed {seed} is another variation in another process; in "
                    "vary.py and hidden/answers.py sort what comes out of a set, and use no clock, "
                    "time zone or environment"
                )


def _digest(variation: Variation) -> str:
    files = {name: hashlib.sha256(data).hexdigest() for name, data in variation.inputs.items()}
    made = [variation.params, files, variation.answers]
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()


def _main(folder: str, evaluators: str, *seeds: str) -> None:
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # an author's file may print
    task = load_task(Path(folder), Path(evaluators))
    json.dump([_digest(task.variation(int(seed))) for seed in seeds], answer)
    answer.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
