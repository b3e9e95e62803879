"""The other codes of the label, and the right one with something else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Texts made of the values of the seed."""
    code, word = params["code"], params["word"]
    for other in params["codes"]:
        if other != code:
            yield breaks(f"the code {other}", code=other)
    yield keeps("a space behind it", code=f"{code} \n")
    yield breaks("with its word", code=f"{word} {code}\n")
    yield breaks("all codes", code="\n".join(params["codes"]))
    yield breaks("in small letters", code=code.lower())
