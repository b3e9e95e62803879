"""Locks and finalizers that stay with the process that made them when it is forked.

A child that was forked (by multiprocessing, say) has every open file of its parent, whose lock
lasts as long as anybody has it open, and every object, whose finalizer runs when the child ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec

__all__ = ["finalizer", "unlocked_at_end"]

P = ParamSpec("P")


@contextlib.contextmanager
def unlocked_at_end(file: int) -> Iterator[int]:
    """Unlock and close a file at the end: closed alone, it stays locked while a child has it."""
    owner = os.getpid()
    try:
        yield file
    finally:
        if os.getpid() == owner:  # the lock is one for parent and child
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def finalizer(
    of: object, end: Callable[P, object], *args: P.args, **kwargs: P.kwargs
) -> weakref.finalize[..., Any]:
    """As `weakref.finalize`, but in a child that was forked later nothing is done, also if asked.

    What a parent owns is not its child's to end.
    """
    owner = os.getpid()

    def end_here() -> None:
        if os.getpid() == owner:
            end(*args, **kwargs)

    return weakref.finalize(of, end_here)
