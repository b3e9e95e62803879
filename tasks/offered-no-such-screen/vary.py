"""A mode that the monitor does not offer, or a second monitor that is not there."""

from __future__ import annotations

import random
from typing import Any

_MODES = ["2560x1440", "2560x1600", "3440x1440", "3840x2160", "1920x1200", "2048x1536"]


def vary(rng: random.Random) -> dict[str, Any]:
    """What is wished for, in words, and what to look for in which list of the settings."""
    mode, side = rng.choice(_MODES), rng.choice(["left", "right"])
    wishes = [
        ("resolution", mode, f"Set the resolution of the screen to {mode}"),
        (
            "monitor",
            "second",
            f"Put the second monitor to the {side} of the first one, so that the desktop extends "
            "over both",
        ),
    ]
    kind, value, wish = rng.choice(wishes)
    return {"kind": kind, "value": value, "wish": wish}
