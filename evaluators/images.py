"""Pictures: size, format, and a region that looks like a reference."""

from __future__ import annotations

import io
import warnings

import numpy as np
import numpy.typing as npt
from PIL import Image

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

MAX_PIXELS = 64_000_000


def open_image(data: bytes) -> Image.Image:
    """A picture, wholly decoded.

    Raises:
        Fails: broken, cut short, or more than `MAX_PIXELS`.
    """
    try:
        with warnings.catch_warnings():
            # Pillow's own bomb warning comes at 89 million pixels; ours is a plain limit.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data))
        if image.width * image.height > MAX_PIXELS:
            raise Fails(f"{image.width}x{image.height} is over {MAX_PIXELS} pixels")
        image.load()
    # Pillow reports broken images by many types, SyntaxError among them.
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise Fails(f"no whole picture: {error}", seen=data[:40]) from error
    return image


@check
def size(item: Item, *, width: int, height: int, file_format: str = "") -> Verdict:
    """A whole picture of exactly this size in pixels, and of this ``file_format`` (``PNG``).

    It refuses a picture that is cut short, and a format that only its name claims.
    """
    image = open_image(item.bytes())
    seen = (image.width, image.height, image.format)
    wanted = (width, height, file_format.upper() or seen[2])
    return verdict(seen == wanted, "size and format", seen=str(seen), wanted=str(wanted))


@check
def region(
    item: Item,
    *,
    reference: bytes,
    box: list[int],
    max_difference: float,
    unlike: bytes | None = None,
) -> Verdict:
    """Inside ``box`` (x, y, width, height) the picture looks like the reference.

    The difference is the mean over pixels and channels, 0 to 255. ``unlike`` is the picture at
    the start: a result no nearer to the reference than to it is refused, so that an untouched
    file cannot pass. It refuses a picture of another size than the reference.
    """
    image, wanted = open_image(item.bytes()), open_image(reference)
    if image.size != wanted.size:
        return verdict(False, "its size", seen=str(image.size), wanted=str(wanted.size))
    x, y, width, height = box
    if width <= 0 or height <= 0 or x < 0 or y < 0:
        raise GradingError(f"box {box} is empty or outside")
    if x + width > wanted.width or y + height > wanted.height:
        raise GradingError(f"box {box} is larger than the reference {wanted.size}")
    distance = _distance(image, wanted, box)
    message = f"difference {distance:.2f} of at most {max_difference:g}"
    near = distance <= max_difference
    if near and unlike is not None:
        before = open_image(unlike)
        if before.size == image.size and _distance(image, before, box) <= distance:
            return verdict(False, "it looks as at the start", seen=distance, wanted=max_difference)
    return verdict(near, message, seen=distance, wanted=max_difference)


def _distance(one: Image.Image, other: Image.Image, box: list[int]) -> float:
    x, y, width, height = box

    def pixels(image: Image.Image) -> npt.NDArray[np.float64]:
        part = image.convert("RGB").crop((x, y, x + width, y + height))
        return np.asarray(part, np.float64)

    return float(np.abs(pixels(one) - pixels(other)).mean())
