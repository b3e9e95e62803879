"""The toy task under its name, for commands that run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

# Loaded before the patch below, so that it keeps the real find_task.
import cua_gym.run.regrade
import cua_gym.task
from cua_gym.task import Suite
from tests.run.toy import make_suite, on_toy_computer


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """The toy suite as the bundled one, on the toy computer; the current folder is empty."""
    toy = make_suite(tmp_path / "suite")
    monkeypatch.setattr(
        cua_gym.task, "find_task", lambda name, suite=None: on_toy_computer(toy.task(str(name)))
    )
    monkeypatch.setattr(cua_gym.task, "bundled_suite", lambda: toy)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return toy
