"""Finding check functions: a suite's ``evaluators/`` and a task's own ``hidden/checks.py``."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from cua_gym.errors import CuaGymError, GradingError
from cua_gym.grading.check import Check

__all__ = ["CheckLibrary", "authors_code", "evaluators_package", "import_file"]

OWN = "checks"


class CheckLibrary:
    """Check functions by name: ``module.function``."""

    def __init__(self, evaluators: Path, hidden: Path) -> None:
        self._evaluators = evaluators
        self._hidden = hidden

    def find(self, name: str) -> Check:
        """The check of this name.

        Raises:
            GradingError: no such module or check, with near names; or it cannot be imported.
        """
        module_name, _, function_name = name.partition(".")
        module = self._module(module_name)
        function: Any = getattr(module, function_name, None)
        if not getattr(function, "is_check", False):
            known = sorted(n for n, v in vars(module).items() if getattr(v, "is_check", False))
            raise GradingError(f"no check {name!r}; {module_name} has {', '.join(known) or 'none'}")
        found: Check = function
        return found

    def _module(self, name: str) -> ModuleType:
        folder = self._hidden if name == OWN else self._evaluators
        if not name.isidentifier() or not (folder / f"{name}.py").is_file():
            known = sorted(p.stem for p in self._evaluators.glob("[a-z]*.py"))
            near = difflib.get_close_matches(name, known, n=2) or known
            raise GradingError(f"no evaluators module {name!r}; there is {', '.join(near)}")
        path = folder / f"{name}.py"
        with authors_code(str(path), GradingError):
            if name == OWN:
                return import_file(path)
            return importlib.import_module(f"{evaluators_package(self._evaluators)}.{name}")


@contextlib.contextmanager
def authors_code(what: str, kind: type[CuaGymError]) -> Iterator[None]:
    """Around every call into files that a task's author wrote: they may raise anything.

    Args:
        what: the file, and what of it is called.
        kind: the error to raise instead.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        raise kind(f"{what} raised {type(error).__name__}: {error}") from error


def evaluators_package(folder: Path) -> str:
    """Register an evaluators folder as a package, so that its modules may import each other.

    Its name holds the hash of its sources: two suites, or one before and after an edit, are two
    packages.
    """
    name = f"cua_gym_evaluators_{_digest(sorted(folder.glob('*.py')))}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def import_file(path: Path) -> ModuleType:
    """Import one Python file by path, anew after every edit of it.

    Raises:
        Whatever the file raises.
    """
    name = f"cua_gym_file_{path.stem}_{_digest([path])}"
    if name in sys.modules:
        return sys.modules[name]
    loader = _SourceOnly(path)
    spec = importlib.util.spec_from_loader(name, loader, origin=str(path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up here while it is being run.
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _SourceOnly(importlib.abc.SourceLoader):
    """Compiles every time: no ``__pycache__`` in a task's folder, and never a stale one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get_filename(self, fullname: str) -> str:
        return str(self._path)

    def get_data(self, path: str | bytes) -> bytes:
        return self._path.read_bytes()


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(str(path.resolve()).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
