"""What an attempt came to, written down: the outcome, what it cost, and what could not be kept.

Once there is a verdict no fault takes it back: what could not be kept besides is a `Loss`.
How a verdict is reached is the episode's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cua_gym.errors import (
    CuaGymError,
    GradingError,
    MachineError,
    OutOfSpace,
    RecordLost,
    TaskError,
)
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.base import Machine, State
from cua_gym.record.layout import RunFolder

__all__ = ["UNMETERED", "Loss", "Phase", "Verdict", "unscored"]

Phase = Literal["boot", "setup", "act", "collect", "grade"]
"""How far an attempt has come."""

UNMETERED: Mapping[str, Any] = {
    "model": None, "calls": None, "input_tokens": None, "output_tokens": None, "model_s": None,
}  # fmt: skip
"""What is said of an agent that keeps no account."""


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


class Verdict:
    """Keeps ``result.json`` true.

    Args:
        account: what ``result.json`` says besides the outcome, asked each time it is written.
        log: appends a line to the run's log.

    Attributes:
        outcome: None while there is none.
        final_state: the saved machine, when asked for and saved.
        losses: what could not be kept although the verdict could be given.
    """

    def __init__(
        self,
        folder: RunFolder,
        account: Callable[[], Mapping[str, Any]],
        log: Callable[[str], None],
    ) -> None:
        self.outcome: Outcome | None = None
        self.final_state: State | None = None
        self.losses: list[Loss] = []
        self._folder = folder
        self._account = account
        self._log = log

    def give(self, outcome: Outcome) -> None:
        """This is what the attempt came to. The first verdict stands; others are only logged."""
        if self.outcome is not None:
            self._log(f"after the verdict: {outcome}")
            return
        self.outcome = outcome
        self.write()
        self._log(f"outcome: {outcome}")

    def write(self) -> None:
        """Write ``result.json`` anew."""
        assert self.outcome is not None
        result = self.outcome.to_dict() | dict(self._account())
        result["final_state"] = None
        result["losses"] = [asdict(loss) for loss in self.losses]
        if self.final_state is not None:
            folder = self.final_state.folder
            result["final_state"] = {
                "key": self.final_state.key,
                "folder": None if folder is None else str(folder),
            }
        try:
            self._folder.write_result(result)
        except (OutOfSpace, RecordLost, OSError) as error:
            self.lose("result", error)

    def lose(self, what: Literal["record", "result", "final_state"], error: Exception) -> None:
        """Something could not be kept."""
        self.losses.append(Loss(what, type(error).__name__, str(error)))
        self._log(f"lost: {what}: {type(error).__name__}: {error}")


def unscored(error: CuaGymError, phase: Phase, machine: Machine | None) -> Outcome:
    """The outcome that a fault in this phase is, with what is wrong with the machine itself.

    Its own cause says more than the wire that noticed first.
    """
    cause = error
    if isinstance(error, MachineError) and machine is not None:
        try:
            machine.check()
        except MachineError as deeper:
            cause = deeper
    return Outcome.unscored(_reason(cause, phase), phase, f"{type(cause).__name__}: {cause}")


def _reason(error: CuaGymError, phase: Phase) -> str:
    if isinstance(error, GradingError):
        return "evidence" if phase == "collect" else "grader"
    if isinstance(error, TaskError):
        return "setup" if phase in ("boot", "setup") else "evidence"
    return "machine"
