"""A list with cancelled rows, a second currency and a row entered twice; notes say what counts."""

from __future__ import annotations

import random
from typing import Any

from openpyxl import Workbook
from openpyxl.utils import get_column_letter

from cua_gym.task.authoring import workbook_bytes

# Sheet, one of its rows, who it is about, and two states that count.
_THEMES = [
    ("Orders", "order", "Customer", ["shipped", "packed"]),
    ("Bookings", "booking", "Guest", ["paid", "arrived"]),
    ("Invoices", "invoice", "Client", ["paid", "sent"]),
]
_NAMES = ["Aydin", "Baker", "Costa", "Dubois", "Eriksen", "Fischer", "Gupta", "Haddad", "Ivanov"]
# A rate of two decimals makes whole amounts exact cents.
_CURRENCIES = {"USD": (86, 97), "GBP": (113, 121), "CHF": (101, 108)}


def vary(rng: random.Random) -> dict[str, Any]:
    """The rows as id, name, state, currency, amount; where they and the results stand."""
    sheet, item, who, states = rng.choice(_THEMES)
    currency = rng.choice(sorted(_CURRENCIES))
    first = rng.randint(1000, 8000)
    rows = [
        [first + n, rng.choice(_NAMES), rng.choice(states), "EUR", rng.randint(500, 99999) / 100]
        for n in range(rng.randint(28, 40))
    ]
    places = rng.sample(range(len(rows)), rng.randint(13, 17))
    for place in places[:5]:
        rows[place][2] = "cancelled"
    for place in places[3:11]:  # two of them cancelled too
        rows[place][3:] = [currency, rng.randint(20, 900)]
    twice = rows[places[12]]
    rows.insert(rng.randint(places[12] + 2, len(rows) + 2), list(twice))
    columns = [item.capitalize(), who, "State", "Currency", "Amount"]
    order = [0, *rng.sample([1, 2, 3], 3), 4]
    top = rng.choice([1, 3])
    count_row = rng.randint(2, 4)
    column = rng.choice("BCD")
    params = {
        "sheet": sheet,
        "item": item,
        "items": f"{item}s",
        "currency": currency,
        "rate": rng.randint(*_CURRENCIES[currency]) / 100,
        "twice": twice,
        "rows": rows,
        "columns": columns,
        "order": order,
        "top": top,
        "count_cell": f"{column}{count_row}",
        "total_cell": f"{column}{count_row + rng.randint(1, 3)}",
        "file": f"{sheet.lower()}-{rng.randint(100, 999)}.xlsx",
    }
    return {**params, **_formulas(params)}


def _formulas(params: dict[str, Any]) -> dict[str, str]:
    """What a person who read the notes enters."""

    def column(what: int) -> str:
        letter = get_column_letter(params["order"].index(what) + 1)
        return f"{params['sheet']}.{letter}{params['top'] + 1}:{letter}{last}"

    last = params["top"] + len(params["rows"])
    valid = f'{column(2)};"<>cancelled"'
    euros, others = (
        f'SUMIFS({column(4)};{valid};{column(3)};"{currency}")'
        for currency in ("EUR", params["currency"])
    )
    return {
        "count_formula": f"=COUNTIFS({valid})-1",
        "total_formula": f"={euros}+{params['rate']}*{others}-{params['twice'][4]}",
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The workbook."""
    book = Workbook()
    sheet = book.active
    sheet.title = params["sheet"]
    if params["top"] > 1:
        sheet["A1"] = f"All {params['items']}"
    for place, what in enumerate(params["order"], 1):
        sheet.cell(params["top"], place, params["columns"][what])
        for number, row in enumerate(params["rows"], params["top"] + 1):
            sheet.cell(number, place, row[what])
        sheet.column_dimensions[get_column_letter(place)].width = 13
    notes = book.create_sheet("Notes")
    notes["A1"] = f"Cancelled {params['items']} do not count."
    notes["A2"] = f"{params['columns'][0]} {params['twice'][0]} was entered twice; it counts once."
    notes["A3"] = f"1 {params['currency']} is {params['rate']} EUR."
    summary = book.create_sheet("Summary")
    for cell, text in (
        (params["count_cell"], f"{params['items'].capitalize()} that count"),
        (params["total_cell"], "Total in EUR"),
    ):
        summary[f"A{cell[1:]}"] = text
    summary.column_dimensions["A"].width = 24
    return {"book.xlsx": workbook_bytes(book)}
