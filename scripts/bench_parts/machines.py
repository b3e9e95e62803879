"""The kinds of computer that are measured, and what is done on each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args, get_type_hints

from cua_gym import actions as a
from cua_gym.clock import SystemClock
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.settle import Settle
from cua_gym.performing import Performer
from cua_gym.spaces import ActionSpace
from cua_gym.task import Task, bundled_suite

from .memory import available_mb
from .report import Report, timed

__all__ = [
    "CYCLE", "action", "do", "has_room", "kinds", "open_editor", "performer", "spec",
    "steps", "task",
]  # fmt: skip

CYCLE: Sequence[tuple[Any, ...]] = (
    ("click", 200, 150), ("key", "x"), ("key", "left"), ("key", "backspace"), ("move", 300, 250),
    ("click", 400, 300), ("key", "y"), ("key", "backspace"), ("move", 250, 200), ("key", "left"),
)  # fmt: skip
"""Steps in an open editor, each of which changes the screen; peers read them as they are.

From the second time on they leave the text as it was. One that grew would scroll, and one that
became empty would change the window's title: more is painted then than an editor's key asks for.
"""

# At rest a virtual machine holds some 100 MB of its own, after work some 300; a process that steps
# one, as Gymnasium's asynchronous vector has them, some 100 more.
NEEDS_MB = {"qemu": 450.0, "x11": 300.0}
SLOWEST_STEP_S = 6.0


def kinds() -> list[str]:
    """Those that this version knows, but for the toy in memory."""
    return [k for k in get_args(get_type_hints(MachineSpec)["backend"]) if k in NEEDS_MB]


def spec(kind: str) -> MachineSpec:
    """A computer of this kind, with the default image."""
    return MachineSpec(backend=kind)  # type: ignore[arg-type]


def task(kind: str) -> Task:
    """A task that begins with the editor open, on this kind of computer."""
    return replace(bundled_suite().task("write-many-scripts"), spec=spec(kind))


def open_editor(machine: Machine) -> None:
    """As the task has it."""
    machine.shell.run("setsid -f mousepad >/dev/null 2>&1 </dev/null")
    desktop.wait_window(machine.shell, "Mousepad", 60, active=True)


def action(words: Sequence[Any]) -> a.Action:
    """One of `CYCLE` as the house has it."""
    kinds: dict[str, Any] = {"click": a.Click, "move": a.Move, "key": a.Key}
    made: a.Action = kinds[words[0]](*words[1:])
    return made


def performer(machine: Machine, rule: Settle | None = None) -> Performer:
    """What performs a step on a bare machine: an action, until the screen is at rest, a frame."""
    own = machine.settle
    space = ActionSpace(machine.spec.screen, "both")
    return Performer(machine, space, rule or own, SystemClock())


def do(hand: Performer, what: a.Action) -> None:
    """One step; it has to work."""
    _, extra = hand.do(what, 60.0, None, None)
    if extra:
        raise SystemExit(f"{what} gave {extra}")


def steps(step: Callable[[a.Action], object], seconds: float) -> list[float]:
    """Seconds of each step for a while, in whole cycles: some actions take longer than others."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while not taken or time.perf_counter() < end:
        taken += [timed(partial(step, action(words))) for words in CYCLE]
    return taken


def has_room(report: Report, kind: str, what: str, many: int, last_step_s: float) -> bool:
    """Whether so many can be measured; else the report says why not.

    Args:
        last_step_s: of the number before, which had about half as many.
    """
    need, have = many * NEEDS_MB.get(kind, 50.0), available_mb()
    why = None
    if need > 0.8 * have:
        why = f"needs about {need:.0f} MB of memory, {have:.0f} MB are available"
    elif 2 * last_step_s > SLOWEST_STEP_S:
        why = f"a step took {last_step_s:.1f} s with half as many"
    if why:
        report.leave_out(what, why, many)
    return why is None
