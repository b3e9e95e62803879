"""Starts processes that end with this one, from a thread that lives as long as it does.

The parent-death signal fires when the *thread* that forked ends, so a worker thread must never fork
for itself.
"""

from __future__ import annotations

import functools
import os
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

__all__ = ["spawn"]


def spawn(words: Sequence[str], fds: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a process that inherits ``fds`` and whose stderr is a pipe.

    The tie itself is the command's: it begins with ``setpriv --pdeathsig KILL``.

    Raises:
        OSError: it could not be started.
    """
    return _spawner(os.getpid()).run(words, fds)


class _Spawner:
    """The thread and what it has to start."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="cua-gym-spawner", daemon=True).start()

    def run(self, words: Sequence[str], fds: Sequence[int]) -> subprocess.Popen[bytes]:
        """See `spawn`."""

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                words,
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd="/",
                # Ctrl-C in the terminal is for us; we end QEMU in order.
                process_group=0,
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": "/", "LC_ALL": "C"},
            )

        future: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((future, start))
        return future.result()

    def _serve(self) -> None:
        while True:
            future, job = self._jobs.get()
            try:
                future.set_result(job())
            except Exception as error:  # handed to the caller, who raises it
                future.set_exception(error)


@functools.cache
def _spawner(pid: int) -> _Spawner:
    """The spawner of process ``pid``: a fork has no threads, so it needs its own."""
    del pid
    return _Spawner()
