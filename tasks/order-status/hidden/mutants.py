"""Answers of those who stopped a page too early, and a desk that was not left as it was."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence

PLACE = "/var/lib/order-desk/orders.db"


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved answer and the desk's database."""
    left, number = solved["answer"].text().split()
    prices = {article: cents for article, _, cents in params["articles"]}
    [row] = [row for row in params["orders"] if row[0] == params["order"]]
    total = f"{prices[row[2]] * row[3] / 100:.2f}"
    paid = f"{float(total) - float(left):.2f}"
    yield keeps("two blanks", answer=f"{left}  {number}")
    yield breaks("the total", answer=f"{total} {number}")
    yield breaks("what was paid", answer=f"{paid} {number}")
    yield breaks("the namesake's order", answer=f"{left} {params['other']}")
    yield breaks("the amount alone", answer=left)
    yield breaks("the other way about", answer=f"{number} {left}")
    yield breaks("the order cancelled", desk={PLACE: _cancelled(solved, params["order"])})


def _cancelled(solved: Evidence, number: int) -> bytes:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.deserialize(solved["desk"].files()[PLACE])
        base.execute("UPDATE orders SET state = 'cancelled' WHERE number = ?", (number,))
        return base.serialize()
