"""What a clause of the standard for images is, and short ways to write one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cua_gym.image.store import Image
from cua_gym.machine.base import Machine

__all__ = ["Broken", "Clause", "Subject", "equals", "expect", "holds", "nothing"]


class Broken(Exception):
    """A clause does not hold; the message is what was seen instead."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is looked at: an image, and a machine that was booted from it."""

    image: Image
    machine: Machine

    def run(self, command: str, *, user: str | None = "root") -> str:
        """Standard output of a guest command, trimmed.

        Raises:
            Broken: it failed.
        """
        done = self.machine.shell.run(command, user=user)
        if done.exit != 0:
            text = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
            raise Broken(f"`{command}` ended with {done.exit}: {text[-200:]}")
        return done.stdout.decode("utf-8", "replace").strip()


@dataclass(frozen=True, slots=True)
class Clause:
    """One requirement.

    Attributes:
        look: returns what was seen when it holds, else raises `Broken`.
    """

    id: str
    says: str
    look: Callable[[Subject], str]


def expect(condition: bool, seen: object) -> str:
    """``seen`` as text, if the condition holds.

    Raises:
        Broken: it does not.
    """
    if not condition:
        raise Broken(str(seen))
    return str(seen)


def equals(name: str, says: str, command: str, wanted: str, user: str | None = "root") -> Clause:
    """Holds when the command prints exactly ``wanted``."""

    def look(subject: Subject) -> str:
        seen = subject.run(command, user=user)
        return expect(seen == wanted, seen or "(nothing)")

    return Clause(name, says, look)


def holds(
    name: str, says: str, command: str, test: Callable[[str], bool], user: str | None = "root"
) -> Clause:
    """Holds when ``test`` accepts what the command prints."""

    def look(subject: Subject) -> str:
        seen = subject.run(command, user=user)
        return expect(test(seen), seen[:200] or "(nothing)")

    return Clause(name, says, look)


def nothing(name: str, says: str, command: str, user: str | None = "root") -> Clause:
    """Holds when the command prints nothing; `grep` and `pgrep` may fail for that."""

    def look(subject: Subject) -> str:
        seen = subject.run(f"{command} || true", user=user)
        expect(not seen, seen[:200])
        return "none"

    return Clause(name, says, look)
