"""How much a light desktop may take of its host: a control group where we may make one.

Where not, what is bounded is bounded by the sizes of its file systems and the number of an
account's processes (`supervisor.py`); memory then is not.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cua_gym.machine.identity import orphaned, owner_name

__all__ = ["Bounds"]

TASKS = 8192
MARGIN_MB = 256
"""For the X server, which is counted too."""

_GONE_S = 2.0
_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The control groups of one sandbox; none where this account may make none."""

    groups: tuple[Path, ...]

    @classmethod
    def make(cls, memory_mb: int) -> Self:
        """New groups with their limits; those of dead owners are removed on the way."""
        memory = str((memory_mb + MARGIN_MB) << 20)
        made = []
        for parent, limits in _parents(memory):
            for old in parent.glob("cua-gym-*"):
                if orphaned(old.name):
                    _remove(old)
            group = parent / owner_name()
            try:
                group.mkdir()
                for name, value in limits.items():
                    (group / name).write_text(value)
            except OSError:
                _remove(group)
                continue
            made.append(group)
        return cls(tuple(made))

    def prefix(self) -> list[str]:
        """What to put before a command so that it begins inside."""
        if not self.groups:
            return []
        joins = [f"echo 0 > {shlex.quote(str(group / 'cgroup.procs'))}" for group in self.groups]
        return ["sh", "-c", f'{" && ".join(joins)} && exec "$@"', "sh"]

    def hit(self) -> str:
        """Says that memory ran out, if it did."""
        for group in self.groups:
            for name in ("memory.events", "memory.oom_control"):
                try:
                    lines = (group / name).read_text().splitlines()
                except OSError:
                    continue
                kills = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
                if kills and kills != ["0"]:
                    return "its memory ran out"
        return ""

    def remove(self) -> None:
        """Once everything in them has ended. Idempotent."""
        for group in self.groups:
            _remove(group)


def _parents(memory: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """Groups of this process's below which a sandbox's may be made, and the limits to write."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, name = line.split(":", 2)
        below = name.lstrip("/")
        if controllers == "memory":
            yield _ROOT / "memory" / below, {"memory.limit_in_bytes": memory}
        elif controllers == "pids":
            yield _ROOT / "pids" / below, {"pids.max": str(TASKS)}
        elif not controllers and (_ROOT / "cgroup.controllers").exists():
            # Version 2: a group that holds processes cannot have limited ones below, so beside it.
            beside = (_ROOT / below).parent if below else _ROOT
            enabled = (beside / "cgroup.subtree_control").read_text().split()
            if {"memory", "pids"} <= set(enabled):
                yield beside, {"memory.max": memory, "pids.max": str(TASKS)}


def _remove(group: Path) -> None:
    """A killed process stays in its group until it is really gone."""
    end = time.monotonic() + _GONE_S
    while True:
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > end:
                return  # the next one's start finds it
            time.sleep(0.005)
        else:
            return
