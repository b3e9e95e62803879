"""The note in other forms of the same characters, and without them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Texts made of the solved note."""
    note = solved["note"].text()
    lines = note.splitlines()
    yield breaks("question marks for what is not ASCII", note=note.encode("ascii", "replace"))
    plain = unicodedata.normalize("NFD", note).encode("ascii", "ignore")
    yield breaks("without accents and signs", note=plain)
    yield breaks("UTF-16", note=note.encode("utf-16"))
    yield breaks("another order", note="\n".join(reversed(lines)))
    yield breaks("a line twice", note="\n".join([*lines, lines[-1]]))
    yield breaks("two lines in one", note=" ".join(lines))
