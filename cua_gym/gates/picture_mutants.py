"""Variants of pictures: part of what was drawn undone, a blank one, another size; encoded anew."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from functools import partial

from PIL import Image, ImageChops, PngImagePlugin, UnidentifiedImageError

from cua_gym.gates.variants import Content, Variant

__all__ = ["broken", "kept", "read"]


_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK")
"""Others cannot be made of colours."""


def read(data: bytes) -> Image.Image | None:
    """The picture that a file is, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            image = Image.open(io.BytesIO(data))
            image.load()
        except (
            UnidentifiedImageError,
            OSError,
            ValueError,
            SyntaxError,
            Image.DecompressionBombError,
        ):
            return None
    return image


def broken(start: Image.Image | None, solved: Image.Image) -> Iterator[Content]:
    """One half or the other of the changed region undone; all one colour; a pixel wider."""
    form = solved.format or ""
    if form not in Image.SAVE or solved.mode not in _MODES:
        return
    if start is not None and start.size == solved.size:
        old, new = start.convert("RGBA"), solved.convert("RGBA")
        # Of RGBA, PIL looks at the box of what is not transparent.
        box = ImageChops.difference(old, new).getbbox(alpha_only=False)
        if box is not None:
            left, top, right, bottom = box
            middle = (left + right) // 2
            for where, half in (
                ("left", (left, top, max(middle, left + 1), bottom)),
                ("right", (middle, top, right, bottom)),
            ):
                yield Variant("half", where, partial(_pasted, old, new, half, solved.mode, form))
    blank = Image.new("RGB", solved.size, (127, 127, 127))
    yield Variant("blank", "", partial(_saved, blank, solved.mode, form))
    wider = solved.resize((solved.width + 1, solved.height))
    yield Variant("resized", "", partial(_saved, wider, solved.mode, form))


def _pasted(
    old: Image.Image, new: Image.Image, box: tuple[int, int, int, int], mode: str, form: str
) -> bytes:
    mixed = new.copy()
    mixed.paste(old.crop(box), box)
    return _saved(mixed, mode, form)


def _saved(image: Image.Image, mode: str, form: str) -> bytes:
    data = io.BytesIO()
    image.convert(mode).save(data, form)
    return data.getvalue()


def kept(solved: Image.Image) -> Iterator[Content]:
    """The same pixels and notes in another encoding, where the format loses nothing."""
    if isinstance(solved, PngImagePlugin.PngImageFile):
        yield Variant("reencoded", "", partial(_reencoded, solved))


def _reencoded(image: PngImagePlugin.PngImageFile) -> bytes:
    notes = PngImagePlugin.PngInfo()
    for key, text in image.text.items():
        notes.add_text(key, text)
    data = io.BytesIO()
    more = {k: image.info[k] for k in ("dpi", "exif", "icc_profile", "transparency", "gamma")
            if k in image.info}  # fmt: skip
    image.save(data, "PNG", compress_level=1, pnginfo=notes, **more)
    return data.getvalue()
