"""Suites: folders with ``tasks/``, ``evaluators/`` and ``images/``, found by path."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import cua_gym
from cua_gym.errors import TaskError
from cua_gym.task.load import load_task
from cua_gym.task.model import Task

__all__ = ["Suite", "bundled_suite", "find_task"]


@dataclass(frozen=True, slots=True)
class Suite:
    """A folder of tasks and the check functions that they share."""

    path: Path

    def names(self) -> list[str]:
        """Names of all task folders, sorted; nothing is validated."""
        return sorted(p.parent.name for p in (self.path / "tasks").glob("*/task.toml"))

    def tasks(self) -> list[Task]:
        """All tasks, loaded.

        Raises:
            TaskError: one of them is invalid.
        """
        return [self.task(name) for name in self.names()]

    def task(self, name: str) -> Task:
        """One task by name.

        Raises:
            TaskError: no such task, with near names; or it is invalid.
        """
        names = self.names()
        if name not in names:
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(near)}?" if near else f"there is {', '.join(names)}"
            raise TaskError(f"no task {name!r} in {self.path / 'tasks'}; {hint}")
        return load_task(self.path / "tasks" / name, self.path / "evaluators")


def bundled_suite() -> Suite:
    """The suite that comes with cua_gym: the repository's root, or the copy in the wheel.

    Raises:
        TaskError: neither is there.
    """
    package = Path(cua_gym.__file__).resolve().parent
    for path in (package / "suite", package.parent):
        if (path / "tasks").is_dir() and (path / "evaluators").is_dir():
            return Suite(path)
    raise TaskError(f"no tasks/ and evaluators/ in {package / 'suite'} or {package.parent}")


def find_task(name: str | Path, suite: Suite | None = None) -> Task:
    """A task by its name in a suite (by default the bundled one) or by its folder's path.

    Raises:
        TaskError: no such task, with near names; or it is invalid.
    """
    path = Path(name)
    if (path / "task.toml").is_file():
        bundled = bundled_suite().path / "evaluators"
        own = path.resolve().parent.parent / "evaluators"
        return load_task(path, own if own.is_dir() else bundled)
    if isinstance(name, Path) or "/" in name:
        raise TaskError(f"{path / 'task.toml'} does not exist; give a task folder or a task's name")
    return (suite or bundled_suite()).task(name)
