"""The life of one attempt: prepare, act, branch, submit, freeze, collect, grade.

Whoever acts has the machine for himself meanwhile. What a fault means, and what stays of an attempt
when it is over, is `cua_gym.attempt`'s.
"""

from __future__ import annotations

import operator
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from cua_gym import actions as a
from cua_gym.attempt import Attempt
from cua_gym.description import describe
from cua_gym.errors import MachineBusy, MachineError, MachineLost, OutOfSpace, RecordLost
from cua_gym.grading.evidence import collect
from cua_gym.grading.grade import grade
from cua_gym.grading.outcome import Outcome
from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import Machine, State
from cua_gym.machine.settle import Settle, Settled
from cua_gym.machine.start import Prepare
from cua_gym.performing import Performer
from cua_gym.record.lines import space_errors
from cua_gym.record.recorder import Recorder
from cua_gym.setup_steps import set_up
from cua_gym.steps import OWN, EpisodeOver, Moment, Origin, Step
from cua_gym.turns import By, Stop

__all__ = ["Episode"]

Progress = Callable[[str], None]

TURN_S = 120.0
"""How long the end waits for a call under way: each hears when it should stop, or is shorter."""


class Episode(Attempt):
    """One attempt at one variation of a task, on a machine of its own; made as an `Attempt` is."""

    # prepare

    def prepare(self, progress: Progress = lambda _: None) -> Step:
        """A machine in the start state, its first frame recorded as step 0.

        Raises:
            MachineError, ImageError, TaskError: as the cause; `outcome` then says `unscored`.
        """
        with self._faults_are_outcomes(raising=True):
            task, moment = self.variation.task, self._moment
            origin = (
                {"key": self.variation.start_key, "prepare": self._set_up(progress)}
                if moment is None
                else {"state": moment.state}
            )
            machine = self._machine = self._start(
                task.spec, recipes=(task.images,), progress=progress, **origin
            )
            self._check_open()
            self._phase = "setup"
            if moment is not None:
                self._at_start = moment.at_start
            if self._at_start is None:
                self._at_start = StartEvidence.of(machine, self.variation.probes, progress)
            self._phase = "act"
            self._rule = rule = self._rule or machine.settle
            self._performer = self._hands_on(machine, rule)
            frame = self._last = machine.screen.grab()
            with self._recording:
                self._check_open()
                self._recorder = Recorder(self.folder, machine.screen.size, film=self._film)
                self._began = self._clock.monotonic()
                described = describe(self, rule)
                if moment is None:
                    info = self._info(frame, settled=True, settle_s=0.0)
                    self._recorder.start(described, frame, info)
                else:
                    self._return_to(moment)
                    info = self._info(frame, settled=True, settle_s=0.0)
                    parent = {"attempt": moment.folder.path.name, "step": moment.line}
                    described["parent"] = parent
                    self._recorder.go_on(described, moment.folder, moment.line, frame)
                    self._line = moment.line
            self._check_open()
            return Step(frame, info)
        raise AssertionError("unreachable: the context re-raises")

    def _check_open(self) -> None:
        if self._closed:
            raise MachineLost("this episode was closed while it was prepared")

    def _set_up(self, progress: Progress) -> Prepare:
        def prepare(machine: Machine) -> Mapping[str, bytes]:
            self._phase = "setup"
            self._at_start = set_up(machine, self.variation, progress)
            return self._at_start.files()

        return prepare

    def _hands_on(self, machine: Machine, rule: Settle) -> Performer:
        return Performer(machine, self.actions, rule, self._clock, self._out)

    # act

    def act(
        self,
        action: a.Action,
        origin: Origin = OWN,
        *,
        frame: int | None = None,
        stop: Stop | None = None,
        patience_s: float | None = None,
    ) -> Step:
        """Do one action, wait until the screen settles, record the step.

        An impossible action changes nothing and is reported in ``info["action_error"]``; it
        counts as a step. A lost machine truncates the episode with ``info["error"]``, and so does
        a step that cannot be recorded; the last one is judged all the same.

        Args:
            frame: the serial of the frame that the action was chosen on; it is impossible when
                the screen has changed since.
            stop: ends a `Wait` early; ``info["stopped"]`` then says so.
            patience_s: how long to wait while somebody else drives; None is to the end.

        Raises:
            EpisodeOver: it had ended.
            MachineBusy: somebody else drives; nothing was done.
        """
        with self._turn(origin.by, stop, patience_s):
            return self._step(
                origin, action, True, lambda hand: hand.do(action, self.seconds_left, stop, frame)
            )

    def use(
        self,
        origin: Origin,
        work: Callable[[Machine], Mapping[str, Any]],
        *,
        acts: bool,
        action: a.Action | None = None,
        rule: Settle | None = None,
        stop: Stop | None = None,
        patience_s: float | None = None,
    ) -> Step:
        """Do what no typed action can say, as one recorded step.

        Args:
            work: gets the machine; what it returns goes into ``info`` and the record. Its
                ActionError or OSError is the agent's, as ``info["action_error"]``.
            acts: whether it changes the machine, and so counts against the limit of steps.
            action: the typed action that says nearly the same, for the record.
            rule: how to wait for the screen afterwards; None takes the frame of now.

        Raises:
            EpisodeOver, MachineBusy: as for `act`.
        """

        with self._turn(origin.by, stop, patience_s, looks=not acts):
            return self._step(origin, action, acts, lambda hand: hand.use(work, rule))

    @contextmanager
    def _turn(
        self, by: By, stop: Stop | None, patience_s: float | None, *, looks: bool = False
    ) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                wait_s = max(self.seconds_left, TURN_S) if patience_s is None else patience_s
                stack.enter_context(self.turns.turn(by, wait_s, stop, looks=looks))
            except MachineBusy:
                if patience_s is not None:
                    raise
                # A person held the machine until the time was over; this step finds that out.
                self.turns.give_back()
                stack.enter_context(self.turns.turn(by, TURN_S, stop))
            yield

    def _step(
        self,
        origin: Origin,
        action: a.Action | None,
        acts: bool,
        do: Callable[[Performer], tuple[Settled | None, dict[str, Any]]],
    ) -> Step:
        if self.done or not (self._last and self._recorder and self._performer):
            raise EpisodeOver("this episode is over; call reset() before step()")
        self._line += 1
        by_agent = origin.by == "agent"
        self.steps += acts and by_agent
        self.human_steps += acts and not by_agent
        terminated = truncated = False
        info: dict[str, Any] = {}
        began = self._clock.monotonic()
        with self._faults_are_outcomes():
            settled, extra = do(self._performer)
            self._note(action)
            self._last = settled.frame if settled else self.machine.screen.grab()
            info = self._info(
                self._last,
                settled=settled is None or settled.settled,
                settle_s=settled.seconds if settled else 0.0,
            )
            info |= extra
            terminated = isinstance(action, a.Submit | a.GiveUp)
            limit = self._limit(acts and by_agent)
            truncated = not terminated and limit is not None
            if truncated:
                self._submission = {"kind": "limit", "answer": None, "reason": limit}
                info["limit"] = limit
            try:
                self._recorder.step(
                    self._line,
                    None if action is None else a.recordable(action),
                    self._last,
                    info,
                    terminated,
                    truncated,
                    by=origin.by,
                    call=origin.call,
                )
            except (OutOfSpace, RecordLost, OSError) as error:
                if not (terminated or truncated):
                    raise
                self._verdict.lose("record", error)
        if self.outcome is not None:
            truncated = True
            info = self._info(self._last) | {"error": self.outcome.cause}
        self._machine_s += self._clock.monotonic() - began
        self._done = self._done or terminated or truncated
        return Step(self._last, info, terminated, truncated)

    # branch

    def save(self) -> Moment:
        """This moment, to come back to by `restore`; whoever asked discards its state.

        Keys and buttons are let go first. The machine goes on after a short pause.

        Raises:
            EpisodeOver: it had ended.
            MachineError: its kind cannot be saved, or this one could not; it goes on, or is lost.
        """
        with self.turns.turn("human", TURN_S):
            if self.done or self._recorder is None or self._at_start is None:
                raise EpisodeOver("this episode is over; there is nothing to save")
            self._recorder.flush()
            seconds = self._clock.monotonic() - self._began
            key = f"step {self._line} of {self.folder.path.resolve()} {secrets.token_hex(8)}"
            state = self._saved(key)
            return Moment(
                state, self.folder, self._line, self.steps, self.human_steps, seconds,
                self._at_start,
            )  # fmt: skip

    def _saved(self, key: str) -> State:
        if not self.machine.saves_programs:
            raise MachineError(
                f"a machine of kind {self.machine.spec.backend!r} saves files, not what runs, so "
                "this moment cannot be saved, forked or opened later; a whole computer (backend "
                "'qemu') can"
            )
        return self.machine.snapshot(key)

    def restore(self, moment: Moment) -> Step:
        """Go back to a moment of this episode: machine, steps and time left are as they were.

        The record goes on: it says at which of its lines the machine came back, and whence. A
        state that is gone or a lost machine truncates, with ``info["error"]``.

        Raises:
            EpisodeOver: it had ended.
            ValueError: the moment is another episode's.
        """
        if moment.folder != self.folder:
            raise ValueError(f"the moment is of {moment.folder.path}; fork there instead")

        def back(_: Performer) -> tuple[None, dict[str, Any]]:
            self.machine.restore(moment.state)
            rule = self._rule or self.machine.settle
            self._performer = self._hands_on(self.machine, rule)  # its wires are others now
            self._return_to(moment)
            return None, {"restored": moment.line}

        with self.turns.turn("human", TURN_S):
            return self._step(OWN, None, False, back)

    def fork(self, n: int) -> list[Episode]:
        """``n`` attempts that go on from this moment, each on a machine of its own, prepared.

        They have this one's record up to here as theirs, and its limits; their folders lie beside
        its own. Nobody of them hears of the others any more.

        Raises:
            EpisodeOver: it had ended.
            ValueError, TypeError: ``n`` is no number from 1 on.
            MachineError: the machine could not be saved, or a copy did not start; then none stays.
        """
        if operator.index(n) < 1:
            raise ValueError(f"a fork makes at least one, not {n}")
        moment = self.save()
        children: list[Episode] = []
        try:
            for _ in range(n):
                child = Episode(
                    self.variation,
                    self.folder.sibling(),
                    agent=self.agent,
                    rule=self._rule,
                    max_steps=self.max_steps,
                    max_seconds=self.max_seconds,
                    keep_final_state=self._keep_final_state,
                    film=self._film,
                    clock=self._clock,
                    start=self._start,
                    moment=moment,
                )
                children.append(child)
            with ThreadPoolExecutor(n) as pool:
                for prepared in [pool.submit(child.prepare) for child in children]:
                    prepared.result()
        except BaseException:
            for child in children:
                child.close()
            raise
        finally:
            self.machine.discard(moment.state)
        return children

    # freeze, collect, grade

    def evaluate(self) -> Outcome:
        """Freeze, collect and grade; the outcome. Afterwards the episode is over.

        Calling it again returns the same outcome.
        """
        if self.outcome is None:
            with self._faults_are_outcomes(), self.turns.turn("human", TURN_S):
                if self.outcome is None:
                    self._verdict.give(self._judge())
            if self._keep_final_state:
                self._save_final_state()
        assert self.outcome is not None
        return self.outcome

    def peek(self) -> Outcome:
        """What the outcome would be now; the machine goes on afterwards.

        Raises:
            MachineError, GradingError: it could not be told.
        """
        with self.turns.turn("human", TURN_S):
            try:
                return self._judge()
            finally:
                self._phase = "act"
                self.machine.thaw()

    def _judge(self) -> Outcome:
        self._phase = "collect"
        evidence = self.folder.evidence
        if self._performer is not None:
            self._performer.release()
        self.machine.freeze()
        with space_errors(evidence):
            collect(self.machine, self.variation, evidence, self._submission, self._at_start)
        self._phase = "grade"
        with space_errors(Path(tempfile.gettempdir(), "grading")):
            return grade(evidence, self.variation)

    def _save_final_state(self) -> None:
        try:
            # Whoever opens it wants programs that run.
            self.machine.thaw()
            key = f"final state of {self.folder.path.resolve()}"
            self._verdict.final_state = self._saved(key)
        except (MachineError, OSError) as error:
            self._verdict.lose("final_state", error)
        self._verdict.write()
