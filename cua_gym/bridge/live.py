"""The newest picture of the screen, for everybody who watches.

However many watch, one thread at most looks or encodes, each picture is encoded once, and only
while somebody asks; so watching takes a bounded share of one core and holds up no agent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread

from cua_gym.bridge.pictures import Picture, encode
from cua_gym.machine.base import Screen

__all__ = ["Live", "Shot"]

EVERY_S = 0.1
REST = 3
"""After a picture that took t to encode, the next is made after REST * t at the earliest."""
GLANCE_S = 0.001
"""Who waits for a change makes QEMU look at its screen every few milliseconds: 5 % of a core, which
an agent's step is worth and an onlooker is not. So it is made to look only every `EVERY_S`."""
LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture and what it shows.

    Attributes:
        screen: (width, height) in native pixels.
        cursor: (x, y) in native pixels.
    """

    picture: Picture
    serial: int
    cursor: tuple[int, int]
    screen: tuple[int, int]


class Live:
    """Pictures for watchers.

    Args:
        screen: the screen of now.
    """

    def __init__(self, screen: Callable[[], Screen]) -> None:
        self._screen = screen
        self._alone = anyio.Lock()
        # Apart from the threads that agents' calls run in.
        self._threads = anyio.CapacityLimiter(1)
        self._last: Shot | None = None
        self._next = 0.0

    async def after(self, serial: int, until: float, wanted: Callable[[], bool]) -> Shot | None:
        """The newest picture, once its serial is above ``serial``.

        Args:
            until: monotonic seconds; None is returned then.
            wanted: asked now and then; None is returned when it says no.

        Raises:
            MachineError: the machine is gone.
        """
        while wanted():
            shot = self._known(serial)
            if shot is not None:
                return shot
            async with self._alone:
                shot = self._known(serial)
                if shot is not None:
                    return shot
                screen = self._screen()
                if screen.serial > serial:
                    await anyio.sleep(max(0.0, self._next - time.monotonic()))
                    self._last = await anyio.to_thread.run_sync(self._take, limiter=self._threads)
                    if self._last.serial > serial:
                        return self._last
                    continue
                left = until - time.monotonic()
                if left <= 0 or not wanted():
                    return None
                await anyio.to_thread.run_sync(
                    screen.wait_change, screen.serial, GLANCE_S, limiter=self._threads
                )
                await anyio.sleep(min(left, EVERY_S))
        return None

    def _known(self, serial: int) -> Shot | None:
        """The picture that somebody else had made, if no newer one could be had now."""
        shot = self._last
        if shot is None or shot.serial <= serial:
            return None
        newest = time.monotonic() < self._next or shot.serial >= self._screen().serial
        return shot if newest else None

    def _take(self) -> Shot:
        began = time.monotonic()
        frame = self._screen().grab()
        picture = encode(frame.rgb, limit_bytes=LIMIT_BYTES)
        now = time.monotonic()
        self._next = max(began + EVERY_S, now + REST * (now - began))
        height, width = frame.rgb.shape[:2]
        return Shot(picture, frame.serial, frame.cursor, (width, height))
