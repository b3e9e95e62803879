"""Real light desktops of the default image. An image that is not built fails the tests, loudly."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import start_machine
from cua_gym.machine.x11.machine import X11Machine

SPEC = MachineSpec(backend="x11")


def start(**options: object) -> X11Machine:
    """A desktop of its own."""
    machine = start_machine(SPEC, **options)  # type: ignore[arg-type]
    assert isinstance(machine, X11Machine)
    return machine


@pytest.fixture(scope="module")
def shared() -> Iterator[X11Machine]:
    """One desktop for a module's tests that leave it as they found it."""
    if not shutil.which("Xvfb"):
        pytest.skip("needs Xvfb (package xvfb)")
    with start() as machine:
        yield machine


def until(condition: object, what: str, seconds: float = 20) -> None:
    """Poll until it holds."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, f"still not: {what}"
        time.sleep(0.05)
