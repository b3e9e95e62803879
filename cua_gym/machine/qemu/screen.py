"""The picture of a machine, kept on the host and grabbed as RGB.

Responsible for the kept buffer, its serial and the waiting. Where the pixels come from is
`display.py`'s (pushed over D-Bus) or `screendump.py`'s (polled).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cua_gym.errors import MachineError
from cua_gym.machine.base import Frame, Rgb, room

__all__ = ["LiveScreen"]

Bgrx = npt.NDArray[np.uint8]

_COLOUR = np.uint32(0x00FFFFFF)

# QEMU refreshes its consoles every 30 ms; a nudge makes it do so at once (measured: key to update
# 32 -> 11 ms). More often than this costs QEMU more than it gains.
NUDGE_EVERY_S = 0.006


class LiveScreen:
    """`cua_gym.machine.base.Screen` over pixels that somebody else feeds in.

    It outlives a restore: the serial goes on rising and the feeder is exchanged.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        """A black screen of ``size`` (width, height) until the first pixels come."""
        self._changed = threading.Condition()
        self._pixels: Bgrx = np.zeros((size[1], size[0], 4), np.uint8)
        self._rgb: Rgb = np.zeros((size[1], size[0], 3), np.uint8)
        self._stale = (0, size[1])  # rows of _rgb that no longer follow _pixels
        self._serial = 0
        self._whole = 0
        self._time = time.monotonic()
        self._failure: MachineError | None = None
        self._nudge: Callable[[], None] = lambda: None
        self.cursor = (0, 0)

    # For users: the Screen protocol

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels, as the guest has set it."""
        height, width = self._pixels.shape[:2]
        return width, height

    @property
    def serial(self) -> int:
        """Serial of the newest change."""
        return self._serial

    def grab(self, out: Rgb | None = None) -> Frame:
        """The newest picture; only rows that changed since the last grab are converted.

        Args:
            out: see `cua_gym.machine.base.Screen.grab`.

        Raises:
            MachineLost: the machine is gone.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            first, last = self._stale
            if first < last:
                source, target = self._pixels[first:last], self._rgb[first:last]
                for channel in range(3):
                    target[..., channel] = source[..., 2 - channel]
                self._stale = (last, last)
            rgb = room(out, self.size)
            rgb[:] = self._rgb
            return Frame(rgb, self.cursor, self._time, self._serial)

    def wait_change(self, after: int, timeout_s: float) -> bool:
        """Wait until ``serial > after``, asking QEMU to look every few milliseconds.

        Raises:
            MachineLost: the machine is gone.
        """
        return self._wait(lambda: self._serial > after, timeout_s)

    # For the machine

    def wait_whole(self, size: tuple[int, int], timeout_s: float) -> bool:
        """Wait for a whole picture of exactly ``size`` since the last `start`."""
        return self._wait(lambda: self._whole > 0 and self.size == size, timeout_s)

    def start(self, nudge: Callable[[], None]) -> None:
        """Begin with a new feeder; ``nudge`` makes QEMU look at its screen now."""
        with self._changed:
            self._whole = 0
            self._failure = None
            self._nudge = nudge

    def fail(self, error: MachineError) -> None:
        """Everyone who waits or grabs gets ``error`` until the next `start`."""
        with self._changed:
            self._failure = self._failure or error
            self._changed.notify_all()

    # For the feeder

    def whole(self, width: int, height: int, stride: int, data: bytes) -> None:
        """The whole picture: BGRX rows of ``stride`` bytes."""
        with self._changed:
            if self.size != (width, height):
                self._resize(width, height, keep=False)
            self._put(0, 0, width, height, stride, data)
            self._whole += 1

    def part(self, x: int, y: int, width: int, height: int, stride: int, data: bytes) -> None:
        """A rectangle. One beyond the edge means a larger mode: QEMU 7.2 sends nothing else."""
        with self._changed:
            have_width, have_height = self.size
            if x + width > have_width or y + height > have_height:
                self._resize(max(x + width, have_width), max(y + height, have_height), keep=True)
            self._put(x, y, width, height, stride, data)

    def resize(self, width: int, height: int) -> None:
        """The guest set another mode; its pixels follow."""
        with self._changed:
            if self.size != (width, height):
                self._resize(width, height, keep=True)
                self._bump()

    def _put(self, x: int, y: int, width: int, height: int, stride: int, data: bytes) -> None:
        if not width or not height:
            return
        rows = np.ndarray((height, width), np.uint32, data, 0, (stride, 4))
        old = self._pixels.view(np.uint32)[y : y + height, x : x + width, 0]
        # QEMU repaints text modes at every look, and the fourth byte is noise: neither is a change.
        if self._whole and not ((old ^ rows) & _COLOUR).any():
            return
        old[:] = rows
        first, last = self._stale
        self._stale = (min(first, y), max(last, y + height)) if first < last else (y, y + height)
        self._bump()

    def _resize(self, width: int, height: int, *, keep: bool) -> None:
        pixels: Bgrx = np.zeros((height, width, 4), np.uint8)
        if keep:
            common = np.minimum(pixels.shape[:2], self._pixels.shape[:2])
            pixels[: common[0], : common[1]] = self._pixels[: common[0], : common[1]]
        self._pixels = pixels
        self._rgb = np.zeros((height, width, 3), np.uint8)
        self._stale = (0, height)

    def _bump(self) -> None:
        self._serial += 1
        self._time = time.monotonic()
        self._changed.notify_all()

    def _wait(self, done: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while True:
            with self._changed:
                if self._failure is not None:
                    raise self._failure
                if done():
                    return True
            if time.monotonic() >= deadline:
                return False
            self._nudge()
            with self._changed:
                left = deadline - time.monotonic()
                if left > 0 and not done() and self._failure is None:
                    self._changed.wait(min(NUDGE_EVERY_S, left))
