"""A label with four codes, drawn; the codes are nowhere in the machine but in its pixels."""

from __future__ import annotations

import io
import random
from typing import Any

from PIL import Image, ImageDraw, ImageFont

# Without characters that look alike in many fonts.
_LETTERS = "ACDEFHJKLMNPRTUVWXY347"
_WORDS = ["DEPOT", "ORDER", "SHELF", "BATCH", "ROUTE", "LOCKER"]


def vary(rng: random.Random) -> dict[str, Any]:
    """Four words with a code each, and which of them is asked for."""
    words = rng.sample(_WORDS, 4)
    codes = ["".join(rng.choice(_LETTERS) for _ in range(8)) for _ in words]
    asked = rng.randrange(4)
    return {
        "word": words[asked],
        "code": codes[asked],
        "words": words,
        "codes": codes,
        "noise": rng.randrange(2**31),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The label as a picture with a speckled ground."""
    rng = random.Random(params["noise"])
    picture = Image.new("RGB", (900, 520), (236, 226, 204))
    draw = ImageDraw.Draw(picture)
    for _ in range(1500):
        x, y = rng.randrange(900), rng.randrange(520)
        shade = rng.randint(190, 225)
        draw.ellipse((x, y, x + 3, y + 3), fill=(shade, shade - 8, shade - 25))
    draw.rectangle((20, 20, 879, 499), outline=(60, 50, 40), width=4)
    for row, (word, code) in enumerate(zip(params["words"], params["codes"], strict=True)):
        y = 55 + 110 * row + rng.randint(-8, 8)
        draw.text((60, y), word, font=ImageFont.load_default(46), fill=(90, 70, 50))
        draw.text((400, y), code, font=ImageFont.load_default(58), fill=(30, 30, 60))
    png = io.BytesIO()
    picture.save(png, "PNG")
    return {"label.png": png.getvalue()}
