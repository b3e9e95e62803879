"""Puts tasks through their gates: which attempts are needed, in which order, and who judges them.

Cheap faults first: what is only read, then doing nothing, then one seed's oracle; only when that
succeeds are the other seeds worth a machine. Attempts of one seed follow each other, since the
first of them makes the start state; seeds and tasks go side by side.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cua_gym.errors import CuaGymError, TaskError
from cua_gym.gates import floors
from cua_gym.gates.attempts import Attempt
from cua_gym.gates.consistency import consistency
from cua_gym.gates.content import content_hash
from cua_gym.gates.leaks import leaks
from cua_gym.gates.lint import lint
from cua_gym.gates.names import GATES, SEEDS
from cua_gym.gates.oracles import Tried, oracle, solves
from cua_gym.gates.play import Player, SetupFailed, start_state
from cua_gym.gates.record import Judgement
from cua_gym.gates.secrets import secrets
from cua_gym.gates.survival import survival
from cua_gym.grading.outcome import Outcome
from cua_gym.task import Task

__all__ = ["TRIES", "Checked", "Subject", "Terms", "check_all"]

TRIES = 2
"""How often an oracle has to do the same at the same seed."""
TOLD_MUTANTS = 250
_ORDER = ("lint", "no-op", "give-up", "random", "oracle", "consistency", "mutants", "leaks")
"""Cheap faults first."""
_OF_NOTHING = ("no-op", "give-up", "consistency", "mutants", "leaks")
"""Gates that look at what doing nothing leaves."""
_OF_SOLVED = ("oracle", "consistency", "mutants")
"""Gates that look at what the oracle leaves."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A task to be checked: its name, and what loads it."""

    name: str
    load: Callable[[], Task]


@dataclass(slots=True)
class Checked:
    """What the gates said of one task.

    Attributes:
        task: None if it could not be loaded.
        content: of the task when it was loaded.
        gates: the verdicts by name.
    """

    name: str
    task: Task | None = None
    content: str = ""
    gates: dict[str, Judgement] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked of every task.

    Attributes:
        gates: those to be judged.
        seeds: how many variations.
        tries: oracle's attempts at each.
        again: make the attempts anew.
    """

    gates: Sequence[str] = GATES
    seeds: int = SEEDS
    tries: int = TRIES
    again: bool = False


def check_all(
    subjects: Sequence[Subject],
    player: Player,
    terms: Terms = Terms(),
    *,
    jobs: int = 1,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Checked]:
    """Check tasks, ``jobs`` at a time; each comes when it and those before it are done.

    Args:
        tell: told what takes more than a second.
    """
    with ThreadPoolExecutor(jobs, "task") as pool:
        try:
            checks = [_Check(subject, player, terms, tell) for subject in subjects]
            for future in [pool.submit(check.run) for check in checks]:
                yield future.result()
        except BaseException:
            player.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            player.close()


class _Check:
    """One task on its way through the gates."""

    def __init__(
        self, subject: Subject, player: Player, terms: Terms, tell: Callable[[str], None]
    ) -> None:
        self._subject = subject
        self._player = player
        self._terms = terms
        self._tell = tell
        self._done = Checked(subject.name)
        self._nulls: dict[int, Attempt] = {}
        self._randoms: dict[int, Attempt] = {}
        self._tried: dict[tuple[int, int], Tried] = {}
        self._failed = threading.Event()
        self._setup_fault = ""
        self._machine_fault = ""

    def run(self) -> Checked:
        """Every gate's verdict."""
        done = self._done
        try:
            task = done.task = self._subject.load()
            done.content = content_hash(task)
        except TaskError as error:
            self._unloadable(str(error))
            return done
        wanted = [gate for gate in _ORDER if gate in self._terms.gates]
        if "lint" in wanted:
            done.gates["lint"] = self._guarded(partial(lint, task))
            wanted.remove("lint")
        if wanted:
            self._attempts(task, wanted)
        for gate in wanted:
            self._tell(f"{task.name}: {gate}")
            obstacle = self._obstacle(gate, wanted[0])
            done.gates[gate] = obstacle or self._guarded(partial(self._judge, task, gate))
        return done

    def _unloadable(self, faults: str) -> None:
        for gate in self._terms.gates:
            self._done.gates[gate] = Judgement.untried("the task cannot be loaded")
        self._done.gates["lint"] = Judgement(False, faults)

    # attempts

    def _attempts(self, task: Task, wanted: Sequence[str]) -> None:
        """Make what these gates look at; what cannot be made is told in the fault fields."""
        oracle = any(gate in wanted for gate in _OF_SOLVED)
        null = any(gate in wanted for gate in _OF_NOTHING)
        tries = self._terms.tries if "oracle" in wanted else int(oracle)
        seeds = range(self._terms.seeds)
        if self._terms.again:
            self._forget(task, wanted, null, tries)
        try:
            task.module("oracle.py")  # once, before several threads want it
        except TaskError as error:
            self._setup_fault = str(error)
            return
        chain = partial(self._chain, task, null, tries)
        if null or tries:
            self._wait([partial(chain, seeds[0])])
        rest = []
        if not (self._failed.is_set() or self._setup_fault or self._machine_fault):
            rest = [partial(chain, seed) for seed in seeds[1:]] if null or tries else []
        if "random" in wanted and not self._setup_fault:
            rest.insert(0, partial(self._random, task))
        self._wait(rest)

    def _forget(self, task: Task, wanted: Sequence[str], null: bool, tries: int) -> None:
        for seed in range(self._terms.seeds):
            if null:
                self._player.forget(task, seed, "null")
            for number in range(1, tries + 1):
                self._player.forget(task, seed, "oracle", number)
        if "random" in wanted:
            self._player.forget(task, 0, "random")

    def _wait(self, works: Sequence[Callable[[], None]]) -> None:
        for future in [self._player.submit(work) for work in works]:
            try:
                future.result()
            except SetupFailed as error:
                self._setup_fault = self._setup_fault or str(error)
            except CuaGymError as error:
                self._machine_fault = self._machine_fault or f"{type(error).__name__}: {error}"

    def _chain(self, task: Task, null: bool, tries: int, seed: int) -> None:
        """All attempts at one seed, until one of the oracle fails, of this seed or another."""
        if null:
            self._nulls[seed] = self._player.attempt(task, seed, "null")
        for number in range(1, tries + 1):
            if self._failed.is_set():
                return
            tried = self._tried_now(task, self._player.attempt(task, seed, "oracle", number))
            self._tried[seed, number] = tried
            if not solves(tried):
                self._failed.set()

    def _random(self, task: Task) -> None:
        self._randoms[0] = self._player.attempt(task, 0, "random")

    def _tried_now(self, task: Task, attempt: Attempt) -> Tried:
        return attempt, self._outcome(task, attempt)

    def _outcome(self, task: Task, attempt: Attempt) -> Outcome:
        return floors.judged(attempt, task.variation(attempt.seed), self._done.content)

    # judgements

    def _obstacle(self, gate: str, first: str) -> Judgement | None:
        """Why this gate cannot be judged, or need not be looked at any more."""
        if self._setup_fault:
            if gate != first:
                return Judgement.untried("there is no start state")
            return Judgement(False, f"there is no start state: {self._setup_fault}")
        if gate in _OF_SOLVED and self._failed.is_set():
            if gate == "oracle" or any(solves(tried) for tried in self._tried.values()):
                return None
            return Judgement.untried("the oracle does not succeed")
        return Judgement.unjudged(self._machine_fault) if self._machine_fault else None

    def _guarded(self, judge: Callable[[], Judgement]) -> Judgement:
        try:
            return judge()
        except CuaGymError as error:
            return Judgement.unjudged(f"{type(error).__name__}: {error}")
        except Exception as error:  # a bug of ours must not take the other tasks with it
            self._tell(traceback.format_exc())
            return Judgement.unjudged(f"{type(error).__name__}: {error}")

    def _judge(self, task: Task, gate: str) -> Judgement:
        nulls = dict(sorted(self._nulls.items()))
        match gate:
            case "no-op":
                return floors.no_op({s: self._outcome(task, a) for s, a in nulls.items()})
            case "give-up":
                return floors.give_up(task, nulls)
            case "random":
                outcomes = {s: self._outcome(task, a) for s, a in self._randoms.items()}
                return floors.random_actions(outcomes)
            case "oracle":
                tried = [self._tried[key] for key in sorted(self._tried)]
                return oracle(task, tried, self._terms.seeds * self._terms.tries)
            case "consistency":
                return consistency(task, self._solved())
            case "mutants":
                making = self._player.scratch
                return survival(task, self._solved(), making, partial(self._graded, task))
            case "leaks":
                return self._leaks(task, nulls)
        raise AssertionError(gate)

    def _solved(self) -> dict[int, tuple[Attempt, Attempt]]:
        """What doing nothing and the oracle left, by seed, where the oracle succeeded."""
        return {
            seed: (self._nulls[seed], tried[0])
            for (seed, number), tried in sorted(self._tried.items())
            if number == 1 and solves(tried)
        }

    def _graded(self, task: Task, number: int) -> None:
        self._player.go_on()
        if number % TOLD_MUTANTS == 0:
            self._tell(f"{task.name}: {number} mutants")

    def _leaks(self, task: Task, nulls: Mapping[int, Attempt]) -> Judgement:
        seed = min(nulls)
        state = self._player.submit(self._player.start_state, task, nulls[seed]).result()
        others: dict[Path, set[str]] = {}
        if (ready := start_state(task.spec, None)) is not None:
            others[ready] = set()
        for other in sorted(nulls.keys() - {seed})[:1]:
            folder = Path(nulls[other].state)
            if (folder / "state.json").is_file():
                there = secrets(task.variation(other), nulls[other].evidence).secrets
                others[folder] = {secret.shown for secret in there}
        return leaks(task.variation(seed), nulls[seed].evidence, state, others)
