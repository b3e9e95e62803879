"""The tools of the shell bridge that run programs, as the desktop's account.

Output is bytes: it is told as text where it is UTF-8, else in base64, at most so much at once;
the rest stays on the host and is asked for by `poll`. Files have their own module.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from cua_gym import actions as a
from cua_gym.bridge.excerpt import excerpt
from cua_gym.bridge.paths import absolute
from cua_gym.bridge.session import Call
from cua_gym.bridge.tools import Reply, budget, fault
from cua_gym.errors import MachineError
from cua_gym.machine.base import Machine, Process
from cua_gym.steps import Step

__all__ = ["PROGRAMS", "told"]

SHOWN_BYTES = 30_000
"""Of each stream in one answer; models pay for every word."""

KEPT_BYTES = 16 << 20
"""Of each stream of a job; all jobs together keep less than a GiB."""

MAX_WAIT_S = 60.0
QUIET_S = 0.3
"""A terminal that has said nothing for so long waits for its user."""

_TICK_S = 0.05

Cwd = Annotated[str | None, Field(description="Working folder; the home folder if absent.")]
Env = Annotated[dict[str, str] | None, Field(description="Added to the desktop's environment.")]
From = Annotated[int, Field(ge=0, description="Offset in bytes to read from.")]
WaitS = Annotated[float, Field(ge=0, le=MAX_WAIT_S, description="Wait at most so long for it.")]


def run(
    call: Call,
    command: Annotated[str, Field(description="A script for bash.")],
    timeout_s: Annotated[
        float, Field(gt=0, le=600, description="Then all of it is killed; seconds.")
    ] = 60.0,
    cwd: Cwd = None,
    env: Env = None,
    background: Annotated[
        bool, Field(description="Return at once with the number of a job, as start does.")
    ] = False,
) -> Reply:
    """Run a command and return what it printed and its exit status.

    Longer output is cut; poll with the given job number gets the rest.
    """
    if background:
        return start(call, command, cwd, env)
    kept: list[Any] = []

    def work(machine: Machine) -> Mapping[str, Any]:
        number, process = _begin(call, machine, command, cwd, env)
        call.stop.then(lambda: _stop(process))
        timed_out = not process.wait(min(timeout_s, call.episode.seconds_left or 0.1))
        if timed_out:
            process.kill()
        facts = {**_facts(number, process, 0, 0), "timed_out": timed_out}
        if call.stop.asked:
            facts["stopped"] = True
        kept.append(facts)
        return {"shell": facts}

    step = call.use(work, acts=True, action=a.Shell(command, timeout_s))
    return told(step, _printed(kept[0]), kept[0]) if kept else told(step, "", {})


def start(call: Call, command: str, cwd: Cwd = None, env: Env = None) -> Reply:
    """Start a command in the background and return its job number; see poll and kill."""
    kept: list[int] = []

    def work(machine: Machine) -> Mapping[str, Any]:
        kept.append(_begin(call, machine, command, cwd, env)[0])
        return {"job": kept[0]}

    step = call.use(work, acts=True)
    return told(step, f"job {kept[0]} runs", {"job": kept[0]}) if kept else told(step, "", {})


def poll(
    call: Call,
    job: int,
    stdout_from: From = 0,
    stderr_from: From = 0,
    wait_s: WaitS = 0.0,
) -> Reply:
    """What a job has printed from the given offsets on, and whether it has ended."""
    process = call.session.jobs.get(job)
    _until(call, wait_s, lambda: process.wait(_TICK_S))
    facts = _facts(job, process, stdout_from, stderr_from)
    step = call.use(lambda machine: {"shell": facts}, acts=False)
    return told(step, _printed(facts), facts)


def kill(call: Call, job: int) -> Reply:
    """End a job that runs, with everything that it started."""
    process = call.session.jobs.get(job)

    def work(machine: Machine) -> Mapping[str, Any]:
        process.kill()
        return {"job": job, "exit": process.exit}

    step = call.use(work, acts=True)
    return told(step, f"job {job} has ended", {"job": job, "exit": process.exit})


def pty_open(
    call: Call,
    command: Annotated[str, Field(description="Run by bash on a terminal.")] = "bash -i",
    columns: Annotated[int, Field(ge=2, le=500)] = 80,
    rows: Annotated[int, Field(ge=2, le=200)] = 24,
    cwd: Cwd = None,
    env: Env = None,
) -> Reply:
    """Start an interactive program on a terminal of its own; the number is for the other pty_*."""
    kept: list[int] = []

    def work(machine: Machine) -> Mapping[str, Any]:
        kept.append(_begin(call, machine, command, cwd, env, (columns, rows))[0])
        return {"pty": kept[0]}

    step = call.use(work, acts=True)
    if not kept:
        return told(step, "", {})
    process = call.session.jobs.get(kept[0])
    _quiet(call, process, 0, 2.0)
    return _screen(step, kept[0], process, 0)


def pty_send(
    call: Call,
    pty: int,
    text: Annotated[
        str, Field(description="Keys as a terminal sends them: \\r is Enter, \\u0003 is Ctrl+C.")
    ],
    wait_s: WaitS = 2.0,
) -> Reply:
    """Send keys to a terminal and return what it printed since, once it is quiet."""
    process = call.session.jobs.get(pty)
    before = process.size("stdout")

    def work(machine: Machine) -> Mapping[str, Any]:
        process.write(text.encode("utf-8", "surrogatepass"))
        return {"pty": pty}

    step = call.use(work, acts=True)
    _quiet(call, process, before, wait_s)
    return _screen(step, pty, process, before)


def pty_read(call: Call, pty: int, offset: From = 0, wait_s: WaitS = 0.0) -> Reply:
    """What a terminal has printed from an offset on; waits for it to say something new."""
    process = call.session.jobs.get(pty)
    _quiet(call, process, offset, wait_s)
    step = call.use(lambda machine: {"pty": pty}, acts=False)
    return _screen(step, pty, process, offset)


def pty_resize(
    call: Call,
    pty: int,
    columns: Annotated[int, Field(ge=2, le=500)],
    rows: Annotated[int, Field(ge=2, le=200)],
) -> Reply:
    """Give a terminal another size in characters."""
    process = call.session.jobs.get(pty)

    def work(machine: Machine) -> Mapping[str, Any]:
        process.resize(columns, rows)
        return {"pty": pty}

    return told(call.use(work, acts=True), "done", {"pty": pty})


def pty_close(call: Call, pty: int) -> Reply:
    """End a terminal with everything that runs on it."""
    return kill(call, pty)


PROGRAMS: Sequence[Callable[..., Reply]] = (
    run, start, poll, kill, pty_open, pty_send, pty_read, pty_resize, pty_close,
)  # fmt: skip


def told(step: Step, text: str, known: Mapping[str, Any]) -> Reply:
    """An answer without a picture: a task that allows only the shell shows no screen."""
    info = step.info
    facts = {**known, **budget(step)}
    wrong = fault(step)
    if wrong is not None:
        return Reply(wrong, facts, error=True)
    if "limit" in info:
        text += f"\n[the limit of {info['limit']} is reached, the episode is over]"
    return Reply(text, facts)


def _begin(
    call: Call,
    machine: Machine,
    command: str,
    cwd: str | None,
    env: Mapping[str, str] | None,
    terminal: tuple[int, int] | None = None,
) -> tuple[int, Process]:
    jobs = call.session.jobs
    jobs.require_room()
    if cwd is not None:
        cwd = absolute(cwd, machine)
    process = machine.shell.start(
        command, cwd=cwd, env=env, terminal=terminal, keep_bytes=KEPT_BYTES
    )
    number = jobs.add(process)
    if terminal is None:
        process.close_input()
    return number, process


def _stop(process: Process) -> None:
    try:
        process.kill()
    except MachineError:
        pass  # whoever waits for the program meets the same fault


def _facts(number: int, process: Process, stdout_from: int, stderr_from: int) -> dict[str, Any]:
    code = process.exit
    return {
        "job": number,
        "running": code is None,
        "exit": code,
        **_stream(process, "stdout", stdout_from),
        **_stream(process, "stderr", stderr_from),
    }


def _stream(process: Process, name: Any, start: int) -> dict[str, Any]:
    # In this order: what comes in meanwhile is "more", never a character taken for a broken one.
    ended = process.exit is not None
    data = process.output(name, start, SHOWN_BYTES)
    size = process.size(name)
    part = excerpt(data, last=ended and start + len(data) >= size)
    end = start + part.taken
    facts = {part.field(name): part.content, f"{name}_next": end, f"{name}_size": size}
    if process.dropped:
        facts["dropped"] = process.dropped
    return facts


def _printed(facts: Mapping[str, Any]) -> str:
    """For a model: what was printed, then what else is to be known."""
    parts = []
    for name in ("stdout", "stderr"):
        text = facts.get(name)
        if text is None:
            text = f"[bytes that are no text, in base64] {facts[f'{name}_base64']}"
        left = facts[f"{name}_size"] - facts[f"{name}_next"]
        if left > 0:
            text += f"\n[{left} more bytes: poll job {facts['job']} with {name}_from="
            text += f"{facts[f'{name}_next']}]"
        if text:
            parts.append(text if name == "stdout" else f"[stderr]\n{text}")
    if facts.get("timed_out"):
        parts.append("[its time ran out; it was killed]")
    parts.append("[running]" if facts["running"] else f"[exit {facts['exit']}]")
    return "\n".join(parts)


def _screen(step: Step, number: int, process: Process, start: int) -> Reply:
    ended = process.exit is not None
    part = excerpt(process.output("stdout", start, SHOWN_BYTES), last=ended)
    text = part.text
    facts = {
        "pty": number,
        "text": text,
        "next": start + part.taken,
        "size": process.size("stdout"),
        "running": process.exit is None,
        "exit": process.exit,
    }
    return told(step, text + ("" if process.exit is None else f"\n[exit {process.exit}]"), facts)


def _until(call: Call, seconds: float, done: Callable[[], bool]) -> None:
    end = time.monotonic() + min(seconds, call.episode.seconds_left)
    while time.monotonic() < end and not call.stop.asked:
        if done():
            return


def _quiet(call: Call, process: Process, after: int, seconds: float) -> None:
    """Wait until a terminal has said something after an offset, and then no more."""
    seen, since = process.size("stdout"), time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        if process.wait(_TICK_S):
            return True
        size, now = process.size("stdout"), time.monotonic()
        if size != seen:
            seen, since = size, now
        return size > after and now - since >= QUIET_S

    _until(call, seconds, quiet)
