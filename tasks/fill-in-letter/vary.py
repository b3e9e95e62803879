"""A letter with words to be replaced, and a list of people, two of whom have the same last name."""

from __future__ import annotations

import random
from typing import Any

from cua_gym.task.documents import Block, document_bytes

_FIRST = ["Ines", "Tomas", "Yuki", "Ada", "Malik", "Priya", "Jonas", "Sofia", "Edith", "Marek"]
_LAST = ["Duarte", "Novak", "Mori", "Lund", "Sow", "Rao", "Becker", "Costa", "Haddad"]
_TOWNS = ["Aveiro", "Ostrava", "Kyoto", "Uppsala", "Dakar", "Leeds", "Bremen", "Porto", "Tampere"]
_COURSES = [
    "Pottery for beginners", "Drawing people", "Bookbinding", "Bread and pastry", "Basket weaving",
    "Reading old letters", "Night photography", "Growing vegetables",
]  # fmt: skip
_MONTHS = ["January", "February", "March", "April", "May", "June", "September", "October"]
_FOLDERS = ["Documents", "Documents/letters", "Desktop/courses", "Office"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The people, what is told of each in which order, and the letter's wording."""
    kind = rng.choice(["odt", "docx"])
    first, last = rng.sample(_FIRST, 6), rng.sample(_LAST, 5)
    # The first two share their last name.
    names = [f"{a} {b}" for a, b in zip(first, [last[0], *last], strict=True)]
    fees = rng.sample(range(40, 300), 6)
    columns = [
        names,
        rng.sample(_TOWNS, 6),
        rng.sample(_COURSES, 6),
        [f"{rng.randint(1, 28)} {month} 2026" for month in rng.sample(_MONTHS, 6)],
        [f"{fee}.{rng.choice(['20', '50', '80'])}" for fee in fees],
    ]
    people = [
        dict(zip(["NAME", "TOWN", "COURSE", "DATE", "FEE"], row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    keys = ["NAME", *rng.sample(["TOWN", "COURSE", "DATE", "FEE"], 4)]
    return {
        "kind": kind,
        "folder": rng.choice(_FOLDERS),
        "template": f"{rng.choice(['letter', 'template', 'confirmation'])}.{kind}",
        "list": f"{rng.choice(['people', 'list', 'signed-up'])}.txt",
        "result": f"{first[0].lower()}-{rng.randint(10, 99)}.{kind}",
        "person": names[0],
        "filled": people[0],
        "other": people[1],
        "people": [{key: one[key] for key in keys} for one in rng.sample(people, 6)],
        "blocks": _blocks(rng),
    }


def _blocks(rng: random.Random) -> list[Block]:
    """Each of the five words is there twice or more, one of them in a table."""
    sender = rng.choice(["The Evening School", "House of Crafts", "Open Workshop"])
    head = ["Course", "Begins on", "Fee in euros"]
    return [
        ["Title", sender],
        ["Text", "[NAME]"],
        ["Text", "[TOWN]"],
        ["Heading 1", f"{rng.choice(['Your place', 'Your course', 'Welcome'])}: [COURSE]"],
        ["Text", "Dear [NAME],"],
        ["Text", f"{rng.choice(['thank you for your letter', 'it was good to hear from you'])}. "
         "We have a place for you, and shall see you on [DATE]."],
        [head, ["[COURSE]", "[DATE]", "[FEE]"]],
        ["Text", f"Please pay the fee of [FEE] euros {rng.randint(5, 14)} days before that day."],
        ["Text", f"{rng.choice(['Trains', 'Buses'])} from [TOWN] go every "
         f"{rng.choice(['hour', 'half hour', 'two hours'])}."],
        ["Text", f"{rng.choice(['Yours sincerely', 'With kind regards'])},"],
        ["Text", f"{rng.choice(['Ruth Adler', 'Peter Quist', 'Olga Weiss'])}, {sender}"],
    ]  # fmt: skip


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The template and the list."""
    people = [
        "".join(f"{key}: {value}\n" for key, value in one.items()) for one in params["people"]
    ]
    return {
        "template": document_bytes(params["kind"], params["blocks"]),
        "list.txt": "\n".join(people).encode(),
    }
