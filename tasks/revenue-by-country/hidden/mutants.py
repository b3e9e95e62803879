"""What a query gives that forgets something, and the same table written otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Reports made of the solved one."""
    head, *rows = solved["report"].text().splitlines()
    cells = [row.split(",") for row in rows]

    def table(*lines: str) -> bytes:
        return "".join(f"{line}\n" for line in lines).encode()

    yield keeps("the countries in another order", report=table(head, *reversed(rows)))
    yield keeps(
        "quoted names", report=table(head, *(f'"{c}",{n},{revenue}' for c, n, revenue in cells))
    )
    yield breaks(
        "those without a country left out",
        report=table(head, *(row for row in rows if not row.startswith("unknown,"))),
    )
    yield breaks(
        "no name for no country",
        report=table(head, *(row.replace("unknown,", ",") for row in rows)),
    )
    yield breaks(
        "orders and revenue changed about",
        report=table(head, *(f"{c},{revenue},{n}" for c, n, revenue in cells)),
    )
    yield breaks("without a header", report=table(*rows))
    yield breaks(
        "whole units of money",
        report=table(head, *(f"{c},{n},{int(float(revenue))}" for c, n, revenue in cells)),
    )
