"""The picture of a light desktop: fetched when asked for, watched all the time.

Responsible for the serial, the waiting, and the pointer drawn in. The X protocol is `xserver.py`'s.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from cua_gym.errors import MachineLost
from cua_gym.machine.base import Frame, Rgb, room
from cua_gym.machine.x11.xserver import Bgrx, Cursor, Eye, Watcher

__all__ = ["X11Screen"]

REACTION_S = 0.025
"""How long a program gets to show what it makes of a key or a button."""

Rows = tuple[int, int]
"""The first one, and the one after the last."""

_NO_ROWS: Rows = (1 << 15, 0)


class X11Screen:
    """`cua_gym.machine.base.Screen`; it outlives a restore, when its connections are exchanged."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size
        self.cursor = (0, 0)
        self._changed = threading.Condition()
        self._looking = threading.Lock()
        self._serial = 0
        self._drawn = 0  # the serial of the last change that a program made
        self._time = time.monotonic()
        self._acted = -1.0
        self._eye: Eye | None = None
        self._watcher: Watcher | None = None
        self._shape: Cursor | None = None
        self._lost: Callable[[], MachineLost] = lambda: MachineLost("this machine is closed")
        self._rgb: Rgb = np.zeros((size[1], size[0], 3), np.uint8)
        self._stale = (0, size[1])  # rows of _rgb that no longer follow the server
        self._out: Rgb | None = None  # what `grab` was given last,
        self._lacks = _NO_ROWS  # the rows that have changed in _rgb since,
        self._pointer = _NO_ROWS  # and those with the pointer

    # For users: the Screen protocol

    @property
    def serial(self) -> int:
        """Serial of the newest change."""
        return self._serial

    def grab(self, out: Rgb | None = None) -> Frame:
        """The newest picture.

        Args:
            out: see `cua_gym.machine.base.Screen.grab`; the same again gets only what it lacks.

        Raises:
            MachineLost: the machine is gone.
        """
        with self._looking:
            eye = self._eye
            if eye is None:
                raise self._lost()
            with self._changed:
                serial, changed = self._serial, self._time
                rows, self._stale = self._stale, _NO_ROWS
            shape = self._shape or eye.cursor()
            self._shape = shape
            pixels, at = eye.look(*rows)
            for channel in range(3):  # nothing where no row is stale
                self._rgb[slice(*rows), :, channel] = pixels[..., 2 - channel]
            self._lacks = _joined(self._lacks, rows)
            rgb = room(out, self.size)
            if rgb is not out:
                rgb[:] = self._rgb
                _draw(rgb, shape, at)
            else:
                if out is not self._out:
                    self._out, self._lacks = out, (0, self.size[1])
                for old in (self._lacks, self._pointer):
                    rgb[slice(*old)] = self._rgb[slice(*old)]
                self._lacks, self._pointer = _NO_ROWS, _draw(rgb, shape, at)
        return Frame(rgb, self.cursor, changed, serial)

    def wait_change(self, after: int, timeout_s: float) -> bool:
        """Wait until ``serial > after``.

        The pointer's own movement is a change, but after a key or a button not the one that is
        waited for: it counts once a program has drawn something or had its time to.

        Raises:
            MachineLost: the machine went away meanwhile.
        """
        end = time.monotonic() + timeout_s
        with self._changed:
            while True:
                if self._eye is None:
                    raise self._lost()
                now = time.monotonic()
                reacts_by = self._acted + REACTION_S
                if self._drawn > after or (self._serial > after and now >= reacts_by):
                    return True
                if now >= end:
                    return self._serial > after
                self._changed.wait(min(end, reacts_by) - now if now < reacts_by else end - now)

    # For the machine

    def start(
        self, watch: Callable[..., Watcher], eye: Eye, lost: Callable[[], MachineLost]
    ) -> None:
        """Begin with a new server; ``lost`` says why it is gone when it is."""
        self._lost = lost
        self._shape = None
        self._eye = eye
        self._watcher = watch(changed=self._draw, reshaped=self._reshape, lost=self._lose)
        self._draw(0, self.size[1])

    def stop(self) -> None:
        """Leave the server; whoever waits or grabs gets the error. Idempotent."""
        self._lose()
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.close()

    def moved(self, at: tuple[int, int]) -> None:
        """The pointer was moved."""
        with self._changed:
            if at != self.cursor:
                self.cursor = at
                self._bump()

    def acted(self) -> None:
        """A key or a button went down or up: programs may answer."""
        self._acted = time.monotonic()

    def _draw(self, first: int, last: int) -> None:
        with self._changed:
            first, last = max(first, 0), min(last, self.size[1])
            if first < last:
                self._stale = _joined(self._stale, (first, last))
            self._drawn = self._bump()

    def _reshape(self) -> None:
        self._shape = None
        self._draw(0, 0)

    def _bump(self) -> int:
        self._serial += 1
        self._time = time.monotonic()
        self._changed.notify_all()
        return self._serial

    def _lose(self) -> None:
        with self._changed:
            self._eye = None
            self._changed.notify_all()


def _joined(one: Rows, other: Rows) -> Rows:
    """Those of both and all between."""
    return min(one[0], other[0]), max(one[1], other[1])


def _draw(rgb: Rgb, shape: Cursor, at: tuple[int, int]) -> Rows:
    """Lay the pointer over a picture, cut at its edges; the rows that it is in."""
    height, width = rgb.shape[:2]
    left, top = at[0] - shape.hot[0], at[1] - shape.hot[1]
    x0, y0 = max(left, 0), max(top, 0)
    x1 = min(left + shape.pixels.shape[1], width)
    y1 = min(top + shape.pixels.shape[0], height)
    if x0 >= x1 or y0 >= y1:
        return _NO_ROWS
    part: Bgrx = shape.pixels[y0 - top : y1 - top, x0 - left : x1 - left]
    below = rgb[y0:y1, x0:x1].astype(np.uint16)
    clear = 255 - part[..., 3:].astype(np.uint16)
    rgb[y0:y1, x0:x1] = part[..., 2::-1] + (below * clear + 127) // 255
    return y0, y1
