"""An order desk with namesakes in several towns, each with orders of all states."""

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
_STATES = ["delivered", "cancelled", "shipped", "delivered"]
_COMING = ["open", "shipped"]


def vary(rng: random.Random) -> dict[str, Any]:
    """Rows of the desk's tables; who is asked for, and which order it comes to."""
    numbers = rng.sample(range(2000, 9900), len(_ARTICLES))
    # Odd cents, so that neither a total nor what is left of it ends in a 0.
    articles = [
        [f"A-{number}", name, rng.randint(20, 180) * 50 + 19]
        for number, name in zip(numbers, _ARTICLES, strict=True)
    ]
    given, surname = rng.choice(_GIVEN), rng.choice(_SURNAMES)
    other = rng.choice([name for name in _GIVEN if name != given])
    town, namesakes, third = rng.sample(_TOWNS, 3)
    people = [(f"{given} {surname}", town), (f"{given} {surname}", namesakes)]
    people += [(f"{other} {surname}", town), (f"{other} {surname}", third)]
    people += [
        (f"{rng.choice(_GIVEN)} {name}", rng.choice(_TOWNS))
        for name in _SURNAMES
        if name != surname
    ]
    mixed = rng.sample(people, len(people))
    first = rng.randint(100, 800)
    customers = [
        [first + n, name, f"{rng.randint(1, 90)} {rng.choice(_STREETS)}", place]
        for n, (name, place) in enumerate(mixed)
    ]
    owners = [row[0] for row in customers for _ in range(4)]
    rng.shuffle(owners)
    orders: list[list[Any]] = []
    number = rng.randint(11000, 80000)
    for owner in owners:
        # The fourth order of each is the open one, in whatever place it comes to stand.
        state = _STATES[sum(row[1] == owner for row in orders)]
        article = rng.choice(articles)[0]
        number += rng.randint(1, 9)
        placed = f"2025-02-{rng.randint(1, 28):02}"
        orders.append([number, owner, article, rng.choice([3, 7, 9]), placed, "", "", state])
    for owner in sorted(set(owners)):
        rng.choice([row for row in orders if row[1] == owner])[7] = "open"
    for row in orders:
        row[5] = f"2025-03-{rng.randint(11, 31) if row[7] in _COMING else rng.randint(1, 9):02}"
        row[6] = f"R{row[0] * 7 % 9000 + 1000}"
    prices = {article: cents for article, _, cents in articles}
    # The open one is paid in part.
    payments: list[list[Any]] = []
    for row in orders:
        whole = prices[row[2]] * row[3]
        parts = [whole // n // 10 * 10 for n in (3, rng.choice([4, 5]))]
        for cents in parts if row[7] == "open" else [whole]:
            payments.append([len(payments) + 1, row[0], f"2025-03-{rng.randint(1, 9):02}", cents])
    person = customers[mixed.index((f"{given} {surname}", town))]
    twin = customers[mixed.index((f"{given} {surname}", namesakes))]
    order, others = (
        [r for r in orders if r[1] == one[0] and r[7] == "open"] for one in (person, twin)
    )
    return {
        "name": person[1],
        "town": town,
        "customer": person[0],
        "order": order[0][0],
        "other": others[0][0],
        "port": rng.randint(8100, 8900),
        "articles": articles,
        "customers": customers,
        "orders": orders,
        "payments": payments,
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The rows as SQL."""
    tables = ["articles", "customers", "orders", "payments"]
    lines = [
        f"INSERT INTO {table} VALUES ({', '.join(map(_literal, row))});\n"
        for table in tables
        for row in params[table]
    ]
    return {"orders.sql": "".join(lines).encode()}


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
