"""Runs tasks x agents x seeds x repeats on this machine, one attempt after the other.

One attempt that fails never takes another with it: it becomes an `unscored` row. A full disk ends
the run, because every later attempt would fail the same way. What an attempt is, is the episode's
business; how rows are shown is the command line's.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cua_gym.agent.base import Agent, Driver, Metered, TaskInfo, WhiteBox
from cua_gym.env import DesktopEnv
from cua_gym.episode import Episode
from cua_gym.errors import CuaGymError, TaskError
from cua_gym.grading.outcome import Outcome
from cua_gym.record.lines import space_errors
from cua_gym.run.row import Row
from cua_gym.steps import EpisodeOver
from cua_gym.task import Task

T = TypeVar("T")

__all__ = ["AgentChoice", "Plan", "run_local"]

_PROBE_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """An agent by name, and what makes one."""

    name: str
    make: Callable[[], Agent]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which attempts to make, and where.

    Attributes:
        run: name of the run's folder below ``runs``.
        options: passed on to `DesktopEnv`.
        phase: told what takes more than a second.
        step: told the step's number, the limit and the action's name after each step.
        view: serve each attempt's live view; `phase` is told the link.
    """

    tasks: Sequence[Task]
    agents: Sequence[AgentChoice]
    runs: Path
    run: str
    seeds: Sequence[int] = (0,)
    repeats: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    phase: Callable[[str], None] = lambda _: None
    step: Callable[[int, int, str], None] = lambda *_: None
    view: bool = False

    def __len__(self) -> int:
        return len(self.tasks) * len(self.agents) * len(self.seeds) * self.repeats


def run_local(plan: Plan) -> Iterator[Row]:
    """Make the attempts in order; each row comes as soon as its attempt ended.

    Ctrl-C goes through: the attempt's machine is closed first, and rows given before stay.

    Raises:
        OutOfSpace: the disk with ``runs`` is full; after the row of the attempt that found out.
    """
    attempts = (
        (task, choice, seed)
        for task in plan.tasks
        for choice in plan.agents
        for seed in plan.seeds
        for _ in range(plan.repeats)
    )
    for number, (task, choice, seed) in enumerate(attempts, 1):
        plan.phase(f"[{number}/{len(plan)}] {task.name}: agent {choice.name}, seed {seed}")
        row = _attempt(plan, task, choice, seed)
        yield row
        if row.outcome.kind == "unscored" or row.losses:
            _need_space(plan.runs)


def _attempt(plan: Plan, task: Task, choice: AgentChoice, seed: int) -> Row:
    env = DesktopEnv(
        task, runs=plan.runs, run=plan.run, agent=choice.name, progress=plan.phase, **plan.options
    )
    trace = ""
    try:
        try:
            outcome = _play(env, choice, seed, plan)
        finally:
            env.close()
    except _AgentFault as fault:
        outcome, trace = Outcome.unscored("agent", "act", str(fault)), fault.trace
    except CuaGymError as error:
        outcome = _fault(env, error)
    except Exception as error:  # a bug of ours must not take the other attempts with it
        outcome, trace = _fault(env, error), traceback.format_exc()
    episode = _episode(env)
    if episode is None:
        return Row(task.name, choice.name, seed, outcome, None)
    if outcome != episode.outcome:
        episode.fail(outcome, trace)
    assert episode.outcome is not None
    outcome = episode.outcome  # a verdict that was reached stands
    losses = tuple(f"{loss.what}: {loss.message}" for loss in episode.losses)
    return Row(task.name, choice.name, seed, outcome, episode.folder.path, losses)


def _play(env: DesktopEnv, choice: AgentChoice, seed: int, plan: Plan) -> Outcome:
    observation, info = env.reset(seed=seed)
    episode = env.episode
    agent = _asked(choice.make)
    task = TaskInfo(
        name=env.task.name,
        instruction=episode.variation.instruction,
        action_space=episode.actions,
        max_steps=episode.max_steps,
        max_seconds=episode.max_seconds,
        seed=seed,
    )
    if isinstance(agent, Metered):
        episode.meter = lambda: asdict(agent.usage)
    if isinstance(agent, WhiteBox):
        _asked(agent.attach, episode)
    _asked(agent.start, task)
    if isinstance(agent, Driver):
        _asked(agent.drive, episode, plan.phase)
        return env.evaluate()
    with ExitStack() as stack:
        if plan.view:
            from cua_gym.bridge.serve import Served  # a second of imports, for those who look

            served = stack.enter_context(Served(episode, only_view=True))
            plan.phase(f"to look on, and to take over: {served.view_link}")
        while not episode.done:
            action = _asked(agent.act, observation, info)
            try:
                observation, _, _, _, info = env.step(action)
            except EpisodeOver:  # a person who had taken over ended it meanwhile
                break
            plan.step(episode.steps, episode.max_steps, type(action).__name__)
        return env.evaluate()


class _AgentFault(Exception):
    """The agent's own code raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.trace = "".join(traceback.format_exception(error))


def _asked(ask: Callable[..., T], *arguments: object) -> T:
    try:
        return ask(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # somebody else's code may raise anything, SystemExit too
        raise _AgentFault(error) from error


def _episode(env: DesktopEnv) -> Episode | None:
    try:
        return env.episode
    except RuntimeError:  # it failed before there was one
        return None


def _fault(env: DesktopEnv, error: Exception) -> Outcome:
    """The episode's own account of the fault; else what can be said from outside."""
    episode = _episode(env)
    if episode is not None and episode.outcome is not None and episode.outcome.kind == "unscored":
        return episode.outcome
    cause = f"{type(error).__name__}: {error}"
    if isinstance(error, TaskError):
        return Outcome.unscored("setup", "setup", cause)
    return Outcome.unscored("machine", "boot" if episode is None else "act", cause)


def _need_space(runs: Path) -> None:
    """Raise OutOfSpace when the next attempt could not be recorded."""
    probe = runs / f".space-{os.getpid()}"
    try:
        with space_errors(probe, _PROBE_BYTES):
            runs.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"\1" * _PROBE_BYTES)
    finally:
        probe.unlink(missing_ok=True)
