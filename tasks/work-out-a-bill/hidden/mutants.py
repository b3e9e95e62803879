"""The amount written in other ways, and amounts that are almost right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Answers made of the right one."""
    answer = solved["answer"].text().strip()
    exact = Decimal(params["amounts"]["paid"])
    yield keeps("with the unit", answer=f"{answer} EUR")
    yield keeps("with the unit at once", answer=f"{answer}EUR")
    yield breaks("another unit", answer=f"{answer} USD")
    yield breaks("with a comma", answer=answer.replace(".", ","))
    yield breaks("a sentence around it", answer=f"The amount to be paid is {answer} EUR.")
    yield breaks("not rounded", answer=str(exact))
    yield breaks("in whole euros", answer=str(exact.quantize(Decimal(1))))
    for cents in (-1, 1):
        yield breaks(f"{cents} cent", answer=str(Decimal(answer) + Decimal(cents) / 100))
    for name, amount in params["amounts"].items():
        if name != "paid":
            yield breaks(name, answer=str(Decimal(amount).quantize(Decimal("0.01"))))
    tax = 1 + Decimal(params["tax"]) / 100
    yield breaks("without tax", answer=str((exact / tax).quantize(Decimal("0.01"))))
    yield breaks("the bill changed", scope_end=_stray(solved))


def _stray(solved: Evidence) -> bytes:
    return b"f\t644\tuser\tuser\t3\tDocuments/paid.txt\0\0" + solved["scope_end"].bytes()
