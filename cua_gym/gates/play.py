"""Making attempts on machines: at most so many at once, none twice, all closed by a Ctrl-C.

What the attempts show is judged elsewhere. A machine that failed is tried once more; then it is a
fault of ours, and nothing is kept.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cua_gym.actions import Action
from cua_gym.agent.base import Agent
from cua_gym.agent.load import load_agent
from cua_gym.agent.oracle import OracleAgent
from cua_gym.cache import cache_root
from cua_gym.errors import MachineError, TaskError
from cua_gym.gates.attempts import Attempt, AttemptStore
from cua_gym.gates.content import attempt_hash, content_hash
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.desktop import NotShown
from cua_gym.machine.qemu.machine import READY
from cua_gym.machine.qemu.states import StateInfo, StateStore
from cua_gym.machine.start import Prepare, start_machine
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.run.local import AgentChoice, Plan, run_local
from cua_gym.run.row import Row
from cua_gym.setup_steps import run_setup
from cua_gym.task import Task

T = TypeVar("T")

__all__ = ["Player", "SetupFailed", "start_state"]

RANDOM: Mapping[str, Any] = {"max_steps": 25, "max_seconds": 180.0}
"""Of a random agent, which does not get better with time."""


class SetupFailed(TaskError):
    """A task's setup did not reach the start state."""


@dataclass(frozen=True, slots=True)
class _Order:
    """An attempt to be made."""

    task: Task
    seed: int
    agent: str
    number: int

    def key(self) -> str:
        options = {**self.options, "number": self.number}
        return attempt_hash(self.task.variation(self.seed), self.agent, options)

    @property
    def options(self) -> Mapping[str, Any]:
        return RANDOM if self.agent == "random" else {}


class Player:
    """Makes attempts, or finds them in the store.

    Args:
        jobs: machines at once.
        tell: told what takes more than a second.
        start: makes machines; tests hand in their own.
    """

    def __init__(
        self,
        store: AttemptStore,
        jobs: int,
        tell: Callable[[str], None],
        start: Callable[..., Machine] | None = None,
    ) -> None:
        self._store = store
        self._tell = tell
        self._start = start or start_machine
        self._pool = ThreadPoolExecutor(jobs, "machine")
        self._stopped = threading.Event()
        self._machines: weakref.WeakSet[Machine] = weakref.WeakSet()

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Do ``work`` in one of the threads that have a machine each."""
        return self._pool.submit(work, *arguments)

    def attempt(self, task: Task, seed: int, agent: str, number: int = 1) -> Attempt:
        """The attempt that was made before, or is made now.

        Raises:
            SetupFailed: there is no start state.
            MachineError: nothing can be said about the task.
        """
        order = _Order(task, seed, agent, number)
        key = order.key()
        if (kept := self._store.find(key)) is not None:
            return kept
        try:
            return self._make(order, key)
        except MachineError as error:
            self.go_on()
            self._tell(f"{task.name}: {error}; once more")
            return self._make(order, key)

    def forget(self, task: Task, seed: int, agent: str, number: int = 1) -> None:
        """Have an attempt made anew."""
        self._store.forget(_Order(task, seed, agent, number).key())

    def start_state(self, task: Task, attempt: Attempt) -> Path | None:
        """Folder of the start state that an attempt began from, made anew if it has gone.

        None on a kind of computer that keeps none on disk.
        """
        if task.spec.backend != "qemu":
            return None
        if (Path(attempt.state) / "state.json").is_file():
            return Path(attempt.state)
        variation = task.variation(attempt.seed)
        self._tell(f"{task.name}: the start state again")
        key = variation.start_key
        self._started(
            task.spec,
            key=key,
            prepare=lambda machine: run_setup(machine, variation, self._tell),
            recipes=(task.images,),
        ).close()
        return start_state(task.spec, key)

    def scratch(self) -> AbstractContextManager[Path]:
        """A folder beside the attempts."""
        return self._store.making()

    def stop(self) -> None:
        """End what is under way, machines first."""
        self._stopped.set()
        for machine in list(self._machines):
            machine.close()

    def go_on(self) -> None:
        """Nothing, or what ends a thread when all is to end."""
        if self._stopped.is_set():
            raise KeyboardInterrupt

    def close(self) -> None:
        """Wait for the threads; what was not begun is let go."""
        self._pool.shutdown(cancel_futures=True)

    def _make(self, order: _Order, key: str) -> Attempt:
        self.go_on()
        name = f"{order.task.name}: {order.agent}, seed {order.seed}, attempt {order.number}"
        self._tell(name)
        eyes = _Eyes()
        with self._store.making() as folder:
            row = self._play(order, folder, eyes)
            outcome = row.outcome
            if outcome.reason == "setup":
                raise SetupFailed(outcome.cause)
            if outcome.reason == "machine" or eyes.fault is not None or row.folder is None:
                raise MachineError(f"{name}: {outcome.cause}")
            steps, seconds = _length(row.folder)
            spec, start_key = order.task.spec, order.task.variation(order.seed).start_key
            attempt = Attempt(
                agent=order.agent,
                seed=order.seed,
                number=order.number,
                outcome=outcome,
                content=content_hash(order.task),
                steps=steps,
                seconds=seconds,
                state=str(start_state(spec, start_key) or ""),
                folder=row.folder,
            )
            kept = self._store.keep(key, attempt, eyes.seen)
        if order.agent == "oracle" and not outcome.success:
            self._tell(f"{name}: {outcome}; recorded in {kept.folder}")
        return kept

    def _play(self, order: _Order, folder: Path, eyes: _Eyes) -> Row:
        def step(number: int, limit: int, action: str) -> None:
            self.go_on()
            eyes.steps = number

        def phase(text: str) -> None:
            self.go_on()
            if not text.startswith("["):  # which attempt of how many: of one here
                self._tell(f"  {order.task.name}: {text}")

        plan = Plan(
            tasks=[order.task],
            agents=[AgentChoice(order.agent, lambda: _agent(order.agent, eyes))],
            runs=folder,
            run="run",
            seeds=[order.seed],
            options={**order.options, "start": self._started},
            phase=phase,
            step=step,
        )
        (row,) = run_local(plan)
        return row

    def _started(self, spec: MachineSpec, *, prepare: Prepare, **options: Any) -> Machine:
        def known(machine: Machine) -> Mapping[str, bytes] | None:
            self._machines.add(machine)  # a setup takes minutes
            return prepare(machine)

        machine = self._start(spec, prepare=known, **options)
        self._machines.add(machine)
        try:
            self.go_on()
        except KeyboardInterrupt:
            machine.close()
            raise
        return machine


class _Eyes:
    """What was done, and what an oracle was shown meanwhile."""

    def __init__(self) -> None:
        self.steps = 0
        self.seen: list[tuple[int, str]] = []
        self.fault: MachineError | None = None

    def saw(self, text: str) -> None:
        entry = (self.steps, text)
        if entry not in self.seen:
            self.seen.append(entry)


class _WatchedOracle(OracleAgent):
    """Tells apart what its machine did to it, and what it did wrong."""

    def __init__(self, eyes: _Eyes) -> None:
        super().__init__(eyes.saw)
        self._eyes = eyes

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        try:
            return super().act(observation, info)
        except MachineError as error:
            if not isinstance(error, NotShown):
                self._eyes.fault = error
            raise


def _agent(name: str, eyes: _Eyes) -> Agent:
    return _WatchedOracle(eyes) if name == "oracle" else load_agent(name)()


def start_state(spec: MachineSpec, key: str | None) -> Path | None:
    """Folder of the newest state of that name in the cache, None if there is none."""
    root = cache_root() / "states"
    if spec.backend != "qemu" or not root.is_dir():
        return None
    found = [
        folder
        for folder, info, _, _ in StateStore(root, 1 << 62).list()
        if info.key == (key or READY) and _spec(info) == spec
    ]
    return found[-1] if found else None


def _spec(info: StateInfo) -> MachineSpec:
    return MachineSpec.of(info.spec)


def _length(folder: Path) -> tuple[int, float]:
    """Steps of an attempt, and seconds from the first picture to the last step."""
    replay = Replay(RunFolder(folder))
    *_, last = replay.steps()
    return (replay.result or {})["steps"], round(last.elapsed_s, 1)
