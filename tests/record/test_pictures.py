"""Pictures that follow one another: what changed is encoded again, and nothing is lost by it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cua_gym.machine.base import Rgb
from cua_gym.record.bands import BAND, bands, changed_bands
from cua_gym.record.png import PngEncoder
from cua_gym.record.video import Video

SIZES = [(64, 96), (61, 77), (1, 1), (5, 2), (640, 33)]


def pictures(size: tuple[int, int], count: int = 12) -> Iterator[Rgb]:
    """The first is noise; each of the others differs in a block, one in nothing, one in all."""
    rng = np.random.default_rng(0)
    width, height = size
    rgb = rng.integers(0, 256, (height, width, 3), np.uint8)
    for number in range(count):
        yield rgb.copy()
        top, left = rng.integers(height), rng.integers(width)
        if number == 3:
            rgb = rng.integers(0, 256, rgb.shape, np.uint8)
        elif number != 5:
            rgb[top : top + 20, left : left + 9] = rng.integers(0, 256, 3)


def read(data: bytes) -> Rgb:
    """By somebody else's reader, which checks every sum."""
    with Image.open(io.BytesIO(data)) as image:
        assert image.mode == "RGB"
        return np.asarray(image)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_png_made_of_changed_bands_is_the_picture(size: tuple[int, int]) -> None:
    """And is the very file that a fresh encoder makes."""
    encoder = PngEncoder()
    previous: Rgb | None = None
    for rgb in pictures(size):
        changed = None if previous is None else changed_bands(previous, rgb)
        data = encoder.encode(rgb, changed)
        assert (read(data) == rgb).all()
        assert data == PngEncoder().encode(rgb)
        previous = rgb


def test_another_size_in_between() -> None:
    """A picture of another size is encoded whole, whatever is said to have changed."""
    encoder = PngEncoder()
    first, other = next(pictures((64, 96))), next(pictures((32, 48)))
    for rgb in (first, other, first):
        assert (read(encoder.encode(rgb, [0])) == rgb).all()


@pytest.mark.parametrize(
    ("row", "column", "band"), [(0, 0, 0), (BAND - 1, 60, 0), (BAND, 0, BAND), (76, 60, 2 * BAND)]
)
def test_one_changed_value_is_found(row: int, column: int, band: int) -> None:
    """In the first and last rows of bands, and in a last band that is not whole."""
    before = next(pictures((61, 77)))
    now = before.copy()
    now[row, column, 2] ^= 1
    assert changed_bands(before, now) == [band]
    assert changed_bands(before, before.copy()) == []
    assert list(bands(77)) == [0, BAND, 2 * BAND]


@pytest.mark.parametrize("size", [(64, 96), (61, 77), (64, 34)], ids=str)
@pytest.mark.parametrize("taller", [0, 40])
def test_a_video_painted_in_bands_is_the_same_video(
    tmp_path: Path, size: tuple[int, int], taller: int
) -> None:
    """Byte for byte, also where pictures are taller than the video."""
    whole, painted = (Video(tmp_path / name, size) for name in ("whole.mp4", "painted.mp4"))
    previous: Rgb | None = None
    for number, rgb in enumerate(pictures((size[0], size[1] + taller))):
        whole.add(rgb, 40 * number)
        changed = None if previous is None else changed_bands(previous, rgb)
        painted.add(rgb, 40 * number, changed)
        previous = rgb
    for video in (whole, painted):
        video.close()
    assert (tmp_path / "whole.mp4").read_bytes() == (tmp_path / "painted.mp4").read_bytes()
