"""What tests of vectors share: the toy task, vectors of it, and how machines are made for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from cua_gym import actions as a
from cua_gym.errors import MachineError
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.task import Task
from cua_gym.vector import DesktopVectorEnv
from tests.run.toy import make_suite, on_toy_computer

QUICK = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
STILL = a.Wait(0)
Make = Callable[..., DesktopVectorEnv]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))


@pytest.fixture
def make(task: Task, tmp_path: Path) -> Iterator[Make]:
    made: list[gym.vector.VectorEnv[Any, Any, Any]] = []

    def make(num_envs: int = 3, **options: Any) -> DesktopVectorEnv:
        options = {"task": task, "runs": tmp_path / "runs", "settle": QUICK, **options}
        env = gym.make_vec("cua_gym/Desktop-v0", num_envs=num_envs, **options)
        made.append(env)
        assert isinstance(env, DesktopVectorEnv)
        return env

    yield make
    for env in made:
        env.close()


class Starts:
    """Makes machines and counts them; some of them not."""

    def __init__(self, broken: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self.made: list[FakeMachine] = []
        self.broken = broken
        self._lock = threading.Lock()
        self._count = 0

    def __call__(self, spec: MachineSpec, *, prepare: Any, **_: Any) -> Machine:
        with self._lock:
            self._count += 1
            if self._count in self.broken:
                raise MachineError("the host has no room")
            machine = FakeMachine(spec)
            self.made.append(machine)
        try:
            prepare(machine)
        except BaseException:  # as every starter of machines does
            machine.close()
            raise
        return machine


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, f"still not: {what}"
        time.sleep(0.01)
