"""From an image's ready state to a task's start state: files, commands, open applications.

Every step succeeds or the setup ends with an error. Nothing hidden is known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from cua_gym import template
from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import TaskError
from cua_gym.grading.start import StartEvidence
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine
from cua_gym.machine.settle import Settle, settle
from cua_gym.task import Variation
from cua_gym.task.files import FileStep, SetupEntry

__all__ = ["run_setup", "set_up"]

REST_S = 1.5
"""An application just opened paints in bursts, with pauses, on a slow machine."""

QUICK_REST_S = 0.3
"""The same where programs run natively, as they do where their start is not made once and kept."""


def set_up(
    machine: Machine, variation: Variation, progress: Callable[[str], None] = lambda _: None
) -> StartEvidence:
    """Bring a ready machine into the start state; the evidence of what is there then.

    Raises:
        TaskError, MachineError: as for `run_setup` and `StartEvidence.take`.
    """
    run_setup(machine, variation, progress)
    return StartEvidence.take(machine, variation.probes)


def run_setup(
    machine: Machine,
    variation: Variation,
    progress: Callable[[str], None] = lambda _: None,
    *,
    clock: Clock | None = None,
) -> None:
    """Carry out the setup steps of a variation, in order.

    Args:
        progress: told each step.

    Raises:
        TaskError: a step did not succeed; the message has its number and what it printed.
        MachineError: the machine failed.
    """
    for number, step in enumerate(variation.task.setup, 1):
        name = f"setup step {number}"
        if step.file is not None:
            _put_file(machine, variation, step.file, name, progress)
        elif step.run is not None:
            _run(machine, variation, step, step.run, name, progress)
        elif step.open is not None:
            _open(machine, variation, step, step.open, name, progress, clock or SystemClock())


def _put_file(
    machine: Machine,
    variation: Variation,
    step: FileStep,
    name: str,
    progress: Callable[[str], None],
) -> None:
    path = _fill(step.to, variation)
    progress(f"{name}: {path}")
    if step.source is not None:
        data = variation.inputs[_fill(step.source, variation).removeprefix("inputs/")]
    else:
        data = _fill(step.content or "", variation).encode()
    machine.shell.write(path, data, user=_account(step.user), mode=step.mode)


def _run(
    machine: Machine,
    variation: Variation,
    step: SetupEntry,
    command: str,
    name: str,
    progress: Callable[[str], None],
) -> None:
    command = _fill(command, variation)
    progress(f"{name}: {command}")
    _succeed(machine, command, step, name)
    if step.until is not None:
        condition = _fill(step.until, variation)
        # Polled inside the guest: a round trip costs more than the condition.
        _succeed(machine, f"until {{ {condition}\n}}; do sleep 0.3; done", step, f"{name}, until")


def _succeed(machine: Machine, command: str, step: SetupEntry, name: str) -> None:
    done = machine.shell.run(command, timeout_s=step.timeout_s, user=_account(step.user))
    if done.timed_out or done.exit != 0:
        how = f"ran over {step.timeout_s:g} s" if done.timed_out else f"exited with {done.exit}"
        printed = (done.stdout + done.stderr).decode(errors="replace").strip()[-1000:]
        raise TaskError(f"{name} {how}: {command!r}\n{printed}")


def _open(
    machine: Machine,
    variation: Variation,
    step: SetupEntry,
    argv: Sequence[str],
    name: str,
    progress: Callable[[str], None],
    clock: Clock,
) -> None:
    argv = [_fill(word, variation) for word in argv]
    # What a value brings into the pattern is text, not a pattern.
    literal = {k: re.escape(str(v)) for k, v in variation.params.items()}
    title = template.fill_text(step.window or "", literal)
    progress(f"{name}: open {' '.join(argv)}")
    launch = ["/bin/sh", "-c", 'setsid -f "$@" >/dev/null 2>&1 </dev/null', "sh", *argv]
    done = machine.shell.run(launch, timeout_s=step.timeout_s)
    if done.timed_out or done.exit != 0:
        raise TaskError(f"{name}: {argv} could not be started: {done.stderr[-500:]!r}")
    try:
        desktop.wait_window(machine.shell, title, step.timeout_s)
    except desktop.NotShown as error:
        raise TaskError(f"{name}: {argv} was opened, and {error}") from error
    # A window is mapped, and stands still, long before a big program has painted and listens.
    rest_s = REST_S if machine.saves_programs else QUICK_REST_S
    if not desktop.wait_idle(machine.shell, step.timeout_s, period_s=min(rest_s, 1.0)):
        raise TaskError(f"{name}: {argv} was still busy after {step.timeout_s:g} s")
    still = Settle(first_s=rest_s, quiet_s=rest_s, max_s=90.0)
    result = settle(machine.screen, machine.screen.serial, still, clock)
    if not result.settled:
        raise TaskError(f"{name}: the screen did not come to rest in {still.max_s:g} s")


def _account(user: str) -> str | None:
    """The machine's word for it: None is the desktop account, in its session."""
    return None if user == "user" else user


def _fill(text: str, variation: Variation) -> str:
    return template.fill_text(text, variation.params)
