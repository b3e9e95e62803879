"""What the picture says of its place on the screen is exact, and it fits."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cua_gym.bridge.pictures import Picture, encode
from cua_gym.errors import ActionError

PLENTY = 10**9
WIDTH, HEIGHT = 1280, 800


def noise(width: int, height: int) -> npt.NDArray[np.uint8]:
    """What no codec makes small."""
    return np.random.default_rng(3).integers(0, 256, (height, width, 3), np.uint8)


def pixels(picture: Picture) -> npt.NDArray[np.uint8]:
    """What a viewer of the file sees."""
    with Image.open(io.BytesIO(picture.data)) as image:
        assert image.get_format_mimetype() == picture.mime
        assert image.size == picture.size
        return np.asarray(image.convert("RGB"))


def test_a_whole_frame_is_exact() -> None:
    """Without region and scale every pixel is the screen's."""
    rgb = noise(101, 63)
    picture = encode(rgb, limit_bytes=PLENTY)
    assert (picture.mime, picture.region, picture.scale) == ("image/png", (0, 0, 101, 63), 1.0)
    assert np.array_equal(pixels(picture), rgb)


@given(st.data())
def test_a_region_is_exact(data: st.DataObject) -> None:
    """Any region on the screen, of one pixel too, shows the screen's pixels."""
    rgb = noise(37, 23)
    x, y = data.draw(st.integers(0, 36)), data.draw(st.integers(0, 22))
    w, h = data.draw(st.integers(1, 37 - x)), data.draw(st.integers(1, 23 - y))
    picture = encode(rgb, region=(x, y, w, h), limit_bytes=PLENTY)
    assert picture.region == (x, y, w, h)
    assert np.array_equal(pixels(picture), rgb[y : y + h, x : x + w])


def test_a_region_over_the_edge_is_clipped_and_said() -> None:
    """Right and lower edge only, so the origin that was asked for always stands."""
    picture = encode(noise(100, 50), region=(90, 40, 500, 500), limit_bytes=PLENTY)
    assert (picture.region, picture.size) == ((90, 40, 10, 10), (10, 10))


@pytest.mark.parametrize(
    "region",
    [(100, 0, 5, 5), (0, 50, 5, 5), (-1, 0, 5, 5), (0, -3, 5, 5), (0, 0, 0, 5), (0, 0, 5, -5)],
)
def test_a_region_off_the_screen_is_refused(region: Any) -> None:
    """The message names the screen's size."""
    with pytest.raises(ActionError, match="100x50"):
        encode(noise(100, 50), region=region, limit_bytes=PLENTY)


@pytest.mark.parametrize("region", [(0, 0, 5), (0, 0, 5.5, 5), ("a", 0, 1, 1), 7, (True, 0, 5, 5)])
def test_what_is_no_region_is_refused(region: Any) -> None:
    """Four whole numbers, nothing else."""
    with pytest.raises(ActionError, match="four whole numbers"):
        encode(noise(100, 50), region=region, limit_bytes=PLENTY)


@pytest.mark.parametrize("scale", [0, -1, 1.01, math.nan, math.inf, "1", None, True])
def test_a_scale_outside_is_refused(scale: Any) -> None:
    """Above 0 and at most 1."""
    with pytest.raises(ActionError, match="scale must be"):
        encode(noise(10, 10), scale=scale, limit_bytes=PLENTY)


@pytest.mark.parametrize("scale", [1.0, 0.9, 0.8, 2 / 3, 0.5, 0.3333, 0.25])
@pytest.mark.parametrize("region", [None, (13, 7, 1001, 699)])
def test_a_target_of_ten_pixels_is_hit_at_every_corner(
    scale: float, region: tuple[int, int, int, int] | None
) -> None:
    """What is seen at (px, py) is clicked at region + (px, py) / scale, rounded down."""
    left, top, width, height = region or (0, 0, WIDTH, HEIGHT)
    for x in (left, left + width - 10):
        for y in (top, top + height - 10):
            rgb = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
            rgb[y : y + 10, x : x + 10] = 255
            picture = encode(rgb, region=region, scale=scale, limit_bytes=PLENTY)
            assert picture.scale == scale
            seen = pixels(picture)[:, :, 0]
            rows, columns = np.nonzero(seen > 127)
            px, py = int(columns.mean() + 0.5), int(rows.mean() + 0.5)
            assert x <= left + int(px / picture.scale) < x + 10
            assert y <= top + int(py / picture.scale) < y + 10


@given(st.floats(1e-12, 1), st.integers(1, 90), st.integers(1, 90))
def test_every_picture_pixel_lies_on_the_screen(scale: float, width: int, height: int) -> None:
    """Its native pixel is in the region, and no native pixel is left out."""
    picture = encode(np.zeros((height, width, 3), np.uint8), scale=scale, limit_bytes=PLENTY)
    for size, native in zip(picture.size, (width, height), strict=True):
        assert int((size - 1) / picture.scale) < native
        assert size / picture.scale >= native - 1e-6


@pytest.mark.parametrize("limit", [700_000, 60_000, 3_000, 800])
def test_the_limit_holds(limit: int) -> None:
    """Noise becomes a JPEG, worse and at last smaller, and says its size and scale."""
    picture = encode(noise(640, 480), limit_bytes=limit)
    assert len(picture.data) <= limit
    assert picture.mime == "image/jpeg"
    seen = pixels(picture)
    assert seen.shape[1] == math.ceil(640 * picture.scale - 1e-9)
    assert (picture.scale == 1.0) == (limit == 700_000)


def test_an_impossible_limit_is_the_callers_mistake() -> None:
    """It ends, with words."""
    with pytest.raises(ValueError, match="no picture has 10 bytes"):
        encode(noise(64, 64), limit_bytes=10)
