"""Ends QEMU processes that are provably ours and whose owner is dead.

The parent-death signal does this already in all but a moment of each launch; this closes the gap.
A process is ours when its guest name says so, in our own pid namespace; its owner is dead when no
process has the pid *and* the start time of the name.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from cua_gym.machine.identity import orphaned

__all__ = ["reap"]


def reap() -> list[int]:
    """Kill orphaned machines; returns their pids."""
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        try:
            # The descriptor holds the process, so a reused pid cannot be hit by mistake.
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if _orphaned(pid):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                killed.append(pid)
        except (ProcessLookupError, PermissionError):
            continue  # it ended by itself, or belongs to another account
        finally:
            os.close(handle)
    return killed


def _orphaned(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        name = words[words.index(b"-name") + 1].decode("ascii")
        # Only as root, or for our own account, may the link of another's namespace be read.
        ours, its = (Path(f"/proc/{p}/ns/pid").stat().st_ino for p in ("self", pid))
    except (OSError, ValueError, IndexError):
        return False
    return ours == its and name.startswith("guest=") and orphaned(name.removeprefix("guest="))
