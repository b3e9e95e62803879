"""A running machine's branches: the parent's pause, the children's first frames, their memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from cua_gym.clock import SystemClock
from cua_gym.env import DesktopEnv
from cua_gym.errors import MachineError
from cua_gym.machine.settle import Settle, settle
from cua_gym.task import Task

from .machines import CYCLE, action, task
from .memory import anonymous_mb
from .report import Pace, Report

__all__ = ["CHILDREN", "forks", "measure"]

CHILDREN = 4
REST_S = 5.0


def forks(report: Report, kind: str, pace: Pace) -> None:
    """`DesktopEnv.fork` of an episode under way."""
    measure(report, kind, task(kind), pace)


def measure(report: Report, kind: str, what: Task, pace: Pace) -> None:
    """The same for a given task."""
    pauses: list[float] = []
    private: list[float] = []
    times, rights = [], []
    with tempfile.TemporaryDirectory() as runs, closing(
        DesktopEnv(what, runs=Path(runs), run="bench", max_steps=10**9)
    ) as env:  # fmt: skip
        env.reset(seed=0)
        for words in CYCLE:
            env.step(action(words))
        for _ in range(pace.rounds):
            screen = env.machine.screen
            settle(screen, screen.serial, Settle(0.5, 0.5, 20.0), SystemClock())
            frame = screen.grab().rgb
            with ExitStack() as stack:
                begun = time.perf_counter()
                try:
                    if kind == "qemu":
                        stack.enter_context(_pauses(env.machine, pauses))
                    children = env.fork(CHILDREN)
                except MachineError as error:
                    report.leave_out(f"fork({CHILDREN})", str(error))
                    return
                times.append(time.perf_counter() - begun)
                for child in children:
                    stack.enter_context(closing(child))
                rights.append(sum(
                    np.array_equal(child.machine.screen.grab().rgb, frame) for child in children
                ))  # fmt: skip
                if kind == "qemu":
                    time.sleep(REST_S)
                    private += [anonymous_mb(child.machine.pid) for child in children]  # type: ignore[attr-defined]
    whole = report.add(f"fork({CHILDREN}), until all have their frame", times, "s")
    report.compare(f"fork({CHILDREN}), seconds until all have their frame", whole, "<= 3")
    report.add(f"fork({CHILDREN}), right frames", rights, "")
    if kind == "qemu":
        pause = report.add("fork, the parent's pause", pauses, "s")
        report.compare("fork, seconds of the parent's pause", pause, "<= 0.6")
        each = report.add("fork, private memory of each child at rest", private, "MB")
        report.compare("fork, MB of each child's own at rest", each, "<= 300")


@contextmanager
def _pauses(machine: Any, into: list[float]) -> Iterator[None]:
    """Note how long a virtual machine's processors stand still."""
    engine = machine._running()  # this measures past the machine's own road
    pause, resume = engine.pause, engine.resume
    begun = 0.0

    def paused() -> None:
        nonlocal begun
        begun = time.perf_counter()
        pause()

    def resumed() -> None:
        resume()
        into.append(time.perf_counter() - begun)

    engine.pause, engine.resume = paused, resumed
    yield
    engine.pause, engine.resume = pause, resume
