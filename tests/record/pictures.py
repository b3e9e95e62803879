"""Pictures for the recording tests."""

from __future__ import annotations

import time

import numpy as np

from cua_gym.machine.base import Frame


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (64, 48), serial: int = 0) -> Frame:
    """A frame of one colour; ``size`` is (width, height)."""
    rgb = np.full((size[1], size[0], 3), colour, np.uint8)
    return Frame(rgb, (1, 2), time.monotonic(), serial)


def counted(number: int, size: tuple[int, int] = (64, 48)) -> Frame:
    """A frame that no other number has."""
    frame = plain((40, 80, 120), size, number)
    frame.rgb[: size[1] // 2, : number % size[0]] = 250
    frame.rgb[-1, 0] = (number % 256, number // 256, 0)
    return frame
