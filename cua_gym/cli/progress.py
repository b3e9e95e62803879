"""What a person sees while it works: plain lines on standard error, in a pipe as on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable

import click

__all__ = ["Progress", "printable"]

_EVERY_S = 1.0


def printable(text: str) -> str:
    """``text`` without control characters; what a guest printed must not steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


class Progress:
    """Tells phases at once, and steps at most once a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told = clock()

    def phase(self, text: str) -> None:
        """A new phase began."""
        self._tell(text)

    def step(self, number: int, limit: int, action: str) -> None:
        """Step ``number`` of at most ``limit`` was done."""
        if self._clock() - self._told >= _EVERY_S:
            self._tell(f"  step {number}/{limit}: {action}")

    def _tell(self, text: str) -> None:
        click.echo(printable(text), err=True)
        self._told = self._clock()
