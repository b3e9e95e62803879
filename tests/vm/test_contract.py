"""The machine contract on a real virtual machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cua_gym.machine.base import Machine, MachineSpec, Shell
from cua_gym.machine.start import start_machine
from cua_gym.testing import MachineContract, ShellContract

pytestmark = pytest.mark.vm


class TestQemuMachine(MachineContract):
    """`QemuMachine` keeps the contract."""

    @pytest.fixture
    def machine(self) -> Iterator[Machine]:
        """A fresh machine for each promise: some end it."""
        with start_machine(MachineSpec()) as machine:
            yield machine


class TestQemuShell(ShellContract):
    """Its shell keeps the shell's contract."""

    @pytest.fixture
    def shell(self, shared: Machine) -> Shell:
        """Its shell."""
        return shared.shell
