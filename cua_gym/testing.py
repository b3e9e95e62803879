"""The contract that every kind of machine must pass, ours and yours.

Subclass it in your tests and give it a ``machine`` fixture::

    class TestMyMachine(MachineContract):
        @pytest.fixture
        def machine(self):
            with MyMachine(MachineSpec()) as machine:
                yield machine

`ShellContract` is the same for a `Shell` alone, with a ``shell`` fixture.
"""

from __future__ import annotations

import numpy as np
import pytest

from cua_gym.clock import SystemClock
from cua_gym.contract.shell import ShellContract
from cua_gym.errors import ActionError, MachineError, UnknownKey
from cua_gym.machine.base import Machine
from cua_gym.machine.settle import Settle, settle

__all__ = ["MachineContract", "ShellContract"]

QUIET = Settle(first_s=0.5, quiet_s=0.3, max_s=20.0)


def _rest(machine: Machine) -> np.ndarray:
    """The screen once it has stopped changing."""
    result = settle(machine.screen, machine.screen.serial, QUIET, SystemClock())
    assert result.settled, f"the screen never came to rest in {QUIET.max_s:g} s"
    return result.frame.rgb


class MachineContract:
    """Promises of `cua_gym.machine.base.Machine`, one test each."""

    def test_frame_is_rgb_of_the_screens_size(self, machine: Machine) -> None:
        """`grab` gives (height, width, 3) uint8 of the size that `screen.size` states."""
        frame = machine.screen.grab()
        width, height = machine.screen.size
        assert frame.rgb.shape == (height, width, 3)
        assert frame.rgb.dtype == np.uint8
        assert machine.spec.screen == (width, height)

    def test_first_frame_is_lit(self, machine: Machine) -> None:
        """The first picture is a desktop, not a black or one-colour placeholder."""
        assert len(np.unique(machine.screen.grab().rgb.reshape(-1, 3), axis=0)) > 1

    def test_frames_are_fresh_arrays(self, machine: Machine) -> None:
        """A frame is the caller's: writing into it changes no later frame."""
        first = machine.screen.grab()
        kept = first.rgb.copy()
        first.rgb[:] = 0
        assert not np.shares_memory(first.rgb, machine.screen.grab().rgb)
        assert kept.any()

    def test_a_given_array_shows_what_a_fresh_one_does(self, machine: Machine) -> None:
        """Whether it was given the last time or not, and whatever was grabbed meanwhile."""
        width, height = machine.screen.size
        one, other = (np.full((height, width, 3), fill, np.uint8) for fill in (7, 77))
        corners = [(x, y) for x in (0, width - 1) for y in (0, height - 1)]
        for i, point in enumerate([*corners, (width // 2, height // 2), *corners]):
            machine.input.pointer(*point)
            shown = _rest(machine)
            into = other if i % 3 == 2 else one
            if i % 2:
                machine.screen.grab()
            frame = machine.screen.grab(into.copy() if i % 5 == 4 else into)
            assert (frame.rgb == shown).all()
            assert frame.cursor == point
        small = np.zeros((height - 1, width, 3), np.uint8)
        assert machine.screen.grab(small).rgb.shape == (height, width, 3)
        assert not small.any()

    def test_moving_the_pointer_is_seen(self, machine: Machine) -> None:
        """The pointer is drawn in the frame, at the position that the frame reports."""
        width, height = machine.screen.size
        machine.input.pointer(width // 2, height // 2)
        before = _rest(machine)
        serial = machine.screen.serial
        machine.input.pointer(width // 4, height // 4)
        assert machine.screen.wait_change(serial, 5.0)
        after = _rest(machine)
        assert machine.screen.grab().cursor == (width // 4, height // 4)
        rows, columns = np.nonzero((before != after).any(axis=2))
        assert rows.size, "the frame did not change"
        assert rows.min() <= height // 4 + 16
        assert columns.min() <= width // 4 + 16

    def test_serial_rises_and_stillness_times_out(self, machine: Machine) -> None:
        """`wait_change` is False on a still screen; serials never fall."""
        _rest(machine)
        serial = machine.screen.serial
        assert not machine.screen.wait_change(serial, 0.05)
        assert machine.screen.grab().serial >= serial

    def test_pointer_off_the_screen_is_refused(self, machine: Machine) -> None:
        """A point off the screen is the agent's error and moves nothing."""
        machine.input.pointer(5, 5)
        width, height = machine.screen.size
        for x, y in ((-1, 0), (width, 0), (0, height)):
            with pytest.raises(ActionError, match=r"off the"):
                machine.input.pointer(x, y)
        assert machine.input.position == (5, 5)

    def test_unknown_key_is_refused_with_near_names(self, machine: Machine) -> None:
        """A key that does not exist is the agent's error."""
        with pytest.raises(UnknownKey, match="enter"):
            machine.input.key("entre", True)

    def test_restore_brings_files_back(self, machine: Machine) -> None:
        """What was changed after a snapshot is gone after its restore, what was before is not."""
        machine.shell.write("/home/user/kept.txt", b"before")
        state = machine.snapshot("contract")
        machine.shell.write("/home/user/kept.txt", b"after")
        machine.shell.write("/home/user/new.txt", b"new")
        machine.restore(state)
        assert machine.shell.read("/home/user/kept.txt") == b"before"
        with pytest.raises(FileNotFoundError):
            machine.shell.read("/home/user/new.txt")
        machine.shell.remove("/home/user/kept.txt")

    def test_machine_goes_on_after_a_snapshot(self, machine: Machine) -> None:
        """A snapshot only pauses: screen, input and shell work afterwards."""
        machine.snapshot("goes-on")
        serial = machine.screen.serial
        x, y = machine.input.position
        machine.input.pointer(x + 40 if x < 100 else x - 40, y)
        assert machine.screen.wait_change(serial, 5.0)
        assert machine.shell.run("echo alive").stdout == b"alive\n"

    def test_thaw_undoes_freeze(self, machine: Machine) -> None:
        """Files can be read while frozen; after the thaw the desktop user works again."""
        machine.shell.write("/home/user/frozen.txt", b"x")
        machine.freeze()
        assert machine.shell.read("/home/user/frozen.txt") == b"x"
        machine.thaw()
        assert machine.shell.run("echo thawed", timeout_s=20).stdout == b"thawed\n"
        machine.shell.remove("/home/user/frozen.txt")

    def test_close_is_idempotent_and_final(self, machine: Machine) -> None:
        """After `close` everything raises a MachineError, and closing again is fine."""
        machine.close()
        machine.close()
        with pytest.raises(MachineError):
            machine.check()
        with pytest.raises(MachineError):
            machine.screen.grab()
