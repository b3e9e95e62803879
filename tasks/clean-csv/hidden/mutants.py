"""Lists that break one rule, and the right one written in other ways."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved list."""
    rows = list(csv.reader(io.StringIO(solved["clean"].text(), newline="")))
    head, *lines = rows

    def day_first(row: list[str]) -> list[str]:
        year, month, day = row[2].split("-")
        return [*row[:2], f"{year}-{day}-{month}" if int(day) < 13 else row[2], row[3]]

    yield keeps("in another order", clean=_csv([head, *lines[::-1]]))
    yield keeps("with a byte order mark", clean=b"\xef\xbb\xbf" + _csv(rows))
    yield keeps("every field in quotes", clean=_csv(rows, csv.QUOTE_ALL))
    yield breaks("without a header", clean=_csv(lines))
    yield breaks(
        "numbers in small letters", clean=_csv([head, *([r[0].lower(), *r[1:]] for r in lines)])
    )
    yield breaks("days and months swapped", clean=_csv([head, *map(day_first, lines)]))
    yield breaks("a member left out", clean=_csv(rows[:-1]))
    yield breaks("a member twice", clean=_csv([*rows, rows[-1]]))
    twins = [r for r in lines if len(r[0]) == 5]
    yield breaks("a near-duplicate left out", clean=_csv([r for r in rows if r != twins[0]]))
    yield breaks("with semicolons", clean=_csv(rows, delimiter=";"))
    yield breaks(
        "fees with a comma", clean=_csv([head, *([*r[:3], r[3].replace(".", ",")] for r in lines)])
    )
    yield breaks("the column desk kept", clean=_csv([[*r[:2], "web", *r[2:]] for r in rows]))


def _csv(rows: list[list[str]], quoting: Any = csv.QUOTE_MINIMAL, delimiter: str = ",") -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
