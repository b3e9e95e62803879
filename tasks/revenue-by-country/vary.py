"""A database of orders, some twice, some without amount, status or customer, dates in two forms."""

from __future__ import annotations

import datetime
import random
from typing import Any

_COUNTRIES = ["Chile", "Estonia", "Ghana", "Iceland", "Laos", "Malta", "Nepal", "Peru"]
_LAYOUTS = [
    {"buyers": "customers", "orders": "orders", "placed": "ordered_on", "amount": "amount"},
    {"buyers": "clients", "orders": "purchases", "placed": "bought_on", "amount": "price"},
    {"buyers": "accounts", "orders": "sales", "placed": "sold_on", "amount": "total"},
]
_FIRST = {1: (1, 1), 2: (4, 1), 3: (7, 1), 4: (10, 1)}
_LAST = {1: (3, 31), 2: (6, 30), 3: (9, 30), 4: (12, 31)}


def vary(rng: random.Random) -> dict[str, Any]:
    """Names of tables, the quarter, the report's name."""
    quarter = rng.randint(1, 4)
    first, last = (datetime.date(2025, *days[quarter]) for days in (_FIRST, _LAST))
    return {
        **rng.choice(_LAYOUTS),
        "database": rng.choice(["shop", "trade", "store"]) + ".db",
        "countries": rng.sample(_COUNTRIES, rng.randint(4, 6)),
        "first": first.isoformat(),
        "last": last.isoformat(),
        "report": f"revenue-{rng.randint(100, 999)}.csv",
        "void": rng.choice(["cancelled", "void", "returned"]),
        "noise": rng.randrange(2**31),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The database as statements."""
    rng = random.Random(params["noise"])
    buyers = [(n, _name(rng), rng.choice(params["countries"])) for n in range(1, 61)]
    # Every country has one at least; some buyers have none.
    buyers[: len(params["countries"])] = [
        (n, _name(rng), country) for n, country in enumerate(params["countries"], 1)
    ]
    buyers = [(n, name, None if n % 13 == 0 else country) for n, name, country in buyers]
    orders = _orders(rng, params)
    lines = [
        "BEGIN;",
        f"CREATE TABLE {params['buyers']} (id INTEGER PRIMARY KEY, name TEXT, country TEXT);",
        f"CREATE TABLE {params['orders']} (id INTEGER PRIMARY KEY, number TEXT, buyer INTEGER,",
        f"  {params['placed']} TEXT, {params['amount']} REAL, status TEXT);",
        *(f"INSERT INTO {params['buyers']} VALUES ({_values(row)});" for row in buyers),
        *(f"INSERT INTO {params['orders']} VALUES ({_values(row)});" for row in orders),
        "COMMIT;",
    ]
    return {"dump.sql": "".join(f"{line}\n" for line in lines).encode()}


def _name(rng: random.Random) -> str:
    return f"{rng.choice('ABCDEFGHJKLM')}. {rng.choice(['Abe', 'Berg', 'Cruz', 'Dahl', 'Egan'])}"


def _orders(rng: random.Random, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    begin = datetime.date.fromisoformat(params["first"]) - datetime.timedelta(days=40)
    rows: list[tuple[Any, ...]] = []
    for number in range(rng.randint(420, 560)):
        # Both ends of the quarter have some for certain.
        day = begin + datetime.timedelta(days=rng.randrange(170))
        if number % 40 == 0:
            day = datetime.date.fromisoformat(params["last" if number % 80 else "first"])
        # The first half was taken over from an older system.
        if number < 200:
            placed = day.strftime("%d.%m.%Y")
        else:
            placed = f"{day} {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00"
        buyer = None if rng.random() < 0.04 else rng.randint(1, 60)
        amount = None if rng.random() < 0.08 else rng.randint(500, 90000) / 100
        status = rng.choices(["paid", "open", params["void"], None], [60, 15, 15, 10])[0]
        row = (f"A{number + 4000}", buyer, placed, amount, status)
        rows += [row] * rng.choices([1, 2, 3], [88, 9, 3])[0]
    rng.shuffle(rows)
    return [(n, *row) for n, row in enumerate(rows, 1)]


def _values(row: tuple[Any, ...]) -> str:
    words = ["NULL" if v is None else f"'{v}'" if isinstance(v, str) else str(v) for v in row]
    return ", ".join(words)
