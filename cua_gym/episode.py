"""The life of one attempt: prepare, act, submit, freeze, collect, grade.

An `Episode` owns the deadline, the freeze and the record. It turns every fault into an outcome
with its phase and cause: a fault of ours is `unscored`, never a zero. Once there is a verdict no
fault takes it back: what could not be kept besides is a `Loss`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from cua_gym import actions as a
from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import (
    ActionError,
    CuaGymError,
    GradingError,
    MachineError,
    OutOfSpace,
    RecordLost,
    TaskError,
)
from cua_gym.grading.evidence import collect
from cua_gym.grading.grade import grade
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.base import Frame, Machine, State
from cua_gym.machine.hands import Hands
from cua_gym.machine.settle import Settle, settle
from cua_gym.machine.start import Prepare, start_machine
from cua_gym.record.layout import RunFolder
from cua_gym.record.lines import space_errors
from cua_gym.record.recorder import Recorder
from cua_gym.setup_steps import run_setup
from cua_gym.spaces import ActionSpace
from cua_gym.task import Variation

__all__ = ["Episode", "Loss", "Phase", "Step"]

Phase = Literal["boot", "setup", "act", "collect", "grade"]
Progress = Callable[[str], None]

POINTER_QUIET_S = 0.025
"""A bare pointer move repaints once; nothing else is waited for."""

SHELL_TEXT_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one action led to."""

    frame: Frame
    info: dict[str, Any]
    terminated: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """Something of an attempt that could not be kept; its verdict stands.

    Attributes:
        what: ``record`` (lines, pictures or video), ``result`` (``result.json``) or
            ``final_state``.
        error: name of the error's class, such as ``OutOfSpace``.
        message: what happened.
    """

    what: Literal["record", "result", "final_state"]
    error: str
    message: str


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
        outcome: the verdict, None while there is none.
        final_state: the saved machine, when asked for and saved.
        losses: what could not be kept although the verdict could be given.
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
        self.outcome: Outcome | None = None
        self.final_state: State | None = None
        self.losses: list[Loss] = []
        self._rule = rule or Settle()
        self._keep_final_state = keep_final_state
        self._clock = clock or SystemClock()
        self._start = start
        self._machine: Machine | None = None
        self._hands: Hands | None = None
        self._recorder: Recorder | None = None
        self._phase: Phase = "boot"
        self._began = 0.0
        self._last: Frame | None = None
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
                key=self._start_key(),
                recipes=(self.variation.task.images,),
                prepare=self._set_up(progress),
                progress=progress,
            )
            self._phase = "act"
            self._hands = Hands(self._machine.input, self._machine.screen, self._clock)
            frame = self._machine.screen.grab()
            self._recorder = Recorder(self.folder, self._machine.screen.size)
            self._began = self._clock.monotonic()
            info = self._info(frame, settled=True, settle_s=0.0)
            self._recorder.start(self._description(), frame, info)
            self._last = frame
            return Step(frame, info)
        raise AssertionError("unreachable: the context re-raises")

    def _set_up(self, progress: Progress) -> Prepare:
        def prepare(machine: Machine) -> None:
            self._phase = "setup"
            run_setup(machine, self.variation, progress)

        return prepare

    def _start_key(self) -> str | None:
        variation = self.variation
        if not variation.task.setup:
            return None
        digest = hashlib.sha256(variation.task.hash.encode())
        digest.update(json.dumps(variation.params, sort_keys=True, default=str).encode())
        for name, data in sorted(variation.inputs.items()):
            digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
        return f"{variation.task.name}-{digest.hexdigest()[:16]}"

    def _description(self) -> dict[str, Any]:
        variation, task = self.variation, self.variation.task
        return {
            "task": task.name,
            "task_hash": task.hash,
            "task_folder": str(task.folder),
            "seed": variation.seed,
            "params": variation.params,
            "instruction": variation.instruction,
            "agent": self.agent,
            "spec": asdict(task.spec),
            "limits": {"steps": self.max_steps, "seconds": self.max_seconds},
            "settle": asdict(self._rule),
            "machine": getattr(self._machine, "description", {}),
            "versions": {
                "cua_gym": importlib.metadata.version("cua-gym"),
                "python": platform.python_version(),
            },
        }

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
    def over(self) -> bool:
        """Whether only a new episode is valid now."""
        return self.outcome is not None

    @property
    def seconds_left(self) -> float:
        """Time left to act, in seconds, never negative."""
        return max(0.0, self.max_seconds - (self._clock.monotonic() - self._began))

    def act(self, action: a.Action) -> Step:
        """Do one action, wait until the screen settles, record the step.

        An impossible action changes nothing and is reported in ``info["action_error"]``; it
        counts as a step. A lost machine truncates the episode with ``info["error"]``, and so does
        a step that cannot be recorded; the last one is judged all the same.
        """
        if self.over or self._last is None or self._recorder is None:
            raise RuntimeError("this episode is over; call reset() before step()")
        self.steps += 1
        terminated = truncated = False
        info: dict[str, Any] = {}
        with self._faults_are_outcomes():
            info = self._do(action)
            terminated = isinstance(action, a.Submit | a.GiveUp)
            out_of_budget = self.steps >= self.max_steps or self.seconds_left <= 0
            truncated = not terminated and out_of_budget
            if truncated:
                limit = "steps" if self.steps >= self.max_steps else "seconds"
                self._submission = {"kind": "limit", "answer": None, "reason": limit}
                info["limit"] = limit
            try:
                self._recorder.step(
                    self.steps, _recordable(action), self._last, info, terminated, truncated
                )
            except (OutOfSpace, RecordLost) as error:
                if not (terminated or truncated):
                    raise
                self._lose("record", error)
        if self.outcome is not None:
            truncated = True
            info = self._info(self._last) | {"error": self.outcome.cause}
        return Step(self._last, info, terminated, truncated)

    def _do(self, action: a.Action) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        serial = self.machine.screen.serial
        rule = self._rule
        try:
            refusal = self.actions.refusal(action)
            if refusal is not None:
                raise ActionError(refusal)
            match action:
                case a.Submit(answer):
                    self._submission = {"kind": "submit", "answer": answer, "reason": None}
                    rule = Settle(0.0, self._rule.quiet_s, self._rule.max_s)
                case a.GiveUp(reason):
                    self._submission = {"kind": "give_up", "answer": None, "reason": reason}
                    rule = Settle(0.0, self._rule.quiet_s, self._rule.max_s)
                case a.Wait(seconds):
                    self._clock.sleep(min(seconds, self.seconds_left))
                    rule = Settle(0.0, self._rule.quiet_s, self._rule.max_s)
                case a.Shell(command, timeout_s):
                    extra["shell"] = self._shell(command, timeout_s)
                case _:
                    assert self._hands is not None
                    if isinstance(action, a.Move):
                        quiet_s = min(POINTER_QUIET_S, rule.quiet_s)
                        rule = Settle(rule.first_s, quiet_s, rule.max_s)
                    self._hands.perform(action)
        except ActionError as error:
            extra["action_error"] = str(error)
            rule = Settle(0.0, self._rule.quiet_s, self._rule.max_s)
        result = settle(self.machine.screen, serial, rule, self._clock)
        self._last = result.frame
        return self._info(result.frame, settled=result.settled, settle_s=result.seconds) | extra

    def _shell(self, command: str, timeout_s: float) -> dict[str, Any]:
        done = self.machine.shell.run(command, timeout_s=min(timeout_s, self.seconds_left or 0.1))
        return {
            "exit": done.exit,
            "stdout": _clipped(done.stdout),
            "stderr": _clipped(done.stderr),
            "timed_out": done.timed_out,
        }

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
            with self._faults_are_outcomes():
                self._finish(self._judge())
            if self._keep_final_state:
                self._save_final_state()
        assert self.outcome is not None
        return self.outcome

    def peek(self) -> Outcome:
        """What the outcome would be now; the machine goes on afterwards.

        Raises:
            MachineError, GradingError: it could not be told.
        """
        try:
            return self._judge()
        finally:
            self._phase = "act"
            self.machine.thaw()

    def _judge(self) -> Outcome:
        self._phase = "collect"
        evidence = self.folder.evidence
        if self._hands is not None:
            self._hands.release()
        self.machine.freeze()
        with space_errors(evidence):
            collect(self.machine, self.variation, evidence, self._submission)
        self._phase = "grade"
        with space_errors(Path(tempfile.gettempdir(), "grading")):
            return grade(evidence, self.variation)

    def _save_final_state(self) -> None:
        try:
            # Whoever opens it wants programs that run.
            self.machine.thaw()
            key = f"final state of {self.folder.path.resolve()}"
            self.final_state = self.machine.snapshot(key)
        except (MachineError, OSError) as error:
            self._lose("final_state", error)
        self._write_result()

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
            self._lose("record", error)
            if self.outcome is not None:
                self._write_result()
        finally:
            if machine is not None:
                machine.close()

    @contextmanager
    def _faults_are_outcomes(self, raising: bool = False) -> Iterator[None]:
        try:
            yield
        except CuaGymError as error:
            cause = self._root_cause(error)
            self._finish(Outcome.unscored(self._reason(cause), self._phase, _cause(cause)))
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

    def _finish(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._write_result()
        self._log(f"outcome: {outcome}")

    def _write_result(self) -> None:
        assert self.outcome is not None
        result = self.outcome.to_dict() | {
            "task": self.variation.task.name,
            "seed": self.variation.seed,
            "agent": self.agent,
            "steps": self.steps,
            "submission": self._submission,
            "final_state": None,
            "losses": [asdict(loss) for loss in self.losses],
        }
        if self.final_state is not None:
            folder = self.final_state.folder
            result["final_state"] = {
                "key": self.final_state.key,
                "folder": None if folder is None else str(folder),
            }
        try:
            self.folder.write_result(result)
        except (OutOfSpace, RecordLost) as error:
            self._lose("result", error)

    def _lose(self, what: Literal["record", "result", "final_state"], error: Exception) -> None:
        self.losses.append(Loss(what, type(error).__name__, str(error)))
        self._log(f"lost: {what}: {_cause(error)}")

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


def _clipped(data: bytes) -> str:
    text = data[:SHELL_TEXT_LIMIT].decode("utf-8", "replace")
    left = len(data) - SHELL_TEXT_LIMIT
    return text if left <= 0 else f"{text}\n[{left} more bytes; redirect to a file to see them]"


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
