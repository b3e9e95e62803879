"""Orders without prices, and the price lists of two years in an order of their own."""

from __future__ import annotations

import random
from typing import Any

from openpyxl import Workbook
from openpyxl.utils import get_column_letter

from cua_gym.task.authoring import workbook_bytes

_THINGS = [
    "bolt", "hinge", "screw", "bracket", "washer", "rail", "latch", "knob", "hook", "clamp",
    "caster", "spring", "valve", "gasket",
]  # fmt: skip


def vary(rng: random.Random) -> dict[str, Any]:
    """Codes, prices, orders, and where everything stands."""
    year = rng.randint(2021, 2025)
    things = rng.sample(_THINGS, rng.randint(9, 13))
    # Some codes begin with another one: only the whole code will do.
    codes = [f"{rng.choice('ABC')}{n}" for n in rng.sample(range(10, 99), len(things) - 2)]
    codes += [f"{codes[0]}{rng.randint(1, 9)}", f"{codes[1]}{rng.randint(1, 9)}"]
    rng.shuffle(codes)
    prices = {}
    for listed in (year, year - 1):
        order = rng.sample(range(len(codes)), len(codes))
        prices[str(listed)] = [
            [codes[n], things[n].capitalize(), rng.randint(110, 9900) / 100] for n in order
        ]
    orders = [[700 + n, rng.choice(codes), rng.randint(1, 40)] for n in range(rng.randint(22, 38))]
    top = rng.choice([1, 2, 3])
    first, last = top + 1, top + len(orders)
    columns = rng.choice([["Order", "Code", "Quantity"], ["Order", "Quantity", "Code"]])
    listing = rng.choice([["Code", "Article", "Price"], ["Article", "Price", "Code"]])
    asked = rng.choice([year, year - 1])
    code, quantity = (get_column_letter(columns.index(name) + 1) for name in ("Code", "Quantity"))
    ends = [
        f"$'Prices {asked}'.${letter}$2:${letter}${len(codes) + 1}"
        for letter in (get_column_letter(listing.index(name) + 1) for name in ("Price", "Code"))
    ]
    return {
        "year": asked,
        "years": rng.sample([year, year - 1], 2),
        "prices": prices,
        "orders": orders,
        "columns": columns,
        "listing": listing,
        "top": top,
        "price_cells": f"D{first}:D{last}",
        "amount_cells": f"E{first}:E{last}",
        "total_cell": f"H{rng.randint(2, 6)}",
        "price_formula": f"=INDEX({ends[0]};MATCH({code}{first};{ends[1]};0))",
        "amount_formula": f"={quantity}{first}*D{first}",
        "total_formula": f"=SUM(E{first}:E{last})",
        "file": f"hardware-{rng.randint(100, 999)}.xlsx",
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The workbook."""
    book = Workbook()
    sheet = book.active
    sheet.title = "Orders"
    top = params["top"]
    if top > 1:
        sheet["A1"] = "Orders of the hardware shop"
    for place, name in enumerate([*params["columns"], "Price", "Amount"], 1):
        sheet.cell(top, place, name)
    for number, order in enumerate(params["orders"], top + 1):
        given = dict(zip(("Order", "Code", "Quantity"), order, strict=True))
        for place, name in enumerate(params["columns"], 1):
            sheet.cell(number, place, given[name])
    sheet[f"G{params['total_cell'][1:]}"] = "Total"
    for year in params["years"]:
        prices = book.create_sheet(f"Prices {year}")
        prices.append(params["listing"])
        for row in params["prices"][str(year)]:
            given = dict(zip(("Code", "Article", "Price"), row, strict=True))
            prices.append([given[name] for name in params["listing"]])
    return {"book.xlsx": workbook_bytes(book)}
