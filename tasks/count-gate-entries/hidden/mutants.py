"""Every tempting count, and the same report in another order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Reports made of the solved one."""
    head, *rows = solved["report"].text().splitlines()
    total = int(solved["answer"].text())

    def table(*lines: str) -> bytes:
        return "".join(f"{line}\n" for line in lines).encode()

    yield keeps("the gates in another order", report=table(head, *reversed(rows)))
    yield breaks("the total as a line of its own", report=table(head, *rows, f"total,{total}"))
    yield breaks("without a header", report=table(*rows))
    yield breaks("a gate left out", report=table(head, *rows[1:]))
    yield breaks("the total of a gate less", answer=str(total - int(rows[0].split(",")[1])))
    yield breaks("the total in words around it", answer=f"{total} entries in all")
