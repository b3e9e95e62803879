"""A sheet of orders, and the region that is asked for."""

from __future__ import annotations

import random
from typing import Any

from openpyxl import Workbook

from cua_gym.task.authoring import workbook_bytes

_REGIONS = ["North", "South", "East", "West"]
_CUSTOMERS = ["Aydin", "Baker", "Costa", "Dubois", "Eriksen", "Fischer", "Gupta", "Haddad"]


def vary(rng: random.Random) -> dict[str, Any]:
    """Orders as rows of number, customer, region, amount."""
    rows = [
        [1000 + n, rng.choice(_CUSTOMERS), rng.choice(_REGIONS), rng.randint(500, 99999) / 100]
        for n in range(rng.randint(36, 60))
    ]
    region = rng.choice(sorted({str(row[2]) for row in rows}))
    return {
        "region": region,
        "rows": rows,
        "formula": f'=SUMIF(C2:C{len(rows) + 1};"{region}";D2:D{len(rows) + 1})',
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The workbook."""
    book = Workbook()
    sheet = book.active
    sheet.title = "Orders"
    sheet.append(["Order", "Customer", "Region", "Amount", None, "Total"])
    for row in params["rows"]:
        sheet.append(row)
    notes = book.create_sheet("Notes")
    notes["A1"] = "Amounts are in euros."
    return {"orders.xlsx": workbook_bytes(book)}
