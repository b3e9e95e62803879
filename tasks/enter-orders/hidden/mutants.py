"""Desks in which somebody entered too much, for the wrong customer, or as it was first said."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence

PLACE = "/var/lib/order-desk/orders.db"
INSERT = (
    "INSERT INTO orders (customer, article, quantity, placed, delivery, state, reference) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved desk's database by one statement more."""

    def desk(statement: str, *values: Any) -> dict[str, bytes]:
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
            base.deserialize(solved["desk"].files()[PLACE])
            base.execute(statement, values)
            return {PLACE: base.serialize()}

    [first], [second] = params["first"], params["second"]
    reference = params["first_reference"]
    yield keeps(
        "a wrong one cancelled again",
        desk=desk(INSERT, *first[:2], first[2] + 1, *first[3:5], "cancelled", reference),
    )
    yield keeps(
        "in another order",
        desk=desk("UPDATE orders SET number = number + 5 WHERE reference = ?", reference),
    )
    yield breaks("the cancelled one too", desk=desk(INSERT, *second, params["cancelled"]))
    yield breaks("what is there once more", desk=desk(INSERT, *params["orders"][-1][1:6], "open",
                                                      params["there"]))  # fmt: skip
    yield breaks("one twice", desk=desk(INSERT, *first, reference))
    yield breaks("one without its reference", desk=desk(INSERT, *second, ""))
    yield breaks(
        "for the namesake",
        desk=desk(
            "UPDATE orders SET customer = ? WHERE reference = ?", params["namesake"], reference
        ),
    )
    yield breaks(
        "as it was first said",
        desk=desk("UPDATE orders SET quantity = 1 WHERE reference = ?", params["second_reference"]),
    )
    yield breaks(
        "another order cancelled",
        desk=desk("UPDATE orders SET state = 'cancelled' WHERE number = ?", params["last"]),
    )
