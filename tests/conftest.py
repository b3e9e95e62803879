"""What all tests share: quick ones run first, those that need a virtual machine last."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and noisy: a slow example is no fault of the code.
settings.register_profile(
    "noisy", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("noisy")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A private folder for sockets, whose path may have 107 bytes: a TMPDIR can be longer."""
    with tempfile.TemporaryDirectory(prefix="cua-", dir="/tmp") as folder:
        yield Path(folder)


_LATE = ("slow", "x11", "vm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order by cost, so that a plain mistake shows before a machine is started."""
    items.sort(
        key=lambda item: max((1 + _LATE.index(m.name) for m in item.iter_markers()
                              if m.name in _LATE), default=0)
    )  # fmt: skip
