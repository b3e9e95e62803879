"""One attempt in a table of results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cua_gym.grading.outcome import Outcome

__all__ = ["Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """Who tried what, and what it came to.

    Attributes:
        seed: None where the record does not say it any more.
        folder: the attempt's folder; None when it failed before it had one.
        losses: what could not be kept of it, a text each.
    """

    task: str
    agent: str
    seed: int | None
    outcome: Outcome
    folder: Path | None
    losses: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: ``outcome`` is ``scored`` or ``unscored``; ``score`` null if unscored."""
        return {
            "task": self.task,
            "agent": self.agent,
            "seed": self.seed,
            "outcome": self.outcome.kind,
            "score": self.outcome.score,
            "success": self.outcome.success,
            "reason": self.outcome.reason,
            "phase": self.outcome.phase,
            "cause": self.outcome.cause,
            "folder": None if self.folder is None else str(self.folder.resolve()),
            "losses": list(self.losses),
        }
