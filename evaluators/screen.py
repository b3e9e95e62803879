"""The last frame, where nothing else shows the result: a colour, a picture of a widget.

It is the last resort: whatever is on the screen can also be a picture of it, and themes and fonts
move pixels. No text is read from it; what programs show as text is in the accessibility tree, and
what they saved is in files.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

from cua_gym.grading.check import GradingError, Item, Verdict, check, verdict

from .images import open_image

Pixels = npt.NDArray[np.float64]

MAX_SEARCHED = 4_000_000
"""Pixels; more takes seconds, and gigabytes."""
MIN_CONTRAST = 8.0
"""Standard deviation; below it a template is a plain area, of which a desktop has many."""


def _colour(text: str) -> None:
    if not text.startswith("#") or len(bytes.fromhex(text[1:])) != 3:
        raise ValueError("a colour is #rrggbb")


@check
def colour(
    item: Item,
    *,
    box: list[int],
    colour: Annotated[str, _colour],
    tolerance: int,
    share: float = 1.0,
) -> Verdict:
    """At least this ``share`` of the pixels in ``box`` (x, y, width, height) has the colour.

    A pixel has it when each channel, 0 to 255, is within ``tolerance``. It refuses an area where
    only the mean is that colour.
    """
    if not 0 < share <= 1:
        raise GradingError(f"share is above 0, up to 1, not {share}")
    area = _area(item, box)
    wanted = np.frombuffer(bytes.fromhex(colour[1:]), np.uint8).astype(np.float64)
    fits = float((np.abs(area - wanted).max(axis=2) <= tolerance).mean())
    mean = "#" + bytes(int(v) for v in area.mean(axis=(0, 1)).round()).hex()
    message = f"{fits:.1%} of the pixels, at least {share:.1%} wanted"
    return verdict(fits >= share, message, seen=f"{mean} on average", wanted=colour)


@check
def shows(
    item: Item, *, template: bytes, tolerance: float, box: list[int] | None = None
) -> Verdict:
    """The template is seen somewhere in ``box``, wholly and in its own size.

    The difference is the root of the mean square over pixels and channels, 0 to 255. A
    ``tolerance`` above half the template's own contrast is refused as the task's fault: up to
    there, whatever passes correlates with the template by 0.86 or more, and what has nothing to
    do with it, or is plain, differs by its whole contrast.
    """
    wanted = np.asarray(open_image(template).convert("RGB"), np.float64)
    contrast = float(np.sqrt(((wanted - wanted.mean(axis=(0, 1))) ** 2).mean()))
    if contrast < MIN_CONTRAST or not 0 <= tolerance <= contrast / 2:
        raise GradingError(
            f"the template's contrast is {contrast:.1f}; it must be {MIN_CONTRAST:g} or more, and "
            f"the tolerance {tolerance:g} at most half of it"
        )
    area = _area(item, box)
    if area.shape[0] < wanted.shape[0] or area.shape[1] < wanted.shape[1]:
        raise GradingError(f"the template {wanted.shape} is larger than the area {area.shape}")
    y, x = _best(area, wanted)
    part = area[y : y + wanted.shape[0], x : x + wanted.shape[1]]
    difference = float(np.sqrt(((part - wanted) ** 2).mean()))
    left, top = (box or [0, 0])[:2]
    message = f"difference {difference:.2f} at ({left + x}, {top + y}), at most {tolerance:g}"
    return verdict(difference <= tolerance, message, seen=difference, wanted=tolerance)


def _area(item: Item, box: list[int] | None) -> Pixels:
    """A part of the frame as (height, width, 3)."""
    image = open_image(item.bytes()).convert("RGB")
    x, y, width, height = box or (0, 0, image.width, image.height)
    if min(x, y) < 0 or min(width, height) < 1:
        raise GradingError(f"box {box} is empty or outside")
    if x + width > image.width or y + height > image.height:
        raise GradingError(f"box {box} leaves the frame of {image.size}")
    if width * height > MAX_SEARCHED:
        raise GradingError(f"{width}x{height} is over {MAX_SEARCHED} pixels; declare a smaller box")
    return np.asarray(image.crop((x, y, x + width, y + height)), np.float64)


def _best(area: Pixels, wanted: Pixels) -> tuple[int, int]:
    """Where the template differs least, (y, x): all places at once, by Fourier transforms."""
    rows, columns = area.shape[0] - wanted.shape[0] + 1, area.shape[1] - wanted.shape[1] + 1
    total = np.zeros((rows, columns))
    for channel in range(3):
        # Around 0, so that the squares of light areas do not drown the difference.
        field, small = area[:, :, channel] - 128, wanted[:, :, channel] - 128
        spectrum = np.fft.rfft2(field) * np.conj(np.fft.rfft2(small, s=field.shape))
        total -= 2 * np.fft.irfft2(spectrum, s=field.shape)[:rows, :columns]
        sums = np.zeros((field.shape[0] + 1, field.shape[1] + 1))
        sums[1:, 1:] = (field**2).cumsum(0).cumsum(1)
        height, width = small.shape
        total += sums[height:, width:] - sums[:-height, width:]
        total -= sums[height:, :-width] - sums[:-height, :-width]
    y, x = np.unravel_index(int(total.argmin()), total.shape)
    return int(y), int(x)
