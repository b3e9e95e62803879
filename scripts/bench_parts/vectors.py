"""Many environments: our vector beside bare machines and beside Gymnasium's vectors.

Our vector, the bare machines and Gymnasium's synchronous vector take turns on the same machines,
and the asynchronous one, whose workers have machines of their own, comes after them. All of these
record lines alone, as training does; our vector is also measured with every step filmed.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from cua_gym.actions import Action
from cua_gym.env import DesktopEnv
from cua_gym.machine.base import Machine
from cua_gym.task import Task
from cua_gym.vector import DesktopVectorEnv

from .machines import CYCLE, action, do, has_room, performer, steps, task
from .memory import tree_mb
from .report import Pace, Report, timed

__all__ = ["ALONE", "ASYNC", "FILMED", "IN_STEP", "SYNC", "VECTOR", "measure", "vectors"]

ALONE = "bare machines, each at its own pace"
IN_STEP = "bare machines, in step"
VECTOR = "our vector"
FILMED = "our vector, filmed"
SYNC = "Gymnasium's SyncVectorEnv"
ASYNC = "Gymnasium's AsyncVectorEnv"
MACHINES = ("cua_gym.machine.qemu.machine", "cua_gym.machine.x11.machine")
# Episodes that never end, and one batch that is reused, which Gymnasium's vectors offer too.
OPTIONS: dict[str, Any] = {"max_steps": 10**9, "max_seconds": 1e6, "film_every": 0}


def vectors(report: Report, kind: str, pace: Pace, counts: Sequence[int]) -> None:
    """Steps a second, resets and memory for each number of environments."""
    measure(report, kind, task(kind), pace, counts)


def measure(
    report: Report, kind: str, what: Task, pace: Pace, counts: Sequence[int], aside: bool = True
) -> None:
    """The same for a given task; ``aside`` takes Gymnasium's asynchronous vector too."""
    last = last_async = 0.0
    with tempfile.TemporaryDirectory() as runs:
        make = partial(DesktopEnv, what, runs=Path(runs), run="bench", **OPTIONS)
        with closing(make()) as env:
            env.reset(seed=0)  # makes the start state, once
        for many in counts:
            if has_room(report, kind, VECTOR, many, last):
                last = _ours(report, what, Path(runs), pace, many)
                _by_default(report, what, Path(runs), pace, many)
            if aside and has_room(report, kind, ASYNC, many, last_async):
                last_async = _theirs(report, make, pace, many)
                _compare(report, kind, many)


def _ours(report: Report, what: Task, runs: Path, pace: Pace, many: int) -> float:
    before = tree_mb()
    with closing(
        DesktopVectorEnv(many, what, runs=runs, run="bench", copy=False, warm=0, **OPTIONS)
    ) as env, ThreadPoolExecutor(many) as pool:  # fmt: skip
        env.reset(seed=[0] * many)
        one = np.arange(many) == 0
        single = [timed(lambda: env.reset(seed=[0] * many, options={"reset_mask": one}))
                  for _ in range(2 * pace.rounds)]  # fmt: skip
        every = [timed(lambda: env.reset(seed=[0] * many)) for _ in range(2 * pace.rounds)]
        report.add("reset one of them", single, "s", many)
        report.add("reset all", every, "s", many)
        same: list[Any] = [partial(_itself, e) for e in env.envs]
        sync = SyncVectorEnv(same, copy=False, autoreset_mode=AutoresetMode.DISABLED)
        machines = [e.machine for e in env.envs]
        ways: dict[str, Callable[[], tuple[int, list[float]]]] = {
            ALONE: lambda: _alone(pool, machines, pace.seconds),
            IN_STEP: lambda: _in_step(pool, machines, pace.seconds),
            VECTOR: lambda: _stepped(env, many, pace.seconds),
            SYNC: lambda: _stepped(sync, many, pace.seconds),
        }
        _once_through(env, many)
        _rounds(report, ways, pace.rounds, many)
        report.add(f"{VECTOR}, memory of each", [(tree_mb() - before) / many], "MB", many)
    return report.median(f"{VECTOR}, a step", many) or 0.0


def _by_default(report: Report, what: Task, runs: Path, pace: Pace, many: int) -> None:
    """Filmed, and the next machines made ready meanwhile."""
    options = OPTIONS | {"film_every": 1}
    with closing(
        DesktopVectorEnv(many, what, runs=runs, run="bench", copy=False, **options)
    ) as env:
        env.reset(seed=[0] * many)
        _once_through(env, many)
        _rounds(report, {FILMED: lambda: _stepped(env, many, pace.seconds)}, pace.rounds, many)
        ready = []
        for _ in range(pace.rounds):
            _stepped(env, many, pace.seconds)
            ready.append(timed(lambda: env.reset(seed=[0] * many)))
        report.add("reset all, some made ready while they stepped", ready, "s", many)


def _itself(env: DesktopEnv) -> DesktopEnv:
    return env


def _theirs(report: Report, make: Callable[[], gym.Env[Any, Any]], pace: Pace, many: int) -> float:
    # Its default, a fork of this process with all its threads, would hang; the fork server has the
    # same thrift, since the workers share what it has imported.
    multiprocessing.set_forkserver_preload(["__main__", "cua_gym.env", *MACHINES])
    before = tree_mb()
    env = AsyncVectorEnv(
        [make] * many, context="forkserver", copy=False, autoreset_mode=AutoresetMode.DISABLED
    )
    try:
        every = [timed(lambda: env.reset(seed=[0] * many)) for _ in range(1 + pace.rounds)][1:]
        report.add(f"{ASYNC}, reset all", every, "s", many)
        _once_through(env, many)
        ways = {ASYNC: lambda: _stepped(env, many, pace.seconds)}
        _rounds(report, ways, pace.rounds, many)
        report.add(f"{ASYNC}, memory of each", [(tree_mb() - before) / many], "MB", many)
    finally:
        env.close()
    return report.median(f"{ASYNC}, a step", many) or 0.0


def _rounds(
    report: Report,
    ways: dict[str, Callable[[], tuple[int, list[float]]]],
    rounds: int,
    many: int,
) -> None:
    """Each way's steps a second in all, and its seconds for each step, all ways in turns."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for i in range(rounds):
        for name in (*names[i % len(names) :], *names[: i % len(names)]):
            begun = time.perf_counter()
            done, taken = ways[name]()
            rates[name].append(done / (time.perf_counter() - begun))
            seconds[name] += taken
    for name in ways:
        report.add(f"{name}, steps", rates[name], "1/s", many)
    for name in ways:
        report.add(f"{name}, a step", seconds[name], "s", many)


def _alone(
    pool: ThreadPoolExecutor, machines: Sequence[Machine], seconds: float
) -> tuple[int, list[float]]:
    taken = list(pool.map(lambda m: steps(partial(do, performer(m)), seconds), machines))
    flat = [s for one in taken for s in one]
    return len(flat), flat


def _in_step(
    pool: ThreadPoolExecutor, machines: Sequence[Machine], seconds: float
) -> tuple[int, list[float]]:
    hands = [performer(machine) for machine in machines]

    def step(what: Action) -> None:
        list(pool.map(lambda hand: do(hand, what), hands))

    taken = steps(step, seconds)
    return len(machines) * len(taken), taken


def _stepped(env: Any, many: int, seconds: float) -> tuple[int, list[float]]:
    taken = steps(partial(_step, env, many), seconds)
    return many * len(taken), taken


def _once_through(env: Any, many: int) -> None:
    """The first steps of a restored machine are slower, and are nobody's."""
    for words in CYCLE:
        _step(env, many, action(words))


def _step(env: Any, many: int, what: Action) -> None:
    _, _, terminations, truncations, infos = env.step((what,) * many)
    if (terminations | truncations).any() or "action_error" in infos:
        raise SystemExit(f"a step of {env} failed: {infos}")


def _compare(report: Report, kind: str, many: int) -> None:
    median = report.median
    report.ratio(
        "a step of our vector / of bare machines in step",
        median(f"{VECTOR}, a step", many), median(f"{IN_STEP}, a step", many), "<= 1.1", many,
    )  # fmt: skip
    report.ratio(
        "steps/s of our vector / of AsyncVectorEnv",
        median(f"{VECTOR}, steps", many), median(f"{ASYNC}, steps", many),
        ">= 3 with 8 light desktops" if (kind, many) == ("x11", 8) else "", many,
    )  # fmt: skip
    report.ratio(
        "steps/s of our vector / of SyncVectorEnv",
        median(f"{VECTOR}, steps", many), median(f"{SYNC}, steps", many), "", many,
    )  # fmt: skip
    report.ratio(
        "reset all / reset one of them",
        median("reset all", many), median("reset one of them", many),
        "<= 2" if many == 4 else "", many,
    )  # fmt: skip
