"""A customer who wants an order cancelled that is shipped, and has an open one too."""

from __future__ import annotations

import random
from typing import Any

_GIVEN = ["Marta", "Jonas", "Aino", "Pavel", "Irene", "Tomas", "Selma", "Viktor"]
_SURNAMES = ["Lindqvist", "Brenner", "Okafor", "Marchetti", "Halloran", "Zielinski", "Moreau"]
_STREETS = ["Quay Street", "Mill Lane", "Station Road", "Chapel Row", "High Street", "Park Way"]
_TOWNS = ["Aldermoor", "Brookhaven", "Carrow", "Dunmere", "Eastwick", "Fenbury", "Glenholt"]
_ARTICLES = [
    "brass lamp", "steel lamp", "kettle", "short ladder", "long ladder", "teapot", "rope",
    "saddle bag", "picnic blanket", "folding chair",
]  # fmt: skip


def vary(rng: random.Random) -> dict[str, Any]:
    """The desk's rows; the shipped order, and the open one of the same customer and article."""
    numbers = rng.sample(range(2000, 9900), len(_ARTICLES))
    articles = [
        [f"A-{number}", name, rng.randint(20, 180) * 50]
        for number, name in zip(numbers, _ARTICLES, strict=True)
    ]
    first = rng.randint(100, 800)
    names = rng.sample(_SURNAMES, len(_SURNAMES))
    customers = [
        [
            first + n,
            f"{rng.choice(_GIVEN)} {name}",
            f"{rng.randint(1, 90)} {rng.choice(_STREETS)}",
            rng.choice(_TOWNS),
        ]
        for n, name in enumerate(names)
    ]
    person, wanted = rng.choice(customers), rng.choice(articles)
    pairs = [(customer, rng.choice(articles), "open") for customer in customers]
    pairs += [(customer, rng.choice(articles), "shipped") for customer in customers[::2]]
    pairs = [pair for pair in pairs if pair[0] != person]
    pairs += [(person, wanted, "shipped"), (person, wanted, "open")]
    number = rng.randint(11000, 80000)
    orders: list[list[Any]] = []
    for customer, article, state in rng.sample(pairs, len(pairs)):
        number += rng.randint(1, 9)
        row = [number, customer[0], article[0], rng.randint(1, 9)]
        row += [f"2025-02-{rng.randint(10, 28)}", f"2025-03-{rng.randint(11, 31)}"]
        orders.append([*row, f"R{number * 7 % 9000 + 1000}", state])
    [shipped] = [row[0] for row in orders if row[1] == person[0] and row[7] == "shipped"]
    [still_open] = [row[0] for row in orders if row[1] == person[0] and row[7] == "open"]
    return {
        "name": person[1],
        "article": wanted[1],
        "order": shipped,
        "other": still_open,
        "port": rng.randint(8100, 8900),
        "articles": articles,
        "customers": customers,
        "orders": orders,
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The rows as SQL."""
    lines = [
        f"INSERT INTO {table} VALUES ({', '.join(map(_literal, row))});\n"
        for table in ("articles", "customers", "orders")
        for row in params[table]
    ]
    return {"orders.sql": "".join(lines).encode()}


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
