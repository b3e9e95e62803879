"""Minutes of four meetings under names that say nothing, an invitation and a list of members."""

from __future__ import annotations

import datetime
import random
from typing import Any

_FOLDERS = ["Minutes", "Documents/meetings", "Desktop/from-the-office", "Papers"]
_COMMITTEES = ["Finance", "Building", "Youth", "Garden", "Library", "Sports", "Festival", "Water"]
_NAMES = ["Ines Duarte", "Tomas Novak", "Yuki Mori", "Ada Lund", "Malik Sow", "Priya Rao"]
_OLD = ["untitled", "doc-1", "text", "new", "final", "notes-b", "scan-7", "copy", "page", "export"]
_MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
]  # fmt: skip
_POINTS = [
    "The minutes of the last meeting were approved.",
    "The lamp at the door is to be mended.",
    "Three offers for the new roof were compared.",
    "The keys will be counted before the summer.",
    "It was agreed to buy forty chairs.",
    "The report of the treasurer was heard.",
    "A letter to the town was read out and approved.",
    "The opening hours stay as they are.",
]
_DATES = {"YEAR-MONTH-DAY": "%Y-%m-%d", "YEARMONTHDAY": "%Y%m%d", "DAY-MONTH-YEAR": "%d-%m-%Y"}
_EXAMPLE = datetime.date(2019, 9, 5)


def vary(rng: random.Random) -> dict[str, Any]:
    """The first two minutes are of one committee; the third tells first when it was written."""
    committees = rng.sample(_COMMITTEES, 4)
    committees.insert(0, committees[0])
    year = rng.randint(2021, 2025)
    # In different months, and never at their ends: what was written a few days later or is to be
    # held next is in none of the other names.
    days = [datetime.date(year, month, rng.randint(1, 20)) for month in rng.sample(range(1, 12), 5)]
    writing = days[2] + datetime.timedelta(days=rng.randint(2, 7))
    words = rng.choice(list(_DATES))
    pattern = rng.choice(
        ["{date}_{committee}.txt", "{committee}-{date}.txt", "{date}-{committee}.txt"]
    )

    def name(day: datetime.date, committee: str) -> str:
        return pattern.format(date=day.strftime(_DATES[words]), committee=committee.lower())

    texts = [
        _plain(rng, committees[0], days[0]),
        _told(rng, committees[1], days[1]),
        _late(rng, committees[2], days[2], writing),
        rng.choice([_plain, _told])(rng, committees[3], days[3]),
    ]
    order = rng.sample(range(4), 4)
    folder = rng.choice(_FOLDERS)
    old = [f"{stem}.txt" for stem in rng.sample(_OLD, 6)]
    return {
        "folder": folder,
        "place": folder.rpartition("/")[2],
        "pattern": f"{pattern.format(date=words, committee='COMMITTEE')}, where YEAR has four "
        "digits, MONTH and DAY have two, and COMMITTEE is its name in small letters without the "
        'word "committee"',
        "example": name(_EXAMPLE, "Ferry"),
        "by_writing": name(writing, committees[2]),
        "late": order.index(2) + 1,
        "kept_1": old[4],
        "kept_2": old[5],
        "texts": {
            "invitation.txt": _invitation(rng, committees[4], days[4]),
            "members.txt": _members(rng, committees[3], year),
            **{f"minutes-{n}.txt": texts[at] for n, at in enumerate(order, 1)},
        },
        **{f"old_{n}": old[n - 1] for n in range(1, 5)},
        **{f"new_{n}": name(days[at], committees[at]) for n, at in enumerate(order, 1)},
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The six texts."""
    return {name: text.encode() for name, text in params["texts"].items()}


def _day(rng: random.Random, day: datetime.date) -> str:
    month = _MONTHS[day.month - 1]
    return rng.choice([f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}"])


def _points(rng: random.Random) -> str:
    chosen = rng.sample(_POINTS, rng.randint(2, 4))
    return "".join(f"{n}. {point}\n" for n, point in enumerate(chosen, 1))


def _plain(rng: random.Random, committee: str, day: datetime.date) -> str:
    present = ", ".join(rng.sample(_NAMES, 3))
    following = _day(rng, day + datetime.timedelta(days=28))
    return (
        f"{committee} Committee\n\nMinutes of the meeting of {_day(rng, day)}\n"
        f"Present: {present}\n\n{_points(rng)}\nNext meeting: {following}\n"
    )


def _told(rng: random.Random, committee: str, day: datetime.date) -> str:
    one, two = rng.sample(_NAMES, 2)
    return (
        f"MINUTES\n\nOn {_day(rng, day)} the {committee} Committee met in room "
        f"{rng.randint(2, 30)}. {one} was in the chair.\n\n{_points(rng)}\nFor the minutes: {two}\n"
    )


def _late(rng: random.Random, committee: str, day: datetime.date, writing: datetime.date) -> str:
    one, two = rng.sample(_NAMES, 2)
    return (
        f"{committee} Committee, minutes\nDate: {_day(rng, writing)}, written by {one}\n\n"
        f"{two} opened the meeting, which was held on {_day(rng, day)}.\n\n{_points(rng)}"
    )


def _invitation(rng: random.Random, committee: str, day: datetime.date) -> str:
    return (
        f"{committee} Committee\n\nInvitation to the meeting of {_day(rng, day)}\n\n"
        f"We shall approve the minutes of the last meeting, and hear a report.\n\n"
        f"{rng.choice(_NAMES)}\n"
    )


def _members(rng: random.Random, committee: str, year: int) -> str:
    names = "".join(f"- {name}\n" for name in rng.sample(_NAMES, 4))
    return f"Members of the {committee} Committee in {year}\n\n{names}"
