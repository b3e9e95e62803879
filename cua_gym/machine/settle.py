"""When a screen has come to rest after an action: waiting on changes instead of sleeping."""

from __future__ import annotations

from dataclasses import dataclass

from cua_gym.clock import Clock
from cua_gym.machine.base import Frame, Rgb, Screen

__all__ = ["Settle", "Settled", "settle"]


@dataclass(frozen=True, slots=True)
class Settle:
    """What counts as settled. All in seconds.

    Attributes:
        first_s: how long an action may take to show any effect at all.
        quiet_s: no change for this long means settled.
        max_s: the wait ends here whatever happens; the frame is then marked unsettled.
    """

    first_s: float = 0.25
    quiet_s: float = 0.1
    max_s: float = 3.0

    def __post_init__(self) -> None:
        if not 0 <= self.first_s <= self.max_s or not 0 < self.quiet_s <= self.max_s:
            raise ValueError(f"{self} must have 0 <= first_s <= max_s and 0 < quiet_s <= max_s")


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """A frame, how long it was waited for, and whether the screen had come to rest."""

    frame: Frame
    seconds: float
    settled: bool
    changed: bool


def settle(
    screen: Screen, after: int, rule: Settle, clock: Clock, out: Rgb | None = None
) -> Settled:
    """The first frame that shows the effect of an action, at rest.

    Args:
        after: the screen's serial just before the action.
        out: where the frame's pixels go, as for `Screen.grab`.

    Raises:
        MachineLost: the machine went away meanwhile.
    """
    start = clock.monotonic()
    changed = screen.wait_change(after, rule.first_s)
    at_rest = not changed
    while not at_rest:
        left = rule.max_s - (clock.monotonic() - start)
        if left <= 0:
            break
        quiet_s = min(rule.quiet_s, left)
        at_rest = not screen.wait_change(screen.serial, quiet_s) and quiet_s == rule.quiet_s
    return Settled(screen.grab(out), clock.monotonic() - start, at_rest, changed)
