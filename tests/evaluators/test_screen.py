"""The last frame: colours and templates, told from what is merely near."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw

from cua_gym.errors import GradingError
from evaluators.screen import _colour

from .conftest import Judge

DICE = np.random.default_rng(7)


def png(pixels: Image.Image | np.ndarray) -> bytes:
    """A picture's bytes."""
    data = io.BytesIO()
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(data, "PNG")
    return data.getvalue()


def desktop(label: str = "Save", at: tuple[int, int] = (200, 120)) -> Image.Image:
    """A frame with a gradient, noise, and a button."""
    ramp = np.linspace(30, 90, 400)[None, :, None] + DICE.integers(0, 6, (300, 400, 3))
    frame = Image.fromarray(ramp.astype(np.uint8))
    draw = ImageDraw.Draw(frame)
    x, y = at
    draw.rectangle((x, y, x + 59, y + 19), fill=(230, 230, 230), outline=(90, 90, 90))
    draw.text((x + 8, y + 4), label, fill=(0, 0, 0))
    return frame


BUTTON = png(desktop().crop((200, 120, 260, 140)))


def test_a_colour_is_that_of_the_pixels(judge: Judge):
    """Each of them, or the declared share; a mean is not enough."""
    frame = Image.new("RGB", (40, 20), (200, 30, 30))
    frame.paste((0, 0, 0), (0, 0, 10, 20))
    rule = {"box": [10, 0, 30, 20], "colour": "#c81e1e", "tolerance": 2}
    assert judge("screen.colour", png(frame), **rule).passed
    assert not judge("screen.colour", png(frame), **{**rule, "box": [9, 0, 30, 20]}).passed
    assert judge("screen.colour", png(frame), **{**rule, "box": [0, 0, 40, 20]}, share=0.75).passed
    assert not judge("screen.colour", png(frame), **{**rule, "colour": "#cb1e1e"}).passed
    stripes = np.zeros((20, 40, 3), np.uint8)
    stripes[::2] = 255
    grey = {"box": [0, 0, 40, 20], "colour": "#808080", "tolerance": 20}
    assert not judge("screen.colour", png(stripes), **grey, share=0.1).passed
    assert not judge("screen.colour", None, **grey).passed


def test_a_template_is_found_wherever_it_is(judge: Judge):
    """With other noise around and upon it, in the declared area alone."""
    moved = png(desktop(at=(31, 222)))
    assert judge("screen.shows", moved, template=BUTTON, tolerance=10).passed
    assert "(31, 222)" in judge("screen.shows", moved, template=BUTTON, tolerance=10).message
    near = {"template": BUTTON, "tolerance": 10, "box": [31, 222, 60, 20]}
    assert judge("screen.shows", moved, **near).passed
    assert not judge("screen.shows", moved, **{**near, "box": [32, 222, 60, 20]}).passed
    assert not judge("screen.shows", moved, **{**near, "box": [0, 0, 400, 222]}).passed
    noisy = np.asarray(desktop()).astype(int) + DICE.integers(-8, 9, (300, 400, 3))
    noisy = noisy.clip(0, 255).astype(np.uint8)
    assert judge("screen.shows", png(noisy), template=BUTTON, tolerance=10).passed


def test_what_is_merely_like_a_template_is_not_it(judge: Judge):
    """Another label, none, half of it, another size, its negative."""
    plain = Image.new("RGB", (400, 300), (230, 230, 230))
    half = desktop(at=(370, 120))
    large = desktop().resize((440, 330))
    negative = Image.fromarray(255 - np.asarray(desktop()))
    for other in (desktop("Quit"), desktop(""), plain, half, large, negative):
        assert not judge("screen.shows", png(other), template=BUTTON, tolerance=10).passed


@pytest.mark.parametrize("seed", range(5))
def test_no_unrelated_area_passes_the_widest_tolerance(judge: Judge, seed: int):
    """What has nothing to do with it differs by its whole contrast; half of that is the limit."""
    dice = np.random.default_rng(seed)
    template = dice.integers(0, 256, (16, 16, 3)).astype(np.uint8)
    contrast = float(np.sqrt(((template - template.mean((0, 1))) ** 2).mean()))
    frame = png(dice.integers(0, 256, (120, 160, 3)).astype(np.uint8))
    flat = png(np.full((120, 160, 3), template.mean((0, 1)).astype(np.uint8)))
    for other in (frame, flat):
        found = judge("screen.shows", other, template=png(template), tolerance=contrast / 2)
        assert not found.passed


def test_a_template_that_anything_would_match_is_the_tasks_fault(judge: Judge):
    """Plain, or with a tolerance like its own contrast, or larger than where it is sought."""
    frame = png(desktop())
    flat = png(Image.new("RGB", (20, 20), (60, 60, 60)))
    for rule in (
        {"template": flat, "tolerance": 0},
        {"template": BUTTON, "tolerance": 60},
        {"template": BUTTON, "tolerance": -1},
        {"template": BUTTON, "tolerance": 10, "box": [0, 0, 59, 20]},
        {"template": BUTTON, "tolerance": 10, "box": [350, 0, 60, 20]},
        {"template": BUTTON, "tolerance": 10, "box": [0, 0, 0, 0]},
    ):
        with pytest.raises(GradingError):
            judge("screen.shows", frame, **rule)
    with pytest.raises(GradingError, match="share"):
        judge("screen.colour", frame, box=[0, 0, 9, 9], colour="#000000", tolerance=1, share=0)


@pytest.mark.parametrize("text", ["000000", "#000", "#00000g", "red", ""])
def test_what_is_no_colour_is_found_with_the_task(text: str):
    """Before anything is looked at."""
    with pytest.raises(ValueError, match=r".+"):
        _colour(text)
