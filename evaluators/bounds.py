"""What reading an agent's content may cost: processor time, memory, depth.

A check that hangs or dies on hostile content would make a deserved zero `unscored`. Whatever is
parsed in Python, and every regular expression over an agent's text, therefore runs within bounds;
beyond them the content is at fault.
"""

from __future__ import annotations

import contextlib
import math
import resource
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from cua_gym.grading.check import Fails

CPU_S = 1.0
"""No file of a task takes a tenth of it, and a grader lives for sixty."""
AGAIN_S = 3.0
"""Then it is stopped again: a parser with a bare `except` may have gone on. Not sooner, for giving
back the memory of a hostile file takes a second."""


class _TooSlow(BaseException):
    """Not an `Exception`, so that no parser takes it for one of its own."""


def _left_s() -> float:
    """The processor time that this process may still take.

    No file gets more than half of it: many that are hostile, too, leave some for the others.
    """
    most = resource.getrlimit(resource.RLIMIT_CPU)[0]
    return math.inf if most == resource.RLIM_INFINITY else max(0.2, most - time.process_time())


@contextlib.contextmanager
def within(what: str, cpu_s: float | None = None) -> Iterator[None]:
    """Code that reads ``what``, an agent's content, for a bounded processor time (`CPU_S`).

    Regular expressions and Python code can be stopped; one long call into other C code cannot, so
    that needs a limit of size. Outside the main thread, where no signal arrives, time has no bound;
    within another such block the outer one's holds.

    Raises:
        Fails: it took more time, memory or depth than any content of a task.
    """
    limit_s = min(CPU_S if cpu_s is None else cpu_s, _left_s() / 2)
    timed = (
        threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0.0
    )

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TooSlow

    try:
        if timed:
            before = signal.signal(signal.SIGVTALRM, stop)
            signal.setitimer(signal.ITIMER_VIRTUAL, limit_s, AGAIN_S)
        try:
            yield
        finally:
            if timed:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                signal.signal(signal.SIGVTALRM, before)
    except _TooSlow:
        if not timed:
            raise
        raise Fails(
            f"{what}: over {limit_s:.2g} s to read, more than any content of a task"
        ) from None
    except (MemoryError, RecursionError) as error:
        raise Fails(f"{what}: {type(error).__name__}, more than any content of a task") from error
