"""What to collect from a machine, at the start and when an attempt is over: declared, never code.

A *listing* is what a `tree` probe brings: of a whole folder names, kinds, rights, owners, links and
hashes, read without its contents. What reads one is `evaluators.files`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

__all__ = ["LISTING", "RESERVED", "Asks", "Probe", "ProbeKind"]

ProbeKind = Literal["file", "glob", "tree", "command", "clipboard", "windows", "a11y", "frame"]

RESERVED = ("answer", "submission", "manifest")
"""Evidence names that every episode has: the agent's answer, and how it ended."""

LISTING = (
    r"timeout 60 find . -xdev -printf '%y\t%m\t%u\t%g\t%s\t%P\0%l\0' && printf '\0' && "
    "find . -xdev -type f -size -67108865c -print0 | timeout 60 xargs -0r sha256sum -bz"
)
"""The command that root runs in a folder for its listing.

Nothing in a name can break it: fields end with NUL. Of a file over 64 MiB it has just the size, and
after a minute or two it ends as a failure, so that no heap of files stops the collection."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing to collect.

    Attributes:
        name: of the evidence; also its file name in the evidence folder.
        kind: how it is collected.
        source: guest path, glob pattern or command; empty for the others.
        at: taken when the attempt is over, or in the start state before anybody acts.
        user: account that a command runs as; None is the desktop account.
        timeout_s: for a command.
        limit_bytes: more than this is refused and recorded as such.
        live: the desktop's processes must run while it is collected; collected after all else.
    """

    name: str
    kind: ProbeKind
    source: str = ""
    at: Literal["start", "end"] = "end"
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
