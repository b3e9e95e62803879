"""A frame, or a part of it, as the bytes that an agent outside is sent.

Coordinates of actions are always pixels of the native screen. Picture pixel (px, py) lies at
``x = region.x + px / scale, y = region.y + py / scale``, rounded down: exactly, at every corner,
because the scale is what it says. A width that is no whole number of picture pixels is rounded
up, and the last of them is filled with the edge's colour.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from cua_gym.errors import ActionError
from cua_gym.record.png import PngEncoder

__all__ = ["Picture", "Region", "check", "encode"]

Region = tuple[int, int, int, int]
Rgb = npt.NDArray[np.uint8]

_QUALITIES = (90, 75, 55, 35)
_SHRINK = 0.7


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file and where on the screen it lies.

    Attributes:
        size: (width, height) of the picture in its own pixels.
        region: (x, y, width, height) of what it shows, in native pixels.
        scale: picture pixels per native pixel, the one really used, at most 1.
    """

    data: bytes
    mime: Literal["image/png", "image/jpeg"]
    size: tuple[int, int]
    region: Region
    scale: float


def encode(
    rgb: Rgb, *, region: Region | None = None, scale: float = 1.0, limit_bytes: int
) -> Picture:
    """``rgb``, ``(height, width, 3)`` uint8, as a lossless PNG where that fits ``limit_bytes``.

    Where it does not it is a JPEG, of as good a quality as fits, and at last a smaller one.

    Args:
        region: (x, y, width, height) in native pixels; what reaches over the right or lower edge
            of the screen is left out. None is the whole screen.
        scale: above 0 and at most 1.

    Raises:
        ActionError: the region is empty or begins off the screen, or no such scale.
        ValueError: not even one pixel fits ``limit_bytes``.
    """
    shown = _clipped(region, rgb.shape[1], rgb.shape[0])
    x, y, width, height = shown
    # Below this the picture is one pixel and a smaller scale could only mean something false.
    scale = max(_checked(scale), 1 / max(width, height))
    part = np.ascontiguousarray(rgb[y : y + height, x : x + width])
    small = _scaled(part, scale)
    data = PngEncoder().encode(small)
    if len(data) <= limit_bytes:
        return Picture(data, "image/png", _size(small), shown, scale)
    while True:
        for quality in _QUALITIES:
            data = _jpeg(small, quality)
            if len(data) <= limit_bytes:
                return Picture(data, "image/jpeg", _size(small), shown, scale)
        if max(_size(small)) == 1:
            raise ValueError(f"no picture has {limit_bytes} bytes; a pixel takes {len(data)}")
        scale = max(scale * _SHRINK, 1 / max(width, height))
        small = _scaled(part, scale)


def check(region: Region | None, scale: float, size: tuple[int, int]) -> None:
    """See that there is such a picture of a screen of ``size`` (width, height).

    Raises:
        ActionError: as `encode`.
    """
    _clipped(region, *size)
    _checked(scale)


def _clipped(region: Region | None, width: int, height: int) -> Region:
    if region is None:
        return 0, 0, width, height
    whole = isinstance(region, tuple | list) and len(region) == 4
    if not whole or any(isinstance(v, bool) or not isinstance(v, int) for v in region):
        raise ActionError(f"a region is four whole numbers x, y, width, height, not {region!r:.80}")
    x, y, w, h = region
    if w <= 0 or h <= 0 or not (0 <= x < width and 0 <= y < height):
        raise ActionError(
            f"the region x={x}, y={y}, width={w}, height={h} is empty or begins off the screen, "
            f"which is {width}x{height}"
        )
    return x, y, min(w, width - x), min(h, height - y)


def _checked(scale: float) -> float:
    number = isinstance(scale, int | float) and not isinstance(scale, bool)
    if not number or not 0 < scale <= 1:  # NaN fails both comparisons
        raise ActionError(f"scale must be above 0 and at most 1, not {scale!r:.80}")
    return float(scale)


def _scaled(rgb: Rgb, scale: float) -> Rgb:
    """Each picture pixel is the mean of exactly ``1 / scale`` native ones in each direction."""
    if scale == 1.0:
        return rgb
    # An epsilon, or 1280 * 0.1 = 128.00000000000001 would make 129 pixels.
    width, height = (math.ceil(n * scale - 1e-9) for n in (rgb.shape[1], rgb.shape[0]))
    right, low = width / scale, height / scale
    down = max(0, math.ceil(low - 1e-9) - rgb.shape[0])
    over = max(0, math.ceil(right - 1e-9) - rgb.shape[1])
    padded = np.pad(rgb, [(0, down), (0, over), (0, 0)], "edge")
    box = (0.0, 0.0, min(right, padded.shape[1]), min(low, padded.shape[0]))
    # Of Pillow's filters the sharpest that costs little: 6 ms for 1280x800 by a half, Lanczos 13.
    image = Image.fromarray(padded).resize((width, height), Image.Resampling.HAMMING, box=box)
    return np.asarray(image)


def _jpeg(rgb: Rgb, quality: int) -> bytes:
    file = io.BytesIO()
    # Colour at full resolution: halved, coloured text on a coloured ground cannot be read.
    Image.fromarray(rgb).save(file, "JPEG", quality=quality, subsampling=0)
    return file.getvalue()


def _size(rgb: Rgb) -> tuple[int, int]:
    return rgb.shape[1], rgb.shape[0]
