"""Lists that lack a change, and the right one written in other ways."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved list."""
    head, *rows = list(csv.reader(io.StringIO(solved["list"].text(), newline="")))
    order, late = params["moved"]
    board = {row[2]: row for part in params["boards"] for row in part}
    other, gate = params["turned"]
    about = {number: (who, str(count)) for number, who, count in params["table"]}

    def with_column(at: int, wanted: str, value: str) -> bytes:
        return _csv(
            [head, *([*r[:at], value, *r[at + 1 :]] if r[2] == wanted else r for r in rows)]
        )

    yield keeps("every field in quotes", list=_csv([head, *rows], csv.QUOTE_ALL))
    yield keeps("with a byte order mark", list=b"\xef\xbb\xbf" + _csv([head, *rows]))
    yield breaks(f"not moved to {late}", list=with_column(0, order, board[order][0]))
    yield breaks(f"not turned to {gate}", list=with_column(1, other, board[other][1]))
    gone = board[params["cancelled"]]
    yield breaks(
        "the cancelled one kept", list=_csv([head, *sorted([*rows, [*gone, *about[gone[2]]]])])
    )
    yield breaks("the board's order", list=_csv([head, rows[1], rows[0], *rows[2:]]))
    yield breaks("without a header", list=_csv(rows))
    yield breaks("without customers", list=_csv([[*r[:3], r[4]] for r in [head, *rows]]))
    yield breaks("the morning alone", list=_csv([head, *rows[:3]]))
    yield breaks("the goods of another order", list=with_column(4, rows[0][2], "49"))


def _csv(rows: list[list[str]], quoting: Any = csv.QUOTE_MINIMAL) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
