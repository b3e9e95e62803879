"""Words, prices and names that need accents, other scripts and emoji."""

from __future__ import annotations

import random
from typing import Any

_GREETINGS = [
    "你好，{name}！",
    "Grüße an {name}",
    "Olá, {name}",
    "こんにちは、{name}",
    "¡Hola, {name}!",
]
_NAMES = ["José", "Zoë", "Søren", "Łukasz", "Åsa", "Müller", "Çelik", "Nguyễn"]
_SENTENCES = [
    "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg.",
    "Voix ambiguë d'un cœur qui, au zéphyr, préfère les jattes de kiwis.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.",
    "Pchnąć w tę łódź jeża lub ośm skrzyń fig.",
]
_SIGNS = ["😀", "🚀", "🌧", "🍐", "🎹", "🐢"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The four lines and the file's name."""
    price = f"{rng.randint(11, 99)},{rng.randint(10, 99)} € + {rng.randint(2, 9)} %"
    return {
        "greeting": rng.choice(_GREETINGS).format(name=rng.choice(_NAMES)),
        "sentence": rng.choice(_SENTENCES),
        "price": f"{price} ~ [{rng.randint(100, 999)}]",
        "sign": f"-- {rng.choice(_NAMES)} {rng.choice(_SIGNS)}",
        "file": f"note-{rng.randint(100, 999)}.txt",
    }
