"""Which files a grading depends on, and their hash: two equal hashes ask the same questions."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from cua_gym.grading.checkpoints import Rubric
from cua_gym.grading.library import OWN
from cua_gym.syntax import syntax_tree

__all__ = ["evaluator_files", "grader_hash"]

NO_GRADER = ("mutants.py",)
"""Hidden files that say something of the grader and are none of it."""


def grader_hash(rubric: Rubric) -> str:
    """SHA-256 over the hidden files and the evaluator modules that the checks use."""
    hidden = [
        (f"hidden/{path.relative_to(rubric.hidden).as_posix()}", path)
        for path in rubric.hidden.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name not in NO_GRADER
    ]
    checks = [point.check for point in rubric.checkpoints]
    modules = [
        (f"evaluators/{path.name}", path)
        for path in evaluator_files(checks, rubric.evaluators, rubric.hidden)
    ]
    digest = hashlib.sha256()
    for name, path in sorted([*hidden, *modules]):
        data = path.read_bytes()
        digest.update(f"{len(name)} {name} {len(data)} ".encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest()


def evaluator_files(checks: Iterable[str], evaluators: Path, hidden: Path) -> list[Path]:
    """The suite's modules that these checks (``module.function``) use, and what they import."""
    names = {check.partition(".")[0] for check in checks}
    own = hidden / f"{OWN}.py"
    found: dict[str, Path] = {}
    queue = sorted(names - {OWN})
    if OWN in names and own.is_file():
        queue += _imported(own, evaluators)
    while queue:
        name = queue.pop()
        path = evaluators / f"{name}.py"
        if name not in found and path.is_file():
            found[name] = path
            queue += _imported(path, evaluators)
    return [found[name] for name in sorted(found)]


def _imported(path: Path, package: Path) -> Sequence[str]:
    """Modules of the evaluators' folder that a file imports, from within it or by its name."""
    return _imports(path.read_bytes(), package.name)


@functools.lru_cache(maxsize=1000)  # asked at each reset, and slow
def _imports(source: bytes, package: str) -> Sequence[str]:
    try:
        tree = syntax_tree(source, "an evaluator")
    except (SyntaxError, ValueError):
        return ()  # whoever imports it says so
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found += _from(node, package)
        elif isinstance(node, ast.Import):
            found += [a.name.split(".")[1] for a in node.names if a.name.startswith(f"{package}.")]
    return found


def _from(node: ast.ImportFrom, package: str) -> Iterable[str]:
    module = node.module or ""
    if node.level == 0:
        if module.split(".")[0] != package:
            return []
        module = module.partition(".")[2]
    return [module.split(".")[0]] if module else [alias.name for alias in node.names]
