"""Other ways to a total, right and wrong."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from openpyxl import load_workbook

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence
from cua_gym.task.authoring import workbook_bytes


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the solved workbook."""
    data = solved["book"].bytes()
    total = load_workbook(io.BytesIO(data), data_only=True)["Orders"]["F2"].value
    amounts = [(row[2], row[3]) for row in params["rows"]]
    others = round(sum(amount for region, amount in amounts if region != params["region"]), 2)

    def book(value: Any, cell: str = "F2", **more: Any) -> bytes:
        workbook = load_workbook(io.BytesIO(data))
        workbook["Orders"]["F2"] = None
        for name, content in {cell: value, **more}.items():
            workbook["Orders"][name] = content
        return workbook_bytes(workbook)

    parts = [f"D{n}" for n, (region, _) in enumerate(amounts, 2) if region == params["region"]]
    yield keeps("a number that was typed", book=book(total))
    yield keeps("a sum of single cells", book=book(f"={'+'.join(parts)}"))
    yield breaks("a formula of all rows", book=book(f"=SUM(D2:D{len(amounts) + 1})"))
    yield breaks("the sum of all", book=book(round(total + others, 2)))
    yield breaks("the other regions", book=book(others))
    yield breaks("a cent more", book=book(round(total + 0.01, 2)))
    yield breaks("rounded", book=book(round(total)))
    yield breaks("text that looks like it", book=book(f"{total:.2f}"))
    yield breaks("one row lower", book=book(total, "F3"))
    yield breaks("with a helper column", book=book(total, E2=params["region"]))
    yield breaks("an amount altered too", book=book(total, D2=1))
