"""Restores, many of them: right first frames, right clocks, nothing that grows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cua_gym  # noqa: F401 - registers the id
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import start_machine

pytestmark = pytest.mark.vm

SPEC = MachineSpec()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def own_children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_two_hundred_restores_give_two_hundred_right_frames() -> None:
    """Every first frame is the same picture; descriptors and processes do not grow."""
    with start_machine(SPEC) as machine:
        reference = machine.screen.grab().rgb
    files = children = -1
    for round_ in range(200):
        with start_machine(SPEC) as machine:
            assert np.array_equal(machine.screen.grab().rgb, reference), f"restore {round_}"
        if round_ == 4:
            files, children = open_files(), own_children()
    assert open_files() <= files
    assert own_children() <= children


def test_the_clock_is_right_after_a_restore() -> None:
    """The guest's clock is within a second of the host's before the first step."""
    with start_machine(SPEC) as machine:
        said = machine.shell.run("date +%s.%N").text
        assert abs(float(said) - time.time()) < 1.0


def test_clones_have_their_own_identity_and_entropy() -> None:
    """Two restores of one state draw different random numbers and machine ids."""
    command = "head -c 16 /dev/urandom | od -An -tx1; cat /etc/machine-id"
    said = set()
    for _ in range(2):
        with start_machine(SPEC) as machine:
            said |= set(machine.shell.run(command).text.splitlines())
    assert len(said) == 4


def test_keys_held_at_the_snapshot_are_up_after_it() -> None:
    """A state saved with keys and Caps Lock down comes back with none."""
    with start_machine(SPEC) as machine:
        machine.input.key("ctrl", True)
        machine.input.key("caps_lock", True)
        machine.input.key("caps_lock", False)
        machine.restore(machine.snapshot("held-keys"))
        said = machine.shell.run("xset q | grep -o 'Caps Lock: *[a-z]*'; xinput test-xi2 --help")
        assert "Caps Lock:   off" in said.text.replace("    ", "   ")


def test_a_host_folder_with_a_very_long_name_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No socket path can be too long, because there is none."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("CUA_GYM_RUN_DIR", str(deep))
    with start_machine(SPEC) as machine:
        assert machine.screen.grab().rgb.any()
        assert [p for p in deep.rglob("*") if p.is_socket()] == []


def test_the_registered_env_passes_gymnasiums_checker(tmp_path: Path) -> None:
    """`check_env` on the real machine."""
    env = gym.make("cua_gym/Desktop-v0", task="write-many-scripts", runs=tmp_path)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
