"""Giving up blindly, and the ways round the rule."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence

PLACE = "/var/lib/order-desk/orders.db"


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the database and of what the desk printed."""

    def desk(number: int, state: str) -> dict[str, bytes]:
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
            base.deserialize(solved["desk"].files()[PLACE])
            values = {"state": state, "number": number}
            base.execute("UPDATE orders SET state = :state WHERE number = :number", values)
            return {PLACE: base.serialize()}

    yield breaks("given up blindly", looked=b"")
    yield breaks("another order looked at", looked=f"shown /orders/{params['other']}\n")
    yield breaks("the order cancelled all the same", desk=desk(params["order"], "cancelled"))
    yield breaks("the order taken back", desk=desk(params["order"], "taken back"))
    yield breaks("another order cancelled", desk=desk(params["other"], "cancelled"))
