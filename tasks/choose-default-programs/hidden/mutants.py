"""Other programs, other types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """What the session says of the two types and of their neighbours."""
    first, second = (solved[name].text().strip() for name in ("first", "second"))
    others = solved["others"].text()
    type_1, type_2 = params["type_1"], params["type_2"]
    kept = next(line for line in others.split("\n") if line.startswith("image/"))
    changed = f"{kept.partition(' ')[0]} gimp.desktop"

    yield keeps("without a line's end", first=first, second=second)
    yield breaks("the terminal instead", first="xfce4-terminal.desktop\n")
    yield breaks("no program at all", second="")
    yield breaks("the first type alone", second=start["second"])
    yield breaks("the second type alone", first=start["first"])
    yield breaks("a program and a list", first=f"{first};{start['first'].text().strip()};\n")
    yield breaks("a neighbour too", others=others.replace(kept, changed))
    yield breaks("all neighbours too", others=others.replace("org.xfce.ristretto", "chromium"))
    yield breaks("as settings have it", first=f"{type_1}={first}\n", second=f"{type_2}={second}\n")
