"""Where the button appears, one place after the other."""

from __future__ import annotations

import random
from typing import Any


def vary(rng: random.Random) -> dict[str, Any]:
    """The seed of the places."""
    return {"seed": rng.randrange(1 << 31)}
