"""Promises of the map between a picture's pixels and the screen's."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import ActionError
from cua_gym.interop.actions import Scale, from_anthropic, to_anthropic

sizes = st.tuples(st.integers(1, 4096), st.integers(1, 4096))
B29 = Scale(model=(1024, 768), native=(1920, 1080))


def corners(size: tuple[int, int]) -> list[tuple[int, int]]:
    """The four corner pixels."""
    return [(x, y) for x in (0, size[0] - 1) for y in (0, size[1] - 1)]


def test_a_ten_pixel_target_in_each_corner_is_hit() -> None:
    """Where a model sees the target's middle is a click within it, on a stretched picture too."""
    for corner_x in (0, 1910):
        for corner_y in (0, 1070):
            middle = [(corner_x + 5) * 1024 // 1920, (corner_y + 5) * 768 // 1080]
            given_ = {"action": "left_click", "coordinate": middle}
            (click,) = from_anthropic(given_, cursor=(0, 0), scale=B29)
            assert corner_x <= click.x < corner_x + 10
            assert corner_y <= click.y < corner_y + 10
            (back,) = to_anthropic(click, scale=B29)
            assert back == given_


@given(sizes, sizes)
def test_corners_are_corners(model: tuple[int, int], native: tuple[int, int]) -> None:
    """A corner pixel of one is that of the other, both ways, unless one has a single pixel."""
    scale = Scale(model, native)
    if 1 in (*model, *native):
        return
    assert [scale.to_native(p) for p in corners(model)] == corners(native)
    assert [scale.to_model(p) for p in corners(native)] == corners(model)


@given(st.data(), sizes, sizes)
def test_the_way_there_and_back(
    data: st.DataObject, small: tuple[int, int], more: tuple[int, int]
) -> None:
    """On a screen no smaller than its picture each pixel of the picture comes back."""
    native = (small[0] + more[0] - 1, small[1] + more[1] - 1)
    scale = Scale(small, native)
    x, y = (data.draw(st.integers(0, n - 1)) for n in small)
    hit = scale.to_native((x, y))
    assert scale.to_model(hit) == (x, y)
    for value, old, new, got in zip((x, y), small, native, hit, strict=True):
        # Within the block of screen pixels that the picture's pixel was made of, but for rounding.
        ratio = Fraction(new, old)
        assert value * ratio - Fraction(1, 2) <= got <= (value + 1) * ratio


def test_a_half_goes_up() -> None:
    """Rounding is to the nearest, and the same everywhere: no even pixels preferred."""
    scale = Scale((3, 3), (6, 4))  # 1 * 5 / 2 = 2.5, 1 * 3 / 2 = 1.5
    assert scale.to_native((1, 1)) == (3, 2)


@pytest.mark.parametrize("point", [(-1, 0), (1024, 5), (5, 768)])
def test_off_the_picture_is_said(point: tuple[int, int]) -> None:
    """A point off the picture is an error in the picture's own terms, never moved to the edge."""
    with pytest.raises(ActionError, match="off the picture that you see, 1024x768"):
        B29.to_native(point)


def test_a_picture_without_pixels_is_refused() -> None:
    """A size of none is the programmer's fault, found when it is made."""
    with pytest.raises(ValueError, match="at least one pixel"):
        Scale((0, 1), (1, 1))
