"""Locks that stay with the process that took them when it is forked.

A child that was forked (by multiprocessing, say) has every open file of its parent, and a file's
lock lasts as long as anybody has it open.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

__all__ = ["unlocked_at_end"]


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
