"""A list that several desks kept in their own ways, and the rules for a clean one."""

from __future__ import annotations

import csv
import datetime
import io
import random
from typing import Any

_CLUBS = ["rowing club", "choir", "chess club", "garden society", "film club"]
_FOLDERS = ["Members", "Documents/lists", "Desktop/club", "data"]
_DESKS = ["office", "shop", "web", "phone", "harbour"]
_WAYS = {
    "dotted": "day.month.year (31.12.2024)",
    "european": "day/month/year (31/12/2024)",
    "american": "month/day/year (12/31/2024)",
    "iso": "year-month-day (2024-12-31)",
}
_FIRST = ["Ada", "Bruno", "Chloé", "Dario", "Elif", "Farid", "Greta", "Hanna", "Ines", "Jörg"]
_LAST = ["Berg", "Costa", "Dahl", "Eriksen", "Fontaine", "Große", "Hansen", "Ito", "Kovář", "Lind"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The desks, how each writes dates and fees, and the list's own seed."""
    desks = rng.sample(_DESKS, 4)
    ways = rng.sample(sorted(_WAYS), 4)
    comma = rng.choice(desks)
    return {
        "club": rng.choice(_CLUBS),
        "folder": rng.choice(_FOLDERS),
        "raw": rng.choice(["raw.csv", "all-desks.csv", "collected.csv"]),
        "clean": f"members-{rng.randint(100, 999)}.csv",
        "letter": rng.choice("AKMT"),
        "desks": [[desk, way, desk == comma] for desk, way in zip(desks, ways, strict=True)],
        "noise": rng.randrange(2**31),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The list and the rules."""
    return {"raw.csv": _raw(params).encode(), "README.txt": _rules(params).encode()}


def _rules(params: dict[str, Any]) -> str:
    letter = params["letter"]
    lines = "".join(
        f"  {desk}: {_WAYS[way]}, fees with a {'comma' if comma else 'point'}\n"
        for desk, way, comma in params["desks"]
    )
    return f"""The members of the {params["club"]}

{params["raw"]} is what four desks sent: member, name, desk, seen, fee.
Each desk writes dates and fees in its own way:
{lines}
Rules for the clean list:
- Empty lines, and lines in which every field is empty, are left out.
- A member is known by the number alone. Small and capital letters and
  blanks at its ends are no difference: {letter.lower()}-0041 is {letter}-0041.
  Every digit counts: {letter}-041 and {letter}-0041 are two members.
  Two members may have the same name.
- Of several lines of one member the one with the latest day in "seen"
  counts, with all that it says, and the others are left out.
- The columns are member, name, seen, fee, with this header. Numbers have
  a capital letter, days are written year-month-day (2024-12-31), fees
  have a point and two decimals. Names have no blanks at their ends.
- The order of the lines does not matter.
"""


def _raw(params: dict[str, Any]) -> str:
    rng = random.Random(params["noise"])
    letter = params["letter"]
    numbers = [f"{letter}-{n:04}" for n in rng.sample(range(10, 999), 26)]
    people = [[number, _name(rng)] for number in numbers]
    # The same digits but for a zero, and the same name: two members all the same.
    for number, name in rng.sample(people, 3):
        people.append([number.replace("-0", "-", 1), name])
    rows = []
    for number, name in people:
        days = [n * 31 for n in rng.sample(range(23), rng.choice([1, 1, 1, 2, 3]))]
        for day in days:
            desk, way, comma = rng.choice(params["desks"])
            seen = datetime.date(2023, 1, 2) + datetime.timedelta(days=day)
            # Of one member all in the first days of months, which can be read in two ways.
            if len(days) == 1:
                seen += datetime.timedelta(days=rng.randrange(20))
            fee = f"{rng.randint(900, 24000) / 100:.2f}"
            rows.append(
                [
                    _untidy(rng, number),
                    f" {name}" if rng.random() < 0.2 else name,
                    desk,
                    _written(seen, way),
                    fee.replace(".", ",") if comma else fee,
                ]
            )
    rng.shuffle(rows)
    for _ in range(3):
        rows.insert(rng.randint(1, len(rows) - 1), [""] * 5)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["member", "name", "desk", "seen", "fee"])
    for row in rows:
        writer.writerow(row)
        if rng.random() < 0.1:
            text.write("\n")
    return text.getvalue()


def _name(rng: random.Random) -> str:
    first, last = rng.choice(_FIRST), rng.choice(_LAST)
    return f"{last}, {first}" if rng.random() < 0.3 else f"{first} {last}"


def _untidy(rng: random.Random, number: str) -> str:
    return rng.choice([number, number, number.lower(), f"{number} ", f" {number.lower()}"])


def _written(day: datetime.date, way: str) -> str:
    form = {"dotted": "%d.%m.%Y", "european": "%d/%m/%Y", "american": "%m/%d/%Y", "iso": "%Y-%m-%d"}
    return day.strftime(form[way])
