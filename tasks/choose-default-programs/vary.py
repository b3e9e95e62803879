"""Two types of files and for each a program that is not its default at the start."""

from __future__ import annotations

import random
from typing import Any

_NAMES = {
    "org.xfce.mousepad.desktop": "Mousepad",
    "org.xfce.ristretto.desktop": "Ristretto Image Viewer",
    "libreoffice-calc.desktop": "LibreOffice Calc",
    "libreoffice-writer.desktop": "LibreOffice Writer",
    "chromium.desktop": "Chromium Web Browser",
}
_MOUSEPAD, _RISTRETTO, _CALC, _WRITER, _CHROMIUM = _NAMES
# What opens each at the start, and what else can.
_TEXTS = {
    "text/plain": (_MOUSEPAD, [_WRITER]),
    "text/csv": (_CALC, [_MOUSEPAD]),
    "text/html": (_CHROMIUM, [_MOUSEPAD, _WRITER]),
    "text/markdown": (_MOUSEPAD, [_WRITER]),
    "application/xml": (_MOUSEPAD, [_WRITER]),
    "application/json": (_MOUSEPAD, [_WRITER]),
}
_PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]


def vary(rng: random.Random) -> dict[str, Any]:
    """Types and programs, and what the other types have and keep."""
    picture, text = rng.choice(_PICTURES), rng.choice(list(_TEXTS))
    chosen = [text, picture]
    programs = [rng.choice(_TEXTS[text][1]), _CHROMIUM]
    starts = {one: start for one, (start, _) in _TEXTS.items()}
    starts |= dict.fromkeys(_PICTURES, _RISTRETTO)
    others = [one for one in starts if one not in chosen]
    return {
        "others": " ".join(others),
        "kept": [f"{one} {starts[one]}" for one in others],
        **{f"type_{n}": one for n, one in enumerate(chosen, 1)},
        **{f"desktop_{n}": one for n, one in enumerate(programs, 1)},
        **{f"program_{n}": _NAMES[one] for n, one in enumerate(programs, 1)},
    }
