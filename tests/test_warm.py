"""Promises of machines made ready before a reset, for one environment and for many."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cua_gym
from cua_gym import actions as a
from cua_gym.env import DesktopEnv
from cua_gym.errors import OutOfMemory, TaskError
from cua_gym.machine.admission import VARIABLE
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.pool import WarmPool
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine
from cua_gym.setup_steps import run_setup
from cua_gym.task import Task, Variation
from cua_gym.vector import DesktopVectorEnv
from tests.run.toy import make_suite, on_toy_computer

ROOT = Path(__file__).parents[1]
QUICK: dict[str, Any] = {
    "settle": Settle(first_s=0.02, quiet_s=0.01, max_s=0.5),
    "max_seconds": 3600.0,  # on a busy host no episode ends by itself
}
SETUP = """
[[setup]]
file = { to = "/home/user/word.txt", content = "{word}" }
"""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """The toy task with a start state of its own for each seed."""
    suite = make_suite(tmp_path / "suite")
    with (tmp_path / "suite/tasks/type-word/task.toml").open("a") as file:
        file.write(SETUP)
    return on_toy_computer(suite.task("type-word"))


class Starts:
    """Makes machines as usual, and remembers which were made ready before."""

    def __init__(self) -> None:
        self.warm: list[FakeMachine] = []
        self.cold: list[FakeMachine] = []

    def __call__(self, spec: MachineSpec, **options: Any) -> Machine:
        machine = start_machine(spec, **options)
        assert isinstance(machine, FakeMachine)
        ahead = threading.current_thread().name == "cua-gym-warm"
        (self.warm if ahead else self.cold).append(machine)
        return machine


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Starts]:
    """With a cache of its own; in the end every machine is closed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    starts = Starts()
    yield starts
    assert all(machine.closed for machine in starts.warm + starts.cold)
    assert list(tmp_path.glob("cache/cua-gym/run/rooms/*")) == []


@pytest.fixture
def make(task: Task, tmp_path: Path, starts: Starts) -> Iterator[Callable[..., DesktopEnv]]:
    made: list[DesktopEnv] = []

    def make(**options: Any) -> DesktopEnv:
        options = {"warm": 1, "start": starts, **options}
        made.append(cua_gym.make(task, runs=tmp_path / "runs", **QUICK, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def word(env: DesktopEnv) -> str:
    """What the machine's start state says, which must be what the episode is about."""
    said = env.machine.shell.read("/home/user/word.txt").decode()
    assert said == env.episode.variation.params["word"]
    return said


def test_resets_without_a_seed_find_the_machine_that_they_want(
    make: Callable[..., DesktopEnv], starts: Starts
):
    """Of the variation that would have been drawn without a warm machine, too."""
    warm, cold = make(), make(warm=0, start=start_machine)
    words: list[list[str]] = [[], []]
    for env, said in zip((warm, cold), words, strict=True):
        for seed in (3, None, None, 5, None):
            env.reset(seed=seed)
            said.append(word(env))
    assert words[0] == words[1]
    assert len(set(words[0])) == 5
    machine = warm.machine
    assert machine in starts.warm
    assert len(starts.cold) == 2  # for the two seeds that were given


def test_who_names_another_variation_each_time_gets_that(
    make: Callable[..., DesktopEnv], starts: Starts
):
    """The first guess is closed; after that nothing is guessed."""
    env = make()
    for seed in (1, 2, 3):
        env.reset(seed=seed)
        assert env.episode.variation.seed == seed
        word(env)
    env.reset(options={"variation": 4})
    word(env)
    env.close()
    assert len(starts.cold) == 4
    assert len(starts.warm) <= 1  # less if it was dropped before it was begun


def test_the_same_variation_again_and_again(make: Callable[..., DesktopEnv], starts: Starts):
    """It is known after the second time."""
    env = make()
    for _ in range(4):
        env.reset(seed=7)
        word(env)
    assert len(starts.cold) == 2
    env.reset()  # draws again
    word(env)
    env.reset()
    word(env)
    assert len(starts.cold) == 3


def test_a_setup_that_fails_fails_where_it_is_wanted(
    make: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
):
    """In the reset, with the phase of a setup; the environment goes on."""
    env = make()

    def broken(machine: Machine, variation: Variation, *rest: Any) -> None:
        if variation.seed != 1:
            raise TaskError("planted: step 1")
        run_setup(machine, variation, *rest)

    with monkeypatch.context() as patch:
        patch.setattr("cua_gym.setup_steps.run_setup", broken)
        env.reset(seed=1)
        with pytest.raises(TaskError, match="planted"):
            env.reset()
    assert env.evaluate().phase == "setup"
    env.reset()
    word(env)


def test_closing_ends_the_machine_that_was_made_ready(
    make: Callable[..., DesktopEnv], starts: Starts
):
    """And a reset after it works as ever."""
    env = make()
    env.reset(seed=1)
    env.close()
    env.close()
    assert all(machine.closed for machine in starts.warm + starts.cold)
    env.reset()
    word(env)


def test_copies_take_nothing_from_the_first(make: Callable[..., DesktopEnv], starts: Starts):
    """A fork starts from its moment, and its own resets are cold."""
    env = make()
    env.reset(seed=1)
    (child,) = env.fork(1)
    child.reset()
    word(child)
    env.reset()
    word(env)
    assert env.machine in starts.warm
    assert child.machine in starts.cold
    child.close()
    word(env)


def test_environments_of_ones_own_may_share_a_pool(make: Callable[..., DesktopEnv], starts: Starts):
    """A machine made ready for one is not the other's."""
    pool = WarmPool(2, start=starts)
    first, second = make(warm=pool), make(warm=pool)
    first.reset(seed=1)
    second.reset(seed=2)
    for env in (first, second, first, second):
        env.reset()
        word(env)
    assert len(starts.cold) == 2


def test_a_negative_number_is_refused(make: Callable[..., DesktopEnv]):
    """At once."""
    with pytest.raises(ValueError, match="not -1"):
        make(warm=-1)


def all_ready(env: DesktopVectorEnv) -> None:
    """Wait for the warm machines: few cores make them one by one, and no reset waits in line."""
    assert env._pool is not None
    orders = env._pool._orders
    with orders.changed:
        assert orders.changed.wait_for(lambda: all(order.made for order in orders.every), 60)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_each_slot_of_a_vector_comes_back_in_its_own_start_state(
    task: Task, tmp_path: Path, starts: Starts, mode: AutoresetMode
):
    """In every mode, from the warm machine made for it; those of the first reset are cold."""
    env = DesktopVectorEnv(
        3, task, autoreset_mode=mode, warm=3, start=starts, runs=tmp_path / "runs", **QUICK
    )
    env.reset(seed=1)
    for _ in range(2):
        all_ready(env)
        *_, terminations, truncations, _ = env.step([a.Submit(), a.Wait(0), a.Submit()])
        if mode is AutoresetMode.DISABLED:
            env.reset(options={"reset_mask": terminations | truncations})
        elif mode is AutoresetMode.NEXT_STEP:
            env.step([a.Wait(0)] * 3)
        assert [word(one) for one in env.envs]
    assert len(starts.cold) == 3
    assert [one.machine in starts.warm for one in env.envs] == [True, False, True]
    env.close()


@pytest.mark.parametrize(("warm", "most"), [(None, 2), (1, 1), (0, 0)])
def test_a_vector_warms_as_many_as_it_is_told(
    task: Task,
    tmp_path: Path,
    starts: Starts,
    monkeypatch: pytest.MonkeyPatch,
    warm: int | None,
    most: int,
):
    """One for each core, unless a number is given."""
    monkeypatch.setattr("cua_gym.vector.cores", lambda: 2)
    env = DesktopVectorEnv(3, task, warm=warm, start=starts, runs=tmp_path / "runs", **QUICK)
    env.reset(seed=1)
    env.close()
    assert len(starts.cold) == 3
    assert len(starts.warm) <= most
    if env._pool is not None:
        assert env._pool._size == most


def test_a_vector_that_does_not_fit_is_refused_at_once(
    task: Task, tmp_path: Path, starts: Starts, monkeypatch: pytest.MonkeyPatch
):
    """With numbers; one that fits has no fewer machines because of warm ones."""
    monkeypatch.setenv(VARIABLE, "40")
    options = {"start": starts, "runs": tmp_path / "runs", "warm": 2, **QUICK}
    with pytest.raises(OutOfMemory, match=r"3 machines take 48 MB.*40 MB are free"):
        DesktopVectorEnv(3, task, **options)
    assert starts.cold == []
    env = DesktopVectorEnv(2, task, **options)
    for _ in range(3):
        _, infos = env.reset()
        assert "error" not in infos
        assert [word(one) for one in env.envs]
    *_, truncations, _ = env.step([a.Wait(0)] * 2)
    assert not np.any(truncations)
    env.close()


@pytest.mark.parametrize("end", ["", "raise LookupError('mine')"])
def test_a_program_that_forgets_to_close_leaves_nothing(tmp_path: Path, end: str):
    """Ready or in the making: no folder of a machine, no note of its memory, no hang."""
    script = f"""
import sys
from pathlib import Path
from tests.run.toy import make_suite, on_toy_computer
from cua_gym.vector import DesktopVectorEnv
suite = Path(sys.argv[1])
task = on_toy_computer(make_suite(suite).task("type-word"))
env = DesktopVectorEnv(3, task, runs=suite / "runs", warm=3)
env.reset(seed=1)
{end}
"""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(scratch)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "suite")],
        capture_output=True, text=True, timeout=120, check=False, cwd=ROOT, env=os.environ | cache,
    )  # fmt: skip
    assert done.returncode == (1 if end else 0), done.stderr
    assert done.stderr.strip().endswith("LookupError: mine" if end else "")
    assert list(scratch.iterdir()) == []
    assert list(tmp_path.glob("cache/cua-gym/run/rooms/*")) == []
