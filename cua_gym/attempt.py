"""What one attempt is: its machine, its limits, its record, its verdict, and its end.

An `Attempt` owns the deadline and the record, and turns every fault into an outcome with its phase
and cause: a fault of ours is `unscored`, never a zero. Once there is a verdict no fault takes it
back: what could not be kept besides is a `Loss`. What is done in it is `Episode`'s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cua_gym import actions as a
from cua_gym.clock import Clock, SystemClock
from cua_gym.description import account
from cua_gym.errors import CuaGymError, MachineError, OutOfSpace, RecordLost
from cua_gym.grading.outcome import Outcome
from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import Frame, Machine, Rgb, State
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine
from cua_gym.performing import Performer
from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder
from cua_gym.spaces import ActionSpace
from cua_gym.steps import Moment
from cua_gym.task import Variation
from cua_gym.turns import Turns
from cua_gym.verdict import UNMETERED, Loss, Phase, Verdict, unscored

__all__ = ["Attempt"]


class Attempt:
    """One attempt at one variation of a task, on a machine of its own.

    Args:
        variation: the task with its seed's parameters.
        folder: where the run is recorded.
        agent: a name for the record.
        rule: what counts as settled after an action; None is what the kind of machine says.
        max_steps: instead of the task's own limit.
        max_seconds: instead of the task's own limit.
        keep_final_state: save the machine after the verdict, to be opened later.
        film: record pictures and a video, not lines alone.
        out: where the frames of actions go, each over the one before, as for `Screen.grab`; None
            is memory of their own.
        start: makes the machine; tests hand in their own.
        moment: go on from there, of another attempt at the same variation.

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
        film: bool = True,
        out: Rgb | None = None,
        clock: Clock | None = None,
        start: Callable[..., Machine] = start_machine,
        moment: Moment | None = None,
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
        self._rule = rule
        self._keep_final_state = keep_final_state
        self._film = film
        self._out = out
        self._clock = clock or SystemClock()
        self._start = start
        self._moment = moment
        self._machine: Machine | None = None
        self._at_start: StartEvidence | None = None
        self._performer: Performer | None = None
        self._recorder: Recorder | None = None
        self._recording = threading.Lock()  # while a record begins, which may be closed meanwhile
        self._phase: Phase = "boot"
        self._began = 0.0
        self._closed = False
        self._last: Frame | None = None
        self._line = 0
        self._done = False
        self._machine_s = 0.0
        self._verdict = Verdict(folder, self._account, self._log)
        self._submission: dict[str, Any] = {"kind": "none", "answer": None, "reason": None}

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

    def close(self) -> None:
        """Give the machine back and finish the record; idempotent.

        One that is being prepared in another thread ends as soon as it has its machine.

        A record that could not be finished is told in `losses` and, if there is room for it, in
        ``result.json`` or the log.
        """
        self._closed = True
        machine, self._machine = self._machine, None
        with self._recording:
            recorder, self._recorder = self._recorder, None
        try:
            if recorder is not None:
                recorder.finish()
        except (OutOfSpace, RecordLost, OSError) as error:
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
        except (CuaGymError, OSError) as error:
            # An OSError is the host's: too many open files, a broken disk.
            fault = (
                MachineError(f"the host refused: {error}") if isinstance(error, OSError) else error
            )
            self._verdict.give(unscored(fault, self._phase, self._machine))
            if raising:
                self.close()
                if fault is error:
                    raise
                raise fault from error

    def _account(self) -> dict[str, Any]:
        return account(self, self._submission, self._machine_s)

    def _log(self, text: str) -> None:
        if self._recorder is not None:
            try:
                self._recorder.log(text)
            except (OutOfSpace, RecordLost, OSError):
                pass  # the log is the last to know; outcome and losses are told by this object

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

    def _limit(self, acts: bool) -> str | None:
        if acts and self.steps >= self.max_steps:
            return "steps"
        return "seconds" if self.seconds_left <= 0 else None

    def _note(self, action: a.Action | None) -> None:
        match action:
            case a.Submit(answer):
                self._submission = {"kind": "submit", "answer": answer, "reason": None}
            case a.GiveUp(reason):
                self._submission = {"kind": "give_up", "answer": None, "reason": reason}

    def _return_to(self, moment: Moment) -> None:
        self.steps, self.human_steps = moment.steps, moment.human_steps
        self._began = self._clock.monotonic() - moment.seconds
