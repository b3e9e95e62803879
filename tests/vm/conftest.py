"""Real machines of the default image. An image that is not built fails the tests, loudly."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from cua_gym.clock import SystemClock
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.hands import Hands
from cua_gym.machine.settle import Settle, settle
from cua_gym.machine.start import start_machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine of its own, in the ready state."""
    with start_machine(MachineSpec()) as machine:
        yield machine


@pytest.fixture(scope="module")
def shared() -> Iterator[Machine]:
    """One machine for a module's tests that leave it as they found it."""
    with start_machine(MachineSpec()) as machine:
        yield machine


@pytest.fixture
def hands(shared: Machine) -> Iterator[Hands]:
    """Hands on the shared machine; nothing stays down."""
    hands = Hands(shared.input, shared.screen, SystemClock())
    yield hands
    hands.release()


def todays(names: Sequence[str]) -> list[str]:
    """Each day (UTC) another tenth of them, and all of them in ten days."""
    today = datetime.datetime.now(datetime.UTC).toordinal()
    return [name for number, name in enumerate(names) if number % 10 == today % 10]


def rest(machine: Machine) -> None:
    """Wait until the screen has come to rest."""
    rule = Settle(first_s=1.0, quiet_s=0.5, max_s=30.0)
    settle(machine.screen, machine.screen.serial, rule, SystemClock())


def until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Poll the guest until a condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"after {timeout_s:g} s still not: {what}")
        time.sleep(0.2)


def open_app(machine: Machine, command: str, title: str) -> None:
    """Start a program on the desktop and wait for its window and its last paint."""
    machine.shell.run(f"setsid -f {command} >/dev/null 2>&1 </dev/null")
    until(lambda: title in machine.shell.run("wmctrl -l").text, f"a window {title!r}")
    rest(machine)
