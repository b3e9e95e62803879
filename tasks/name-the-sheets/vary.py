"""Four sheets with titles in their first cells; what they are to be ordered by."""

from __future__ import annotations

import random
from typing import Any

from openpyxl import Workbook

from cua_gym.task.authoring import workbook_bytes

_TITLES = [
    "Boat club", "Choir", "Chess evenings", "Garden friends", "Old town walks", "Repair shop",
    "Reading circle", "Swimming", "Theatre group", "Weather station", "Youth kitchen",
]  # fmt: skip
_ITEMS = ["Rent", "Tools", "Paper", "Travel", "Food", "Repairs", "Music", "Lamps", "Insurance"]
_FOLDERS = ["Documents", "Documents/accounts", "Desktop/clubs", "Office"]
_RULES = {
    "alphabet": "by the alphabet",
    "earliest": 'by the year in the row "Founded", the oldest first',
    "latest": 'by the year in the row "Founded", the youngest first',
    "smallest": 'by the number in the row "Total", the smallest first',
    "largest": 'by the number in the row "Total", the largest first',
}


def vary(rng: random.Random) -> dict[str, Any]:
    """The sheets as rows, in the order in which they are found."""
    titles = rng.sample(_TITLES, 4)
    years = rng.sample(range(1890, 2020), 4)
    sheets = []
    totals: list[int] = []
    for title, year in zip(titles, years, strict=True):
        amounts = [rng.randint(20, 900) for _ in range(rng.randint(3, 7))]
        while sum(amounts) in totals:
            amounts[0] += 1
        totals.append(sum(amounts))
        items = zip(rng.sample(_ITEMS, len(amounts)), amounts, strict=True)
        head: list[list[Any]] = [[title, ""], ["Founded", year], ["", ""]]
        sheets.append([*head, *map(list, items), ["Total", sum(amounts)]])
    orders = {
        "alphabet": sorted(titles),
        "earliest": _by(titles, years),
        "latest": _by(titles, years)[::-1],
        "smallest": _by(titles, totals),
        "largest": _by(titles, totals)[::-1],
    }
    # Some order that the sheets are not in already.
    rule = rng.choice([name for name, order in orders.items() if order != titles])
    folder = rng.choice(_FOLDERS)
    return {
        "folder": folder,
        "file": f"{rng.choice(['clubs', 'accounts', 'groups'])}-{rng.randint(10, 99)}.xlsx",
        "rule": _RULES[rule],
        "sheets": sheets,
        "order": orders[rule],
        **{f"title_{n}": title for n, title in enumerate(titles, 1)},
    }


def _by(titles: list[str], numbers: list[int]) -> list[str]:
    return [title for _, title in sorted(zip(numbers, titles, strict=True))]


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The workbook."""
    book = Workbook()
    book.remove(book.active)
    for number, rows in enumerate(params["sheets"], 1):
        sheet = book.create_sheet(f"Sheet{number}")
        sheet.column_dimensions["A"].width = 20
        for row in rows:
            sheet.append([None if cell == "" else cell for cell in row])
    return {"book.xlsx": workbook_bytes(book)}
