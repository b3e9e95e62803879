"""Six short notes in tabs; four or five of them belong together, one has a look-alike."""

from __future__ import annotations

import random
from typing import Any

_TOPICS = ["harbour", "kitchen", "garden", "travel", "market", "library", "workshop", "orchard"]
_FOLDERS = ["Notes", "Documents/notes", "Papers", "Desktop/collected"]
_SEPARATORS = ["-----", "=====", "* * *", "~~~~~", "+++"]
_RESULTS = ["together", "all-notes", "joined", "book"]
_SENTENCES = [
    "Ask {name} about the {thing}.",
    "{name} has {number} of the {thing}s.",
    "The {thing} costs {number} euros.",
    "{number} days until the {thing} comes.",
    "Do not forget the {thing}; {name} needs it.",
    "Room {number}, second {thing} on the left.",
]
_NAMES = ["Ines", "Tomas", "Yuki", "Ada", "Malik", "Sofia", "Jonas", "Priya"]
_THINGS = ["ladder", "lamp", "crate", "ticket", "map", "boat", "key", "chair", "basket", "letter"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The notes by tab, which of them to join, and in which order."""
    topics = rng.sample(_TOPICS, 5)
    # The look-alike of the first is not asked for.
    files = [f"{topic}.txt" for topic in topics]
    look_alike = f"{topics[0]}-{rng.choice(['old', 'draft', 'copy'])}.txt"
    wanted = [files[0], *rng.sample(files[1:], rng.choice([3, 4]))]
    wanted = rng.sample(wanted, len(wanted))
    texts = {name: _text(rng, name) for name in files}
    stray = _sentence(rng)
    while any(stray in text for text in texts.values()):
        stray = _sentence(rng)
    texts[look_alike] = texts[files[0]].replace("\n", f"\n{stray}\n", 1)
    # Somewhere before the last note, so that it matters.
    open_end = rng.choice(wanted[:-1])
    texts[open_end] = texts[open_end].removesuffix("\n")
    tabs = rng.sample([*files, look_alike], 6)
    return {
        "folder": rng.choice(_FOLDERS),
        "result": f"{rng.choice(_RESULTS)}-{rng.randint(10, 99)}.txt",
        "separator": rng.choice(_SEPARATORS),
        "count": len(wanted),
        "order": "\n".join(wanted),
        "look_alike": look_alike,
        "stray": stray,
        **{f"tab_{n}": name for n, name in enumerate(tabs, 1)},
        **{f"text_{n}": texts[name] for n, name in enumerate(tabs, 1)},
    }


def _text(rng: random.Random, name: str) -> str:
    lines = [name.removesuffix(".txt").capitalize()]
    lines += [_sentence(rng) for _ in range(rng.randint(2, 4))]
    if rng.random() < 0.5:
        lines.insert(rng.randint(1, len(lines) - 1), "")
    return "\n".join(lines) + "\n"


def _sentence(rng: random.Random) -> str:
    return rng.choice(_SENTENCES).format(
        name=rng.choice(_NAMES), thing=rng.choice(_THINGS), number=rng.randint(3, 99)
    )
