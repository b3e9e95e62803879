"""The life of one attempt: prepare, act, submit, freeze, collect, grade.

An `Episode` owns the deadline, the freeze and the record. It turns every fault into an outcome
with its phase and cause: a fault of ours is `unscored`, never a zero. Once there is a verdict no
fault takes it back: what could not be kept besides is a `Loss`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from cua_gym import actions as a
from cua_gym.clock import Clock, SystemClock
from cua_gym.description import describe
from cua_gym.errors import (
    ActionError,
    CuaGymError,
    GradingError,
    MachineBusy,
    MachineError,
    OutOfSpace,
    RecordLost,
    TaskError,
)
from cua_gym.grading.evidence import collect
from cua_gym.grading.grade import grade
from cua_gym.grading.outcome import Outcome
from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import Frame, Machine, State
from cua_gym.machine.settle import Settle, Settled
from cua_gym.machine.start import Prepare, start_machine
from cua_gym.performing import Performer
from cua_gym.record.layout import RunFolder
from cua_gym.record.lines import space_errors
from cua_gym.record.recorder import Recorder
from cua_gym.setup_steps import run_setup
from cua_gym.spaces import ActionSpace
from cua_gym.steps import OWN, EpisodeOver, Origin, Step
from cua_gym.task import Variation
from cua_gym.turns import By, Stop, Turns
from cua_gym.verdict import UNMETERED, Loss, Verdict

__all__ = ["Episode", "Phase"]

Phase = Literal["boot", "setup", "act", "collect", "grade"]
Progress = Callable[[str], None]

TURN_S = 120.0
"""How long the end waits for a call under way: each hears when it should stop, or is shorter."""


class Episode:
    """One attempt at one variation of a task, on a machine of its own.

    Args:
        variation: the task with its seed's parameters.
        folder: where the run is recorded.
        agent: a name for the record.
        rule: what counts as settled after an action.
        max_steps: instead of the task's own limit.
        max_seconds: instead of the task's own limit.
        keep_final_state: save the machine after the verdict, to be opened later.
        start: makes the machine; tests hand in their own.

    Attributes:
        steps: the agent's actions so far, as the limit counts them; what only looks is not counted.
        human_steps: those of a person who took over; time alone limits them.
        turns: who drives; one at a time.
        meter: what the agent has spent, for ``result.json``.
    """

    def __init__(
        self,
        variation: Variation,
        folder: RunFolder,
        *,
        agent: str = "caller",
        rule: Settle | None = None,
        max_steps: int | None = None,
        max_seconds: float | None = None,
        keep_final_state: bool = False,
        clock: Clock | None = None,
        start: Callable[..., Machine] = start_machine,
    ) -> None:
        task = variation.task
        self.variation = variation
        self.folder = folder
        self.agent = agent
        self.max_steps = task.limits.steps if max_steps is None else max_steps
        self.max_seconds = task.limits.seconds if max_seconds is None else max_seconds
        self.actions = ActionSpace(task.spec.screen, task.tool_policy)
        self.steps = 0
        self.human_steps = 0
        self.turns = Turns()
        self.meter: Callable[[], Mapping[str, Any]] = lambda: UNMETERED
        self._rule = rule or Settle()
        self._keep_final_state = keep_final_state
        self._clock = clock or SystemClock()
        self._start = start
        self._machine: Machine | None = None
        self._at_start: StartEvidence | None = None
        self._performer: Performer | None = None
        self._recorder: Recorder | None = None
        self._phase: Phase = "boot"
        self._began = 0.0
        self._last: Frame | None = None
        self._line = 0
        self._done = False
        self._machine_s = 0.0
        self._verdict = Verdict(folder, self._account, self._log)
        self._submission: dict[str, Any] = {"kind": "none", "answer": None, "reason": None}

    # prepare

    def prepare(self, progress: Progress = lambda _: None) -> Step:
        """A machine in the start state, its first frame recorded as step 0.

        Raises:
            MachineError, ImageError, TaskError: as the cause; `outcome` then says `unscored`.
        """
        with self._faults_are_outcomes(raising=True):
            self._machine = self._start(
                self.variation.task.spec,
                key=self.variation.start_key,
                recipes=(self.variation.task.images,),
                prepare=self._set_up(progress),
                progress=progress,
            )
            self._phase = "setup"
            if self._at_start is None:
                self._at_start = StartEvidence.of(self._machine, self.variation.probes, progress)
            self._phase = "act"
            self._performer = Performer(self._machine, self.actions, self._rule, self._clock)
            frame = self._machine.screen.grab()
            self._recorder = Recorder(self.folder, self._machine.screen.size)
            self._began = self._clock.monotonic()
            info = self._info(frame, settled=True, settle_s=0.0)
            self._recorder.start(describe(self, self._rule), frame, info)
            self._last = frame
            return Step(frame, info)
        raise AssertionError("unreachable: the context re-raises")

    def _set_up(self, progress: Progress) -> Prepare:
        def prepare(machine: Machine) -> Mapping[str, bytes]:
            self._phase = "setup"
            run_setup(machine, self.variation, progress)
            self._at_start = StartEvidence.take(machine, self.variation.probes)
            return self._at_start.files()

        return prepare

    # act

    @property
    def machine(self) -> Machine:
        """The running machine.

        Raises:
            MachineError: before `prepare` or after the end.
        """
        if self._machine is None:
            raise MachineError("this episode has no machine; call reset() first")
        return self._machine

    @property
    def outcome(self) -> Outcome | None:
        """The verdict, None while there is none."""
        return self._verdict.outcome

    @property
    def final_state(self) -> State | None:
        """The saved machine, when asked for and saved."""
        return self._verdict.final_state

    @property
    def losses(self) -> list[Loss]:
        """What could not be kept although the verdict could be given."""
        return self._verdict.losses

    @property
    def done(self) -> bool:
        """Whether nobody can act any more; the verdict may still be to come."""
        return self._done or self.outcome is not None

    @property
    def phase(self) -> Phase:
        """How far it has come."""
        return self._phase

    @property
    def seconds_left(self) -> float:
        """Time left to act, in seconds, never negative."""
        return max(0.0, self.max_seconds - (self._clock.monotonic() - self._began))

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

    def expire(self) -> None:
        """The time to act is over, as a step past the limit would have found."""
        if not self.done:
            self._submission = {"kind": "limit", "answer": None, "reason": "seconds"}
            self._done = True

    def leave(self, reason: str) -> None:
        """Whoever drives has ended without a word; what stands is judged."""
        if not self.done:
            self._submission = {"kind": "left", "answer": None, "reason": reason}
            self._done = True

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
                    None if action is None else _recordable(action),
                    self._last,
                    info,
                    terminated,
                    truncated,
                    by=origin.by,
                    call=origin.call,
                )
            except (OutOfSpace, RecordLost) as error:
                if not (terminated or truncated):
                    raise
                self._verdict.lose("record", error)
        if self.outcome is not None:
            truncated = True
            info = self._info(self._last) | {"error": self.outcome.cause}
        self._machine_s += self._clock.monotonic() - began
        self._done = self._done or terminated or truncated
        return Step(self._last, info, terminated, truncated)

    def _note(self, action: a.Action | None) -> None:
        match action:
            case a.Submit(answer):
                self._submission = {"kind": "submit", "answer": answer, "reason": None}
            case a.GiveUp(reason):
                self._submission = {"kind": "give_up", "answer": None, "reason": reason}

    def _limit(self, acts: bool) -> str | None:
        if acts and self.steps >= self.max_steps:
            return "steps"
        return "seconds" if self.seconds_left <= 0 else None

    def _info(self, frame: Frame, **more: Any) -> dict[str, Any]:
        return {
            "instruction": self.variation.instruction,
            "steps_left": self.max_steps - self.steps,
            "seconds_left": self.seconds_left,
            "frame_serial": frame.serial,
            # Frames carry the host's monotonic time, whatever clock the deadline runs on.
            "frame_age_s": max(0.0, SystemClock().monotonic() - frame.time),
            **more,
        }

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

    def fail(self, outcome: Outcome, trace: str = "") -> None:
        """An outcome that was found outside: the agent broke, or this program did.

        Args:
            trace: for ``runtime.log``.
        """
        if trace:
            try:
                with self.folder.log.open("a") as log:
                    log.write(trace)
            except OSError:
                pass  # the outcome is told by the caller; the log is the last to know
        self._verdict.give(outcome)

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
            self._verdict.final_state = self.machine.snapshot(key)
        except (MachineError, OSError) as error:
            self._verdict.lose("final_state", error)
        self._verdict.write()

    # the end

    def close(self) -> None:
        """Give the machine back and finish the record; idempotent.

        A record that could not be finished is told in `losses` and, if there is room for it, in
        ``result.json`` or the log.
        """
        machine, self._machine = self._machine, None
        recorder, self._recorder = self._recorder, None
        try:
            if recorder is not None:
                recorder.finish()
        except (OutOfSpace, RecordLost) as error:
            self._verdict.lose("record", error)
            if self.outcome is not None:
                self._verdict.write()
        finally:
            if machine is not None:
                machine.close()

    @contextmanager
    def _faults_are_outcomes(self, raising: bool = False) -> Iterator[None]:
        try:
            yield
        except CuaGymError as error:
            cause = self._root_cause(error)
            said = f"{type(cause).__name__}: {cause}"
            self._verdict.give(Outcome.unscored(self._reason(cause), self._phase, said))
            if raising:
                self.close()
                raise

    def _root_cause(self, error: CuaGymError) -> CuaGymError:
        """What is wrong with the machine itself, rather than the wire that noticed first."""
        if isinstance(error, MachineError) and self._machine is not None:
            try:
                self._machine.check()
            except MachineError as deeper:
                return deeper
        return error

    def _reason(self, error: CuaGymError) -> str:
        if isinstance(error, GradingError):
            return "evidence" if self._phase == "collect" else "grader"
        if isinstance(error, TaskError):
            return "setup" if self._phase in ("boot", "setup") else "evidence"
        return "machine"

    def _account(self) -> dict[str, Any]:
        return {
            "task": self.variation.task.name,
            "seed": self.variation.seed,
            "agent": self.agent,
            "steps": self.steps,
            "human_steps": self.human_steps,
            "submission": self._submission,
            "usage": {**self.meter(), "machine_s": round(self._machine_s, 3)},
        }

    def _log(self, text: str) -> None:
        if self._recorder is not None:
            try:
                self._recorder.log(text)
            except (OutOfSpace, RecordLost):
                pass  # the log is the last to know; outcome and losses are told by this object


def _recordable(action: a.Action) -> dict[str, Any]:
    try:
        return a.action_to_dict(action)
    except ActionError:
        return {"type": "invalid", "value": repr(action)[:200]}
