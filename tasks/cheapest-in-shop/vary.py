"""A small shop: articles on two list pages, each with a page of its own; charges for delivery."""

from __future__ import annotations

import random
from typing import Any

from cua_gym.task.authoring import package_bytes

_THINGS = [
    # What, in plural; what is asked of it; unit; too small; large enough.
    ("kettles", "holds at least 1.5 litres", "litres", [0.8, 1.0, 1.2], [1.5, 1.7, 2.0]),
    ("backpacks", "holds at least 30 litres", "litres", [18, 22, 26], [30, 34, 40]),
    ("ropes", "is at least 20 metres long", "metres", [10, 12, 15], [20, 25, 30]),
]
_MAKERS = ["Nordvik", "Halden", "Pombal", "Rivona", "Tessan", "Ostero", "Calder"]
_MODELS = ["Basic", "Comfort", "Plus", "Classic", "Travel"]
_COUNTRIES = ["Norland", "Westria", "Ostmark", "Sudonia"]
_SIZES = ["small", "medium", "large"]
_AGAIN = ["sold out", "not in stock, again in May", "no longer made, none left"]
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - Shop</title>
<link rel="icon" href="data:,"><style>body {{ font: 16px sans-serif; margin: 1.5em 3em }}
td, th {{ padding: .3em 1.2em .3em 0; text-align: left }} nav a {{ margin-right: 1.5em }}</style>
</head><body><nav><a href="/">First page</a><a href="page2.html">Second page</a>
<a href="delivery.html">Delivery</a></nav><h1>{title}</h1>
{body}
</body></html>
"""


def vary(rng: random.Random) -> dict[str, Any]:
    """The articles as number, name, size, price in cents, parcel, stock; and the charges."""
    thing, wish, unit, small, large = rng.choice(_THINGS)
    country = rng.choice(_COUNTRIES)
    charges = {}
    for name in _COUNTRIES:
        first = rng.randint(6, 12) * 50 - 10
        second = first + rng.randint(5, 8) * 50
        charges[name] = [first, second, second + rng.randint(14, 20) * 50]
    cheap, middle, dear = charges[country]
    price = rng.randint(40, 90) * 50 - 5
    rows = [
        # The right one; then cheaper ones that are not: by price alone, sold out, too small.
        [rng.choice(large), price, "small", True],
        [rng.choice(large), price - (dear - cheap) + rng.randint(2, 5) * 50, "large", True],
        [rng.choice(large), price - rng.randint(3, 6) * 50, "small", False],
        [rng.choice(small), price - rng.randint(3, 6) * 50, "small", True],
        # Dearer by a little with delivery; the rest by more.
        [rng.choice(large), price - (middle - cheap) + rng.randint(1, 3) * 50, "medium", True],
        [rng.choice(large), price + rng.randint(1, 4) * 50, "small", True],
    ]
    for _ in range(4):
        size, there = rng.choice(small + large), rng.choice([True, True, False])
        rows.append([size, price + rng.randint(5, 60) * 50, rng.choice(_SIZES), there])
    names = rng.sample([f"{maker} {model}" for maker in _MAKERS for model in _MODELS], len(rows))
    numbers = rng.sample(range(1000, 9999), len(rows))
    articles = [
        [f"{name[:2].upper()}-{number}-{rng.randint(10, 99)}", name, *row]
        for number, name, row in zip(numbers, names, rows, strict=True)
    ]
    return {
        "things": thing,
        "wish": wish,
        "unit": unit,
        "enough": min(large),
        "country": country,
        "charges": charges,
        "articles": rng.sample(articles, len(articles)),
        "gone": rng.choice(_AGAIN),
        "port": rng.randint(8100, 8900),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The site."""
    return {"site.zip": package_bytes(_site(params))}


def _site(params: dict[str, Any]) -> dict[str, str]:
    title = params["things"].capitalize()
    articles = params["articles"]
    half = (len(articles) + 1) // 2
    charges = [[name, *map(_money, row)] for name, row in params["charges"].items()]
    site = {
        "index.html": _page(f"{title}, first page", _list(articles[:half], params["unit"])),
        "page2.html": _page(f"{title}, second page", _list(articles[half:], params["unit"])),
        "delivery.html": _page(
            "Delivery",
            "<p>For each article, by country and size of the parcel:</p>"
            + _table(["Country", *_SIZES], charges),
        ),
    }
    for number, name, size, price, parcel, there in articles:
        rows = [
            ["Article number", number],
            [params["unit"].capitalize(), size],
            ["Price without delivery", _money(price)],
            ["Parcel", parcel],
            ["Stock", "in stock" if there else params["gone"]],
        ]
        site[f"{number.lower()}.html"] = _page(name, _table(["Article", name], rows))
    return site


def _list(articles: list[list[Any]], unit: str) -> str:
    rows = [
        [f'<a href="{number.lower()}.html">{name}</a>', size, _money(price)]
        for number, name, size, price, _, _ in articles
    ]
    return _table(["Article", unit.capitalize(), "Price without delivery"], rows)


def _table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return f"<table><tr>{top}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _money(cents: int) -> str:
    return f"{cents / 100:.2f} EUR"


def _page(title: str, body: str) -> str:
    return _PAGE.format(title=title, body=body)
