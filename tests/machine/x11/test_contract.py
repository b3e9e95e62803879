"""The contracts on a real light desktop."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cua_gym.machine.base import Machine, Shell
from cua_gym.testing import MachineContract, ShellContract
from tests.machine.x11.conftest import start

pytestmark = [pytest.mark.x11, pytest.mark.slow]


class TestX11Machine(MachineContract):
    """`X11Machine` keeps the contract."""

    @pytest.fixture
    def machine(self) -> Iterator[Machine]:
        """A fresh desktop for each promise: some end it."""
        with start() as machine:
            yield machine


class TestX11Shell(ShellContract):
    """Its shell keeps the shell's contract."""

    @pytest.fixture
    def shell(self, shared: Machine) -> Shell:
        """Its shell."""
        return shared.shell
