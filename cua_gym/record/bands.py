"""Which parts of a picture are as they were: a step changes a few rows of most screens.

Whoever encodes picture after picture does again only the bands that this names.
"""

from __future__ import annotations

import numpy as np

from cua_gym.machine.base import Rgb

__all__ = ["BAND", "bands", "changed_bands"]

BAND = 32
"""Rows of a band; even, as a video's colours go by pairs of rows."""


def bands(height: int) -> range:
    """The first row of each band of a picture; the last band may have fewer rows."""
    return range(0, height, BAND)


def changed_bands(before: Rgb, now: Rgb) -> list[int]:
    """First rows of the bands in which two pictures of one size differ."""
    return [
        top
        for top in bands(now.shape[0])
        if not np.array_equal(_words(before[top : top + BAND]), _words(now[top : top + BAND]))
    ]


def _words(band: Rgb) -> np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]]:
    """The same bytes in as few numbers as may be: that many times fewer comparisons."""
    whole = band.nbytes % 8 == 0 and band.flags.c_contiguous
    return band.reshape(-1).view(np.uint64) if whole else band
