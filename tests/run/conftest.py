"""The toy suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.task import Suite, Task
from tests.run.toy import make_suite, on_toy_computer


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """The toy suite, in a folder of its own."""
    return make_suite(tmp_path / "suite")


@pytest.fixture
def toy_task(suite: Suite) -> Task:
    """The toy task on the toy computer."""
    return on_toy_computer(suite.task("type-word"))
