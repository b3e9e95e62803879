"""The clean list, and the lists that come of a rule not kept."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Callable
from typing import Any

_FORMS = {"dotted": "%d.%m.%Y", "european": "%d/%m/%Y", "american": "%m/%d/%Y", "iso": "%Y-%m-%d"}

Row = list[str]


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Rows as a check has them, with the header."""
    rows = [row for row in csv.reader(io.StringIO(inputs["raw.csv"].decode())) if any(row)][1:]
    ways = {desk: way for desk, way, _ in params["desks"]}

    def right(row: Row) -> datetime.date:
        return datetime.datetime.strptime(row[3], _FORMS[ways[row[2]]]).date()

    def day_first(row: Row) -> datetime.date:
        """All slashes read as day/month where that is a day."""
        if "/" in row[3]:
            try:
                return datetime.datetime.strptime(row[3], "%d/%m/%Y").date()
            except ValueError:
                return datetime.datetime.strptime(row[3], "%m/%d/%Y").date()
        return right(row)

    def number(row: Row) -> str:
        return row[0].strip().upper()

    def without_zeros(row: Row) -> str:
        letter, _, digits = number(row).partition("-")
        return f"{letter}-{int(digits)}"

    def listed(
        key: Callable[[Row], str],
        day: Callable[[Row], datetime.date],
        order: Callable[[int, Row], Any],
    ) -> list[list[Any]]:
        held: dict[str, tuple[Any, Row]] = {}
        for at, row in enumerate(rows):
            rank = order(at, row)
            if key(row) not in held or rank > held[key(row)][0]:
                held[key(row)] = rank, row
        lines: list[list[Any]] = [
            [number(r), r[1].strip(), day(r).isoformat(), float(r[4].replace(",", "."))]
            for _, r in held.values()
        ]
        return [["member", "name", "seen", "fee"], *lines]

    clean = listed(number, right, lambda _, row: right(row))
    tempting = [
        listed(without_zeros, right, lambda _, row: right(row)),
        listed(number, day_first, lambda _, row: day_first(row)),
        listed(number, right, lambda at, _: at),
        listed(number, right, lambda at, _: -at),
        listed(lambda row: row[1].strip(), right, lambda _, row: right(row)),
        listed(lambda row: row[0], right, lambda _, row: right(row)),
    ]
    return {
        "clean": clean,
        "members": [line[0] for line in clean[1:]],
        # By chance a rule may make no difference.
        "tempting": [table for table in tempting if sorted(table) != sorted(clean)],
    }
