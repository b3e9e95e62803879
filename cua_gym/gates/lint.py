"""What can be wrong with a task that loads, seen without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cua_gym.gates.record import Judgement
from cua_gym.task import Task
from cua_gym.task.lint import drifting_code, drifting_text

__all__ = ["lint"]

_DECIDING = ("hidden/checks.py", "hidden/mutants.py", "oracle.py")


def lint(task: Task) -> Judgement:
    """Faults of the files that `cua_gym.task.load_task` accepts."""
    faults = [*_code_faults(task)]
    return Judgement.of(faults, "nothing drifts")


def _code_faults(task: Task) -> Iterator[str]:
    for name in _DECIDING:
        path = task.folder / name
        if path.is_file():
            tree = ast.parse(path.read_text("utf-8-sig"), str(path))
            for line, message in drifting_code(tree):
                yield f"{path}:{line}: {message}"
            for line, text in _texts(tree):
                for message in drifting_text(text, date_pinned=True):
                    yield f"{path}:{line}: {message}"


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String constants that are no docstrings, with their lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value
