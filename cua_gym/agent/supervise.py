"""Runs one program and ends with everything it started: ``supervise.py FOLDER PROGRAM ...``.

It is the reaper of all below it, so a process that forked twice, made its own session and cleared
its environment is still found. When the program ends, when told by SIGTERM, or when the process
that started it dies, it kills all of them, removes the folder that the program was given, and ends
with the program's status, 128 + n after signal n. It is a program of its own, so that it works
after a ``kill -9`` of ours, and uses the standard library alone.

Source: prctl(2), PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path

_PDEATHSIG = 1
_CHILD_SUBREAPER = 36
_NOT_FOUND = 127


def main(folder: str, words: list[str]) -> int:
    """Run it and remove the folder; its status."""
    try:
        return _run(words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(words: list[str]) -> int:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    parent = os.getppid()
    # Blocked, so that each is waited for below, and none is lost between two lines.
    awaited = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    prctl(_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    program = os.fork()
    if program == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
        try:
            os.execvp(words[0], words)
        except OSError as error:
            print(f"{words[0]} cannot be started: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(_NOT_FOUND)
    status = None
    while status is None:
        if signal.sigwait(awaited) != signal.SIGCHLD:
            break
        status = _reap(program)
    while _kill_children():
        ended = _reap(program)
        status = ended if status is None else status
    return 128 + signal.SIGTERM if status is None else status


def _reap(program: int) -> int | None:
    """Take the ends of all that has ended; the program's status if it is among them."""
    status = None
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == program:
            code = os.waitstatus_to_exitcode(ended)
            status = 128 - code if code < 0 else code


def _kill_children() -> bool:
    """Kill our children; whether there are any. Theirs become ours, and their turn comes."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
    if pids:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    return bool(pids)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
