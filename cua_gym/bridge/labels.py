"""Numbered boxes drawn on a picture, each number where it hides the least. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

__all__ = ["numbered"]

Rgb = npt.NDArray[np.uint8]
Box = tuple[int, int, int, int]

# Dark enough for white digits (contrast of 4.5 and more), and told apart side by side.
_COLOURS = ((200, 0, 0), (0, 90, 200), (0, 115, 40), (150, 0, 170), (160, 80, 0), (0, 110, 120))
_FONT_PX = 11
_HEIGHT = 11
_DIGIT = 7


def numbered(rgb: Rgb, boxes: list[Box]) -> Rgb:
    """A copy of ``rgb``, ``(height, width, 3)`` uint8, with a frame and a number, from 1, per box.

    Args:
        boxes: (x, y, width, height) in pixels of the picture, within it.
    """
    image = Image.fromarray(rgb)
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(_FONT_PX)
    corners = np.array([(x, y, x + w, y + h) for x, y, w, h in boxes], np.int64).reshape(-1, 4)
    for number, (x0, y0, x1, y1) in enumerate(corners.tolist()):
        draw.rectangle((x0, y0, x1 - 1, y1 - 1), outline=_COLOURS[number % len(_COLOURS)])
    labels = np.zeros((0, 4), np.int64)
    detail = _detail(rgb)
    for number in range(len(boxes)):
        text = str(number + 1)
        place = _place(number, corners, labels, _DIGIT * len(text) + 2, detail)
        labels = np.vstack([labels, place])
        x0, y0, x1, y1 = place.tolist()
        draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill=_COLOURS[number % len(_COLOURS)])
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        draw.text(middle, text, fill="white", font=font, anchor="mm")
    return np.asarray(image)


def _place(
    number: int,
    corners: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    width: int,
    detail: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Where a label hides the least: another label, something drawn, another target, its own."""
    x0, y0, x1, y1 = corners[number].tolist()
    right, low = x1 - width, y1 - _HEIGHT
    above, left = y0 - _HEIGHT, x0 - width
    # Best within its own corners, where it can belong to nothing else, if they are empty.
    places = [(x0, y0), (right, y0), (x0, low), (right, low)]
    places += [(x0, above), (right, above), (left, y0), (x1, y0), (x0, y1), (right, y1)]
    extent = np.array((width, _HEIGHT), np.int64)
    at = np.clip(
        np.array(places, np.int64), 0, np.maximum(0, np.array(detail.shape[::-1]) - 1 - extent)
    )
    tried = np.hstack([at, at + extent])
    others = np.delete(corners, number, 0)
    x0s, y0s, x1s, y1s = np.minimum(tried, np.array(detail.shape[::-1] * 2) - 1).T
    drawn = detail[y1s, x1s] - detail[y0s, x1s] - detail[y1s, x0s] + detail[y0s, x0s]
    cost = (
        30 * _shared(tried, labels).sum(1)
        + 3 * drawn
        + _shared(tried, others).sum(1)
        + 5 * np.arange(len(places))  # the earlier place, where it hides about as little
    )
    return np.asarray(tried[int(cost.argmin())])


def _detail(rgb: Rgb) -> npt.NDArray[np.int64]:
    """Summed-area table, one larger each way, of pixels that differ from the next: text, icons."""
    grey = rgb.astype(np.int16).sum(2)
    edges = np.zeros(grey.shape, np.int64)
    edges[:, :-1] += np.abs(np.diff(grey, axis=1)) > 60
    edges[:-1] += np.abs(np.diff(grey, axis=0)) > 60
    return np.pad(edges.cumsum(0).cumsum(1), ((1, 0), (1, 0)))


def _shared(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Common area of each of ``a`` with each of ``b``."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(2))
