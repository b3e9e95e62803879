"""Each order's price and amount, by the list that was asked for and by the other one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Columns as a check has them, a list of rows of one cell; money is counted in decimals."""
    other = next(year for year in params["years"] if year != params["year"])

    def column(year: int) -> list[Decimal]:
        prices = {code: Decimal(str(price)) for code, _, price in params["prices"][str(year)]}
        return [prices[code] for _, code, _ in params["orders"]]

    prices = column(params["year"])
    amounts = [p * row[2] for p, row in zip(prices, params["orders"], strict=True)]
    first = params["top"] + 1
    rows = range(first, first + len(amounts))
    return {
        "prices": [[float(price)] for price in prices],
        "amounts": [[float(amount)] for amount in amounts],
        "total": float(sum(amounts)),
        "other_prices": [[float(price)] for price in column(other)],
        "filled": [f"Orders!{c}{row}" for c in "DE" for row in rows]
        + [f"Orders!{params['total_cell']}"],
    }
