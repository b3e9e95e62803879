"""What processes hold in memory, and what the host has left."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["anonymous_mb", "available_mb", "tree_mb"]


def anonymous_mb(pid: int) -> float:
    """Memory that only this process has; Private_Dirty would count shared file pages too."""
    return _rollup(pid, "Anonymous")


def tree_mb(root: int | None = None) -> float:
    """A process with all its descendants; pages that several share are counted once (PSS)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        children.setdefault(parent, []).append(int(stat.parent.name))
    total, left = 0.0, [root or os.getpid()]
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        try:
            total += _rollup(pid, "Pss")
        except (OSError, ValueError):
            continue  # it has ended
    return total


def available_mb() -> float:
    """What the host could still give."""
    text = Path("/proc/meminfo").read_text()
    return _kilobytes(text, "MemAvailable") / 1000


def _rollup(pid: int, name: str) -> float:
    return _kilobytes(Path(f"/proc/{pid}/smaps_rollup").read_text(), name) / 1000


def _kilobytes(text: str, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"no {name}")
    return int(match[1])
