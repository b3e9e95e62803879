"""Two boards as pictures, the orders as a table, and what was changed since as a note."""

from __future__ import annotations

import io
import random
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_CUSTOMERS = [
    "Harbour Inn", "Harbour Office", "Lakeside Hall", "Lakeside Hotel", "Old Mill", "Old Mill Shop",
    "Ferry Cafe", "Ferry Office", "Print Shop", "School North", "School South", "Museum",
    "Town Library", "Boat Club",
]  # fmt: skip
_FOLDERS = ["Deliveries", "Documents/depot", "Desktop/round", "Work"]
_GOODS = ["crates", "boxes", "sacks", "barrels"]
_TALK = [
    "The scales at the door are repaired.",
    "Please leave the keys with the porter.",
    "Mind the wet floor in the yard.",
    "The new forklift comes next week.",
]


def vary(rng: random.Random) -> dict[str, Any]:
    """Orders with customers and numbers; eight of them on the boards; three changes in the note."""
    orders = [str(n) for n in rng.sample(range(4100, 9900), 14)]
    customers = rng.sample(_CUSTOMERS, 14)
    counts = [rng.randint(3, 48) for _ in orders]
    table = [list(row) for row in zip(orders, customers, counts, strict=True)]
    listed = rng.sample(range(14), 8)
    hours = sorted(rng.sample(range(7 * 4, 18 * 4), 9))
    late = hours.pop(rng.randint(1, 7))
    gates = "ABCDEF"
    boards = [
        [_clock(hour), rng.choice(gates), orders[n]] for hour, n in zip(hours, listed, strict=True)
    ]
    moved, cancelled, turned = rng.sample(range(8), 3)
    gate = rng.choice([g for g in gates if g != boards[turned][1]])
    about = {n: customers[listed[n]] for n in (moved, cancelled, turned)}
    absent = rng.choice([n for n in range(14) if n not in listed])
    changes = [
        f"{about[moved]} wants its delivery at {_clock(late)} and not when the board says.",
        f"{about[cancelled]} has cancelled; nothing is delivered there today.",
        f"The delivery for {about[turned]} goes out by gate {gate}.",
        f"{customers[absent]} asks for a delivery tomorrow.",
    ]
    return {
        "folder": rng.choice(_FOLDERS),
        "list": f"list-{rng.randint(100, 999)}.csv",
        "goods": rng.choice(_GOODS),
        "table": table,
        "boards": [boards[:4], boards[4:]],
        "moved": [boards[moved][2], _clock(late)],
        "cancelled": boards[cancelled][2],
        "turned": [boards[turned][2], gate],
        "note": [rng.choice(_TALK), *rng.sample(changes, 4)],
        "noise": rng.randrange(2**31),
    }


def _clock(quarter: int) -> str:
    return f"{quarter // 4:02}:{quarter % 4 * 15:02}"


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The two pictures, the table and the note."""
    rng = random.Random(params["noise"])
    table = f"order,customer,{params['goods']}\n"
    table += "".join(f"{order},{who},{count}\n" for order, who, count in params["table"])
    return {
        "board-1.png": _board(rng, "MORNING", params["boards"][0]),
        "board-2.png": _board(rng, "LATER", params["boards"][1]),
        "orders.csv": table.encode(),
        "note.txt": ("\n".join(params["note"]) + "\n").encode(),
    }


def _board(rng: random.Random, head: str, rows: list[list[str]]) -> bytes:
    """A board with chalk on it."""
    picture = Image.new("RGB", (900, 560), (48, 66, 58))
    draw = ImageDraw.Draw(picture)
    for _ in range(900):
        x, y = rng.randrange(900), rng.randrange(560)
        shade = rng.randint(54, 92)
        draw.ellipse((x, y, x + 3, y + 2), fill=(shade, shade + 14, shade + 6))
    draw.rectangle((14, 14, 885, 545), outline=(150, 120, 80), width=10)
    draw.text((60, 40), head, font=ImageFont.load_default(40), fill=(230, 210, 120))
    draw.text((330, 52), "gate", font=ImageFont.load_default(26), fill=(190, 200, 190))
    draw.text((560, 52), "order", font=ImageFont.load_default(26), fill=(190, 200, 190))
    for row, (clock, gate, order) in enumerate(rows):
        y = 115 + 100 * row + rng.randint(-8, 8)
        for x, text in ((60, clock), (345, gate), (560, order)):
            place = (x + rng.randint(-6, 6), y + rng.randint(-4, 4))
            draw.text(place, text, font=ImageFont.load_default(54), fill=(236, 238, 228))
    png = io.BytesIO()
    picture.save(png, "PNG")
    return png.getvalue()
