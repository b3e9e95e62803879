"""Pictures: size, format, what is noted in them, and a region that looks like a reference."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .bounds import within
from .numbers_dates import DEFAULT_RELATIVE, close

MAX_PIXELS = 64_000_000
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO", "TGA", "AVIF")
"""Not all that Pillow knows: for some, such as EPS, it starts a program of this host."""

EMPTY_EXIF = 20
"""Bytes of Exif data without a tag."""


def open_image(data: bytes) -> Image.Image:
    """A picture, wholly decoded.

    Raises:
        Fails: broken, cut short, of another format, or more than `MAX_PIXELS`.
    """
    try:
        with within("the picture"), warnings.catch_warnings():
            # Pillow warns of bombs at 89 million pixels and of odd notes; neither is a fault here.
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data), formats=FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise Fails(f"{image.width}x{image.height} is over {MAX_PIXELS} pixels")
            image.load()
    except Fails:
        raise
    except Exception as error:  # a decoder given an agent's bytes raises what it likes
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

    The difference is the mean over pixels and channels, 0 to 255, on white and on black, the
    larger one. ``unlike`` is the picture at the start: a result no nearer to the reference than
    to it is refused, so that an untouched file cannot pass. It refuses a picture of another size
    than the reference.
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
    if unlike is not None and (before := open_image(unlike)).size == image.size:
        if _distance(before, wanted, box) == 0:
            raise GradingError(f"the start looks as the reference in {box}; there is no difference")
        if near and _distance(image, before, box) <= distance:
            return verdict(False, "it looks as at the start", seen=distance, wanted=max_difference)
    return verdict(near, message, seen=distance, wanted=max_difference)


def _distance(one: Image.Image, other: Image.Image, box: list[int]) -> float:
    x, y, width, height = box

    def pixels(image: Image.Image, ground: int) -> npt.NDArray[np.int16]:
        part = image.crop((x, y, x + width, y + height)).convert("RGBA")
        flat = Image.alpha_composite(Image.new("RGBA", part.size, (ground,) * 3 + (255,)), part)
        return np.asarray(flat.convert("RGB"), np.int16)

    return max(
        float(np.abs(pixels(one, ground) - pixels(other, ground)).mean()) for ground in (255, 0)
    )


@check
def exif(
    item: Item,
    *,
    expected: dict[str, str | int | float] | None = None,
    absent: Sequence[str] = (),
    relative: float = DEFAULT_RELATIVE,
) -> Verdict:
    """The picture's Exif tags, by their names in the standard (``Artist``, ``DateTimeOriginal``).

    Those of ``expected`` are there with these values, numbers within ``relative``; those of
    ``absent`` are not (``GPSInfo`` is any place, ``*`` any tag at all). It refuses text in which
    the value is only a part, and a file that is no whole picture.
    """
    if not expected and not absent:
        raise GradingError("neither expected nor absent names a tag")
    seen = _tags(open_image(item.bytes()))
    wrong = [k for k, v in (expected or {}).items() if not _same_note(seen.get(k), v, relative)]
    there = [k for k in absent if k in seen or (k == "*" and seen)]
    message = f"other values: {wrong}; still there: {there}" if wrong or there else "the tags"
    return verdict(not wrong and not there, message, seen=seen, wanted=expected)


def _tags(image: Image.Image) -> dict[str, Any]:
    try:
        with within("the picture's Exif"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = image.getexif()
            tags = {**data, **data.get_ifd(ExifTags.IFD.Exif)}
            if place := data.get_ifd(ExifTags.IFD.GPSInfo):
                tags[ExifTags.IFD.GPSInfo] = repr(place)
    except Exception as error:  # as in `open_image`
        raise Fails(f"no whole Exif data: {error}") from error
    if not tags and len(image.info.get("exif", b"")) > EMPTY_EXIF:
        raise Fails("Exif data that cannot be read, so nobody knows what it tells")
    pointers = (ExifTags.IFD.Exif, ExifTags.Base.ExifOffset)
    return {ExifTags.TAGS.get(k, str(k)): v for k, v in tags.items() if k not in pointers}


def _same_note(seen: Any, wanted: str | int | float, relative: float) -> bool:
    if isinstance(wanted, str):
        return isinstance(seen, str) and seen.rstrip("\0") == wanted
    try:
        value = float(seen)
    except (TypeError, ValueError, ZeroDivisionError):
        return False
    return not isinstance(seen, str) and close(value, wanted, 0.0, relative)
