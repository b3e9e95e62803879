"""From power-on to a desktop at rest, on wires whose other ends are scripted."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import cast

import pytest

from cua_gym.errors import MachineError, MachineTimeout
from cua_gym.machine.base import Machine
from cua_gym.machine.channel import ControlChannel
from cua_gym.machine.guest_agent import GuestAgent
from cua_gym.machine.qemu import boot
from cua_gym.machine.qemu.engine import Engine


class Alive:
    """An engine whose process runs."""

    def check(self) -> None:
        """Nothing is wrong."""


class Agent:
    """A guest agent that is there, or not yet."""

    def __init__(self, there: bool) -> None:
        self.there = there

    def ping(self) -> None:
        if not self.there:
            raise MachineTimeout("planted")


@pytest.fixture
def deaf() -> Iterator[ControlChannel]:
    """A control channel whose guest never opened the port."""
    ours, theirs = socket.socketpair()
    with theirs, ControlChannel(ours) as channel:
        yield channel


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short limits."""
    monkeypatch.setattr(boot, "ASK_S", 0.02)
    monkeypatch.setattr(boot, "DAEMON_S", 0.1)
    monkeypatch.setattr(boot, "BOOT_S", 0.5)


def _wait(channel: ControlChannel, agent: Agent) -> None:
    nobody = cast(Machine, None)
    boot.wait_until_ready(
        nobody, cast(Engine, Alive()), channel, cast(GuestAgent, agent), lambda _: None
    )


def test_a_guest_without_the_daemon_is_named(
    deaf: ControlChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its agent answers, its control port never: said long before the boot is given up."""
    monkeypatch.setattr(boot, "BOOT_S", 60.0)
    with pytest.raises(MachineError, match=r"org\.cua_gym\.control.*is cua-guestd in this image"):
        _wait(deaf, Agent(there=True))


def test_a_guest_that_never_comes_up_is_a_timeout(deaf: ControlChannel) -> None:
    """Neither agent nor daemon: what it waits for is named."""
    with pytest.raises(MachineTimeout, match="still waits for its daemon"):
        _wait(deaf, Agent(there=False))
