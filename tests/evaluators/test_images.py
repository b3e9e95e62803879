"""Pictures: what they are, not what their names say."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image

from cua_gym.errors import GradingError
from cua_gym.grading.check import Fails
from evaluators.images import open_image

from .conftest import Judge

Colour = tuple[int, ...]


def picture(
    colour: Colour, size: tuple[int, int] = (40, 30), kind: str = "PNG", **options: Any
) -> bytes:
    """A plain picture."""
    data = io.BytesIO()
    Image.new("RGBA" if len(colour) == 4 else "RGB", size, colour).save(data, kind, **options)
    return data.getvalue()


def test_a_pictures_format_is_its_content(judge: Judge):
    """A JPEG called png is a JPEG."""
    wanted = {"width": 40, "height": 30, "file_format": "png"}
    assert judge("images.size", picture((1, 2, 3)), **wanted).passed
    assert not judge("images.size", picture((1, 2, 3), kind="JPEG"), **wanted).passed
    assert not judge("images.size", picture((1, 2, 3), (41, 30)), **wanted).passed
    assert not judge("images.size", picture((1, 2, 3))[:60], **wanted).passed


def test_an_untouched_picture_cannot_pass(judge: Judge):
    """A tolerance so wide that the start would pass is not enough."""
    start, goal = picture((100, 100, 100)), picture((110, 110, 110))
    rule = {"reference": goal, "box": [0, 0, 40, 30], "max_difference": 20, "unlike": start}
    assert judge("images.region", goal, **rule).passed
    assert judge("images.region", picture((107, 107, 107)), **rule).passed
    assert not judge("images.region", start, **rule).passed
    assert not judge("images.region", picture((104, 104, 104)), **rule).passed
    assert not judge("images.region", picture((110, 110, 110), (30, 40)), **rule).passed


def test_a_region_is_that_region(judge: Judge):
    """The right thing elsewhere is not there; what lies around is not looked at."""
    goal = Image.new("RGB", (40, 30), "white")
    goal.paste((255, 0, 0), (10, 10, 20, 20))
    other = Image.new("RGB", (40, 30), "grey")
    other.paste((255, 0, 0), (10, 10, 20, 20))
    shifted = Image.new("RGB", (40, 30), "white")
    shifted.paste((255, 0, 0), (20, 10, 30, 20))

    def data(image: Image.Image) -> bytes:
        out = io.BytesIO()
        image.save(out, "PNG")
        return out.getvalue()

    rule = {"reference": data(goal), "box": [10, 10, 10, 10], "max_difference": 1}
    assert judge("images.region", data(other), **rule).passed
    assert not judge("images.region", data(shifted), **rule).passed
    assert not judge("images.region", data(other), **{**rule, "box": [9, 10, 10, 10]}).passed


def test_what_is_transparent_is_no_colour(judge: Judge):
    """Red that nobody sees is not red, and neither is what was under white or black."""
    rule = {"reference": picture((255, 0, 0)), "box": [0, 0, 40, 30], "max_difference": 3}
    assert judge("images.region", picture((255, 0, 0, 255)), **rule).passed
    assert not judge("images.region", picture((255, 0, 0, 0)), **rule).passed
    clear = {**rule, "reference": picture((0, 0, 0, 0))}
    assert judge("images.region", picture((9, 9, 9, 0)), **clear).passed
    assert not judge("images.region", picture((255, 255, 255)), **clear).passed
    assert not judge("images.region", picture((0, 0, 0)), **clear).passed


def test_a_start_that_is_the_goal_is_the_tasks_fault(judge: Judge):
    """No result could be told from it."""
    goal = picture((1, 2, 3))
    rule = {"reference": goal, "box": [0, 0, 40, 30], "max_difference": 1, "unlike": goal}
    with pytest.raises(GradingError, match="no difference"):
        judge("images.region", goal, **rule)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG",
        np.zeros(100, np.uint8).tobytes(),
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n(/etc/hostname) (r) file\n%%EOF\n",
        picture((1, 2, 3), (1, 1)).replace(b"\0\0\0\x01\0\0\0\x01", b"\0\x01\0\0\0\x01\0\0"),
        picture((1, 2, 3), (9000, 8000), compress_level=1),
        picture((1, 2, 3), kind="TIFF")[:90],
    ],
)
def test_broken_and_hostile_pictures_are_a_plain_fail(judge: Judge, data: bytes):
    """Cut short, of a format that starts programs, or unpacking to gigabytes."""
    assert not judge("images.size", data, width=1, height=1).passed


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=150)
@given(
    st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "ICO", "TGA"]),
    st.dictionaries(st.integers(0, 2000), st.integers(0, 255), max_size=20),
)
def test_a_picture_with_any_bytes_changed_is_one_or_fails(kind: str, changes: dict[int, int]):
    """No decoder's fault is ours."""
    data = bytearray(picture((200, 30, 60), kind=kind))
    for place, value in changes.items():
        data[place % len(data)] = value
    try:
        assert open_image(bytes(data)).width
    except Fails:
        pass


def tagged(tags: dict[int, Any], further: dict[int, Any] | None = None) -> bytes:
    """A JPEG with Exif tags."""
    exif = Image.Exif()
    exif.update(tags)
    if further:
        exif.get_ifd(ExifTags.IFD.Exif).update(further)
    return picture((1, 2, 3), kind="JPEG", exif=exif.tobytes())


def test_notes_are_whole_values(judge: Judge):
    """By name, as text or number; a part of a text is another text."""
    base = ExifTags.Base
    data = tagged(
        {base.Artist: "Ada Byron", base.Orientation: 6},
        {base.DateTimeOriginal: "2025:10:21 09:00:00"},
    )
    right = {"Artist": "Ada Byron", "Orientation": 6, "DateTimeOriginal": "2025:10:21 09:00:00"}
    assert judge("images.exif", data, expected=right, absent=["GPSInfo", "Copyright"]).passed
    for name, value in (("Artist", "Ada"), ("Orientation", 1), ("Copyright", ""), ("Artist", 6)):
        assert not judge("images.exif", data, expected={name: value}).passed
    assert not judge("images.exif", data, absent=["Artist"]).passed


def test_notes_that_are_to_go_are_all_gone(judge: Judge):
    """Place and everything, of a picture that is still one."""
    placed = Image.Exif()
    placed.get_ifd(ExifTags.IFD.GPSInfo)[1] = "N"
    data = picture((1, 2, 3), kind="JPEG", exif=placed.tobytes())
    assert not judge("images.exif", data, absent=["GPSInfo"]).passed
    assert judge("images.exif", picture((1, 2, 3), kind="JPEG"), absent=["GPSInfo", "*"]).passed
    assert not judge("images.exif", tagged({315: "x"}), absent=["*"]).passed
    assert not judge("images.exif", b"", absent=["GPSInfo"]).passed
    broken = tagged({315: "x" * 50}).replace(b"MM\0*\0\0\0\x08", b"MM\0*\0\0\xff\x08")
    assert not judge("images.exif", broken, expected={"Artist": "x" * 50}).passed
    assert not judge("images.exif", broken, absent=["*"]).passed
