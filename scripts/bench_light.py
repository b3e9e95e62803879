"""Measures light desktops: starts, and steps a second of many at once. A part of `bench.py`.

A step is what an episode does but for its record: an action, the wait until the screen settles, a
frame. Each desktop has an editor open and is driven by a thread of its own through clicks, keys and
moves. Alone: ``python scripts/bench_light.py``.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from cua_gym import actions as a
from cua_gym.clock import SystemClock
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.start import start_machine
from cua_gym.performing import Performer
from cua_gym.spaces import ActionSpace

__all__ = ["light"]

SPEC = MachineSpec(backend="x11")
MANY = (1, 4, 8, 16)
SECONDS = 4.0
ROUNDS = 3
ACTIONS = (
    a.Click(200, 150), a.Key("x"), a.Key("y"), a.Move(300, 250), a.Key("backspace"),
    a.Click(400, 300), a.Key("z"), a.Key("backspace"), a.Move(250, 200), a.Key("left"),
)  # fmt: skip

Add = Callable[[str, list[float], str], float]


def light(add: Add, count: int) -> None:
    """Rows of starts, of a step's parts, and of steps a second.

    Args:
        add: takes a row: its name, its values, their unit.
        count: of starts.
    """
    start_machine(SPEC, progress=lambda text: print(f"  {text}", file=sys.stderr)).close()
    starts, ends = [], []
    for _ in range(count):
        begun = time.perf_counter()
        machine = start_machine(SPEC)
        starts.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        machine.close()
        ends.append(time.perf_counter() - begun)
    add("light desktop, from nothing to at rest", starts, "s")
    add("light desktop, its end", ends, "s")
    with ExitStack() as stack:
        desktops: list[tuple[Machine, Performer]] = []
        for many in MANY:
            while len(desktops) < many:
                desktops.append(_editor(stack.enter_context(start_machine(SPEC))))
            if many == 1:
                machine = desktops[0][0]
                grabs = []
                for _ in range(10 * count):
                    begun = time.perf_counter()
                    machine.screen.grab()
                    grabs.append(1e3 * (time.perf_counter() - begun))
                add("light desktop, a frame", grabs, "ms")
            rates, seconds = [], []
            for _ in range(ROUNDS):
                with ThreadPoolExecutor(many) as pool:
                    begun = time.perf_counter()
                    taken = list(pool.map(lambda pair: _steps(pair[1]), desktops))
                    rates.append(sum(map(len, taken)) / (time.perf_counter() - begun))
                seconds += [1e3 * s for one in taken for s in one]
            add(f"{many} light desktops, steps a second in all", rates, "1/s")
            add(f"{many} light desktops, a step", seconds, "ms")


def _editor(machine: Machine) -> tuple[Machine, Performer]:
    machine.shell.run("setsid -f mousepad >/dev/null 2>&1 </dev/null")
    desktop.wait_window(machine.shell, "Mousepad", 60, active=True)
    space = ActionSpace(SPEC.screen, "both")
    return machine, Performer(machine, space, machine.settle, SystemClock())


def _steps(performer: Performer) -> list[float]:
    """Seconds of each step for a while."""
    taken = []
    end = time.perf_counter() + SECONDS
    for action in itertools.cycle(ACTIONS):
        begun = time.perf_counter()
        if begun > end:
            return taken
        _, extra = performer.do(action, 60.0, None, None)
        if extra:
            raise SystemExit(f"{action} gave {extra}")
        taken.append(time.perf_counter() - begun)
    raise AssertionError("a cycle has no end")


if __name__ == "__main__":
    from bench import Table

    light(Table().add, 10)
