"""A bill with cancelled lines, discounts of several customers and taxes of several years."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

_HOUSES = ["Harbour Inn", "Ferry Office", "Lakeside Hall", "Old Mill", "Print Shop North"]
_ITEMS = {
    "room, double": (89, 169),
    "conference room": (120, 260),
    "breakfast": (9, 19),
    "lunch": (12, 29),
    "coffee, per person": (2, 6),
    "parking, per day": (6, 18),
    "bicycle, per day": (11, 24),
    "boat trip": (19, 48),
    "guided tour": (14, 39),
    "laundry": (5, 21),
    "projector, per day": (25, 60),
    "late checkout": (20, 45),
}
"""Euros that one may cost."""
_CUSTOMERS = ["members", "schools", "groups", "companies", "neighbours"]
_MONTHS = ["January", "March", "April", "June", "August", "September", "November"]


def vary(rng: random.Random) -> dict[str, Any]:
    """A bill on which the right amount and each of the tempting ones are different cents."""
    while True:
        bill = _bill(rng)
        exact = {name: Decimal(text) for name, text in bill["amounts"].items()}
        cents = {amount.quantize(Decimal("0.01"), ROUND_HALF_UP) for amount in exact.values()}
        # Far from half a cent, so that no way of rounding differs; and not already in cents.
        part = exact["paid"] * 100 % 1
        if len(cents) == len(exact) and abs(part - Decimal("0.5")) > Decimal("0.05") < part:
            return bill


def _bill(rng: random.Random) -> dict[str, Any]:
    count = rng.randint(6, 8)
    lines = [
        [item, rng.randint(2, 24), f"{rng.randint(low * 100, high * 100) / 100:.2f}", "charged"]
        for item, (low, high) in rng.sample(sorted(_ITEMS.items()), count)
    ]
    for line in rng.sample(lines, 2):
        line[3] = "cancelled"
    year = rng.choice([2022, 2023, 2024])
    rates = dict(zip(range(2021, 2026), rng.sample(range(30, 95), 5), strict=True))
    customers = dict(zip(rng.sample(_CUSTOMERS, 3), rng.sample(range(4, 19), 3), strict=True))
    customer = rng.choice(sorted(customers))
    taxes = {str(y): f"{rate / 10:.1f}" for y, rate in rates.items()}
    params: dict[str, Any] = {
        "file": f"bill-{rng.randint(1000, 9999)}.txt",
        "x": rng.randint(655, 695),
        "y": rng.randint(60, 400),
        "customer": customer,
        "lines": lines,
        "discount": customers[customer],
        "tax": taxes[str(year)],
    }
    keep = Decimal(100 - customers[customer]) / 100
    charged = _sum(lines, ["charged"])
    factors = {y: 1 + Decimal(rate) / 100 for y, rate in taxes.items()}
    amounts = {
        "paid": charged * keep * factors[str(year)],
        "with_cancelled": _sum(lines, ["charged", "cancelled"]) * keep * factors[str(year)],
        "without_discount": charged * factors[str(year)],
        "year_before": charged * keep * factors[str(year - 1)],
        "year_after": charged * keep * factors[str(year + 1)],
    }
    day = f"{rng.randint(2, 27)} {rng.choice(_MONTHS)} {year}"
    return params | {
        "bill": _text(rng, day, lines, customers, taxes),
        "amounts": {name: str(amount) for name, amount in amounts.items()},
    }


def _sum(lines: list[list[Any]], states: list[str]) -> Decimal:
    return sum((n * Decimal(price) for _, n, price, state in lines if state in states), Decimal(0))


def _text(
    rng: random.Random,
    day: str,
    lines: list[list[Any]],
    customers: dict[str, int],
    taxes: dict[str, str],
) -> str:
    """The bill; lines are charged unless it says otherwise."""
    table = [f"{'what':<22}{'number':>8}{'price of one':>16}"]
    for item, number, price, state in lines:
        note = "   cancelled" if state == "cancelled" else ""
        table.append(f"{item:<22}{number:>8}{price:>12} EUR{note}")
    rules = [
        "Cancelled lines are not charged.",
        "\n".join(f"Discount for {c}: {part} percent" for c, part in customers.items()),
        "\n".join(f"Tax in {y}: {rate} percent" for y, rate in taxes.items()),
    ]
    head = [rng.choice(_HOUSES), f"Bill of {day}"]
    return "\n".join([*head, "", *table, "", *rng.sample(rules, len(rules)), ""])
