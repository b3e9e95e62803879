"""What to collect from a machine when an attempt is over: declared, never code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["RESERVED", "Asks", "Probe", "ProbeKind"]

ProbeKind = Literal["file", "glob", "command", "clipboard", "windows", "a11y", "frame"]

RESERVED = ("answer", "submission", "manifest")
"""Evidence names that every episode has: the agent's answer, and how it ended."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to collect.

    Attributes:
        name: of the evidence; also its file name in the evidence folder.
        kind: how it is collected.
        source: guest path, glob pattern or command; empty for the others.
        user: account that a command runs as; None is the desktop account.
        timeout_s: for a command.
        limit_bytes: more than this is refused and recorded as such.
        live: the desktop's processes must run while it is collected; collected after all else.
    """

    name: str
    kind: ProbeKind
    source: str = ""
    user: str | None = "root"
    timeout_s: float = 30.0
    limit_bytes: int = 16 * 1024 * 1024
    live: bool = False


class Asks(Protocol):
    """Who says what is to be collected and how it is graded: a task's variation."""

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What to collect, in order."""

    @property
    def rubric(self) -> Any:
        """The `cua_gym.grading.checkpoints.Rubric`."""
