"""What all tests share: quick ones run first, those that need a virtual machine last."""

from __future__ import annotations

import pytest

_LATE = ("slow", "x11", "vm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order by cost, so that a plain mistake shows before a machine is started."""
    items.sort(
        key=lambda item: max((1 + _LATE.index(m.name) for m in item.iter_markers()
                              if m.name in _LATE), default=0)
    )  # fmt: skip
