"""Time as a thing that is passed in, so that deadlines can be tested without waiting."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Seconds that only go forward, and a way to let them pass."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""

    def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""


class SystemClock:
    """The host's clock."""

    def monotonic(self) -> float:
        """`time.monotonic`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """`time.sleep`, but for no time at all, which would give Python's lock away."""
        if seconds > 0:
            time.sleep(seconds)
