"""One column of the report, for what is right of a report that is not."""

from __future__ import annotations

import csv
import io

from cua_gym.grading.check import Fails, Item, Verdict, check, verdict


@check
def column(
    item: Item, *, header: str, expected: dict[str, float], absolute: float = 0.0
) -> Verdict:
    """The column of this header has exactly these countries with these numbers.

    It refuses a country more, less or twice, and an empty cell for 0.
    """
    rows = list(csv.reader(io.StringIO(item.text(), newline=""), strict=True))
    if not rows or header not in rows[0] or "country" not in rows[0]:
        raise Fails(f"no columns country and {header}", seen=rows[:1])
    name, value = rows[0].index("country"), rows[0].index(header)
    seen = [(row[name], row[value]) for row in rows[1:] if len(row) > max(name, value)]
    same = sorted(country for country, _ in seen) == sorted(expected)
    for country, text in seen if same else []:
        try:
            same = same and abs(float(text) - expected[country]) <= absolute
        except ValueError as error:
            raise Fails(f"{country}: {text!r} is no number", seen=seen) from error
    return verdict(same, f"the column {header}", seen=seen, wanted=expected)
