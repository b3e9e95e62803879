"""How vectors of environments end: closed under way, forgotten, or with their program."""

# ruff: noqa: F811 - fixtures
from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

from cua_gym import actions as a
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.task import Task
from cua_gym.vector import DesktopVectorEnv
from tests.vector_toys import QUICK, STILL, Make, Starts, make, task, until  # noqa: F401 - fixtures


def test_closing_ends_a_step_under_way(make: Make):
    """In seconds, whatever the machines are doing."""
    env = make(start=(starts := Starts()))
    env.reset(seed=1)

    def step() -> None:
        with contextlib.suppress(Exception):  # whatever a closed machine answers
            env.step([a.Wait(60)] * 3)

    stepping = threading.Thread(target=step)
    stepping.daemon = True
    stepping.start()
    while [one.episode.steps for one in env.envs] != [1, 1, 1]:
        time.sleep(0.01)
    began = time.monotonic()
    env.close()
    assert time.monotonic() - began < 30
    assert all(machine.closed for machine in starts.made)


def test_a_program_that_fails_ends(tmp_path: Path):
    """One traceback, no hang, although the threads of the slots are there."""
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.run.toy import make_suite, on_toy_computer
from cua_gym.vector import DesktopVectorEnv
suite = Path(sys.argv[2])
env = DesktopVectorEnv(3, on_toy_computer(make_suite(suite).task("type-word")), runs=suite / "runs")
env.reset(seed=1)
raise LookupError("mine")
"""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script, str(root), str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.strip().endswith("LookupError: mine")


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("warm", [0, 2])
def test_closing_in_a_step_or_a_reset_leaves_no_machine(make: Make, mode: AutoresetMode, warm: int):
    """Whatever was under way, and however the next machine comes."""
    starts = Starts()
    env = make(2, autoreset_mode=mode, warm=warm, start=starts)
    env.reset(seed=1)
    calling = [lambda: env.step([a.Wait(1.0)] * 2), lambda: env.reset(seed=2)]

    def call(what: Callable[[], Any]) -> None:
        with contextlib.suppress(gym.error.ClosedEnvironmentError, RuntimeError):
            what()

    threads = [threading.Thread(target=call, args=(one,)) for one in calling]
    for thread in threads:
        thread.start()
        time.sleep(0.2)
    env.close()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    until(lambda: all(machine.closed for machine in starts.made), "every machine closed")


def test_closing_while_a_machine_starts(make: Make):
    """It is closed as soon as it is there."""
    goes_on = threading.Event()
    starts = Starts()

    def slow(spec: MachineSpec, **options: Any) -> Machine:
        goes_on.wait()
        return starts(spec, **options)

    env = make(1, warm=0, start=slow)
    resetting = threading.Thread(target=lambda: env.reset(seed=1), daemon=True)
    resetting.start()
    until(lambda: bool(env.envs[0]._episode), "a reset under way")
    closing = threading.Thread(target=env.close, daemon=True)
    closing.start()
    until(lambda: env.closed, "closing under way")
    goes_on.set()
    for thread in (closing, resetting):
        thread.join(20)
        assert not thread.is_alive()
    until(lambda: all(machine.closed for machine in starts.made), "every machine closed")
    assert len(starts.made) == 1


def test_a_forgotten_vector_ends(task: Task, tmp_path: Path):
    """Its machines and threads go with it."""
    starts = Starts()
    before = threading.active_count()
    env = DesktopVectorEnv(2, task, runs=tmp_path, settle=QUICK, start=starts)
    env.reset(seed=1)
    env.step([STILL] * 2)
    del env
    gc.collect()
    until(lambda: all(machine.closed for machine in starts.made), "every machine closed")
    until(lambda: threading.active_count() <= before, "no thread")
