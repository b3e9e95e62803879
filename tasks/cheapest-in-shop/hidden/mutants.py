"""Articles that are cheaper at first sight, and other ways to name the right one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Every other article's number."""
    number = solved["answer"].text()
    yield keeps("in small letters", answer=number.lower())
    for other, name, *_ in params["articles"]:
        if other != number:
            yield breaks(f"{other} instead", answer=other)
        else:
            yield breaks("its name", answer=name)
