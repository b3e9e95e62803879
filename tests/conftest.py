"""What all tests share: quick ones run first, those that need a virtual machine last."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# Machines are shared and noisy: a slow example is no fault of the code.
settings.register_profile(
    "noisy", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("noisy")

_LATE = ("slow", "x11", "vm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order by cost, so that a plain mistake shows before a machine is started."""
    items.sort(
        key=lambda item: max((1 + _LATE.index(m.name) for m in item.iter_markers()
                              if m.name in _LATE), default=0)
    )  # fmt: skip
