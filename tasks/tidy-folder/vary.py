"""Names of the files."""

from __future__ import annotations

import random
from typing import Any

_TOPICS = ["harbour", "library", "bridge", "garden", "theatre", "station"]


def vary(rng: random.Random) -> dict[str, Any]:
    """One file to move, one to rename, one to leave alone."""
    topic = rng.choice(_TOPICS)
    number = rng.randint(10, 99)
    return {
        "topic": topic,
        "moved": f"minutes-{number}.txt",
        "old": f"{topic}-draft.txt",
        "new": f"{topic}-final-{rng.randint(2, 9)}.txt",
        "other": f"minutes-{number + rng.randint(1, 9)}.txt",
    }
