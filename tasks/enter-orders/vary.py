"""Orders of a telephone note, one of them changed, one cancelled, one already in the desk."""

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
_CANCELLED = [
    "called back: no order after all",
    "has changed their mind, leave it out",
    "cancelled",
]
_NOTES = ["telephone.txt", "calls.txt", "phone-orders.txt"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The desk's rows, the note, and the rows that three orders of it come to."""
    numbers = rng.sample(range(2000, 9900), len(_ARTICLES))
    articles = [
        [f"A-{number}", name, rng.randint(20, 180) * 50]
        for number, name in zip(numbers, _ARTICLES, strict=True)
    ]
    surnames = rng.sample(_SURNAMES, len(_SURNAMES))
    people = [(f"{rng.choice(_GIVEN)} {name}", rng.choice(_TOWNS)) for name in surnames]
    # The first of the orders is for a namesake of somebody in another town.
    elsewhere = rng.choice([town for town in _TOWNS if town != people[0][1]])
    people.append((people[0][0], elsewhere))
    mixed = rng.sample(people, len(people))
    first = rng.randint(100, 800)
    customers = [
        [first + n, name, f"{rng.randint(1, 90)} {rng.choice(_STREETS)}", town]
        for n, (name, town) in enumerate(mixed)
    ]
    number = rng.randint(11000, 80000)
    call = rng.randint(1000, 8000)
    orders: list[list[Any]] = []
    for owner in rng.sample(customers, len(customers)):
        number += 1
        article = rng.choice(articles)[0]
        due, state = f"2025-03-{rng.randint(11, 31)}", rng.choice(["open", "shipped"])
        reference = f"PH-{call - rng.randint(10, 900)}"
        row = [number, owner[0], article, rng.randint(1, 9), "2025-03-07", due, reference, state]
        orders.append(row)
    # Three that are to be entered, one that was cancelled, one that is there.
    calls = []
    for n in range(5):
        [customer] = [row for row in customers if (row[1], row[3]) == people[n]]
        article = articles[rng.randrange(len(articles))]
        due = f"2025-0{rng.randint(4, 6)}-{rng.randint(10, 28)}"
        calls.append([customer, article, rng.randint(2, 9), due])
    places = rng.sample(range(5), 5)
    references = [f"PH-{call + place + 1}" for place in places]
    changed = calls[1][2] + rng.randint(10, 40)
    there, article, quantity, due = calls[4]
    orders.append(
        [number + 1, there[0], article[0], quantity, "2025-03-10", due, references[4], "open"]
    )
    entries = [
        f"{reference}  {customer[1]}, {customer[3]}\n"
        f"         {quantity} x {article[1]}, for {due}\n"
        for reference, (customer, article, quantity, due) in zip(references, calls, strict=True)
    ]
    remarks = [
        f"{references[1]}: {changed} instead of {calls[1][2]}\n",
        f"{references[3]}: {rng.choice(_CANCELLED)}\n",
    ]
    calls[1][2] = changed
    wanted = [
        [customer[0], article[0], quantity, "2025-03-10", due, "open"]
        for customer, article, quantity, due in calls[:3]
    ]
    [namesake] = [row for row in customers if (row[1], row[3]) == people[-1]]
    listed = [entries[places.index(place)] for place in range(5)]
    return {
        "note": rng.choice(_NOTES),
        "text": "By telephone\n\n"
        + "\n".join(listed)
        + "\nAfterwards\n\n"
        + "".join(rng.sample(remarks, 2)),
        "port": rng.randint(8100, 8900),
        "first": [wanted[0]],
        "second": [wanted[1]],
        "third": [wanted[2]],
        "first_reference": references[0],
        "second_reference": references[1],
        "third_reference": references[2],
        "cancelled": references[3],
        "there": references[4],
        "namesake": namesake[0],
        "last": number + 1,
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
