"""A number that is not the one at the start, which is 1."""

from __future__ import annotations

import random
from typing import Any


def vary(rng: random.Random) -> dict[str, Any]:
    """How many workspaces."""
    return {"count": rng.choice([2, 3, 4, 5, 6, 7, 8, 9])}
