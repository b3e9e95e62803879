"""Programs that an agent started over the shell bridge, by number, until they are forgotten.

A finished one is kept for a while, so that what it printed can still be asked for.
"""

from __future__ import annotations

import itertools
import threading

from cua_gym.errors import ActionError, MachineError
from cua_gym.machine.base import Process

__all__ = ["Jobs"]

RUNNING = 16
"""At most so many at once; each is a channel to the guest and its buffers."""

KEPT = 8
"""Finished ones whose output is kept, at most 32 MiB each."""


class Jobs:
    """A table of processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._table: dict[int, Process] = {}

    def require_room(self) -> None:
        """Refuse before one too many is started.

        Raises:
            ActionError: names those that run.
        """
        with self._lock:
            running = [n for n, process in self._table.items() if not _over(process)]
        if len(running) >= RUNNING:
            raise ActionError(f"{len(running)} jobs run; kill one first: {running}")

    def add(self, process: Process) -> int:
        """Keep a process; its number. The oldest finished ones are forgotten."""
        with self._lock:
            number = next(self._numbers)
            self._table[number] = process
            finished = [n for n, p in self._table.items() if _over(p)]
            forgotten = [self._table.pop(n) for n in finished[: max(0, len(finished) - KEPT)]]
        for old in forgotten:
            _give_back(old)
        return number

    def get(self, number: int) -> Process:
        """The process with a number.

        Raises:
            ActionError: there is none; lists those that are.
        """
        with self._lock:
            if number not in self._table:
                there = ", ".join(map(str, self._table)) or "none"
                raise ActionError(f"there is no job {number}; jobs kept: {there}")
            return self._table[number]


def _over(process: Process) -> bool:
    try:
        return process.exit is not None
    except MachineError:
        return True  # its wire is gone; whoever asks for it is told so


def _give_back(process: Process) -> None:
    try:
        process.close()
    except MachineError:
        pass  # the machine went first, and its processes with it
