"""Names that say who owns a thing, so that whoever comes later can tell whether its owner is dead.

An owner is a process: its pid namespace, its pid, and the time it started, since pids come again.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

__all__ = ["orphaned", "owner_name", "start_time"]

_NAME = re.compile(r"cua-gym-(\d+)-(\d+)-(\d+)-[0-9a-f]{8}")


def owner_name() -> str:
    """A new name that says who owns it: pid namespace, pid, start time of the pid, and an id."""
    pid = os.getpid()
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    return f"cua-gym-{namespace}-{pid}-{start_time(pid)}-{uuid.uuid4().hex[:8]}"


def start_time(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot; with the pid it is unique; None if gone.

    Source: proc(5), field 22 of ``/proc/PID/stat``; the second field may hold anything.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def orphaned(name: str) -> bool:
    """Whether it is a name of `owner_name`, from this pid namespace, whose owner is dead."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    namespace, owner, started = (int(group) for group in match.groups())
    ours = Path("/proc/self/ns/pid").stat().st_ino
    return namespace == ours and start_time(owner) != started
