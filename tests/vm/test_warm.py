"""Warm resets of a real machine: as fresh as a cold one."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cua_gym
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.start import start_machine

pytestmark = pytest.mark.vm

IDENTITY = "head -c 16 /dev/urandom | od -An -tx1; cat /etc/machine-id"


def test_a_warm_reset_gives_a_fresh_machine(tmp_path: Path) -> None:
    """The frame of a cold one, the clock of now, an identity of its own, and nothing stays."""
    warm: list[Machine] = []

    def start(spec: MachineSpec, **options: Any) -> Machine:
        machine = start_machine(spec, **options)
        if threading.current_thread().name == "cua-gym-warm":
            warm.append(machine)
        return machine

    env = cua_gym.make("write-many-scripts", runs=tmp_path, warm=1, start=start)
    frames, said = [], set()
    for number in range(4):
        observation, _ = env.reset(seed=0)
        frames.append(observation["screenshot"])
        shell = env.machine.shell
        lag_s = abs(float(shell.run("date +%s.%N").text) - time.time())
        assert lag_s < 1.0, f"reset {number}: {lag_s:.2f} s"
        said |= set(shell.run(IDENTITY).text.splitlines())
        time.sleep(10)  # the next machine stands still meanwhile: its clock has to be set
    assert env.machine in warm
    assert all(np.array_equal(frame, frames[0]) for frame in frames)
    assert len(said) == 8
    env.close()
    for machine in warm:
        with pytest.raises(cua_gym.MachineError, match="closed"):
            machine.check()
