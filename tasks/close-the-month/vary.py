"""Four accounts of a month, with entries that count and others, and the bank's statement of one."""

from __future__ import annotations

import random
from typing import Any

_ACCOUNTS = ["cash", "bank", "cards", "savings", "reserve", "postal"]
_FOLDERS = ["Books", "Documents/books", "Accounts", "Desktop/ledger"]
_OWNERS = ["boat club", "choir", "school fund", "library friends", "garden society"]
_MONTHS = ["April", "May", "June", "July", "September", "October"]
_NUMBERS = {"April": 4, "May": 5, "June": 6, "July": 7, "September": 9, "October": 10}
_THINGS = [
    "tickets", "rent", "paint", "stamps", "donation", "fees", "repairs", "paper", "travel",
    "coffee", "insurance", "books", "hall", "tools",
]  # fmt: skip


def vary(rng: random.Random) -> dict[str, Any]:
    """A month of which every balance, and every tempting sum, is another amount."""
    while True:
        month = _month(rng)
        sums = [*month["closing"].values(), *month["totals"].values()]
        if len(set(sums)) == len(sums) and min(sums) > 1000:
            return month


def _month(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(_ACCOUNTS, 4)
    stated = rng.choice(names)
    references = [f"R-{n}" for n in sorted(rng.sample(range(1200, 9800), 40))]
    accounts: dict[str, Any] = {}
    for name in names:
        count = rng.randint(6, 8)
        states = ["planned", rng.choice(["planned", "void"])] + ["booked"] * (count - 2)
        rng.shuffle(states)
        days = sorted(rng.sample(range(1, 30), count))
        accounts[name] = {
            "opening": rng.randint(60000, 420000),
            "entries": [
                [f"{day:02}", state, references.pop(0), _cents(rng), rng.choice(_THINGS)]
                for day, state in zip(days, states, strict=True)
            ],
        }
    # One booked amount has two of its digits in the wrong order.
    entries = accounts[stated]["entries"]
    wrong = rng.choice(
        [n for n, e in enumerate(entries) if e[1] == "booked" and _swap(e[3]) != e[3]]
    )
    right = entries[wrong][3]
    closing = {
        name: _closing(a["opening"], a["entries"], ["booked"]) for name, a in accounts.items()
    }
    planned = [
        _closing(a["opening"], a["entries"], ["booked", "planned"]) for a in accounts.values()
    ]
    entries[wrong][3] = _swap(right)
    name = rng.choice(_MONTHS)
    year = rng.randint(2022, 2025)
    month = f"{year}-{_NUMBERS[name]:02}"
    uncorrected = _closing(accounts[stated]["opening"], entries, ["booked"])
    return {
        "owner": rng.choice(_OWNERS),
        "folder": rng.choice(_FOLDERS),
        "month": month,
        "spoken": f"{name} {year}",
        "names": names,
        **{f"name_{n}": name for n, name in enumerate(names, 1)},
        "stated": stated,
        "wrong": wrong,
        "right": right,
        "reference": entries[wrong][2],
        "accounts": accounts,
        "closing": closing,
        # With what is planned, and without the correction.
        "totals": {
            "right": sum(closing.values()),
            "planned": sum(planned),
            "uncorrected": sum(closing.values()) - closing[stated] + uncorrected,
        },
        "statement": rng.randrange(2**31),
    }


def _cents(rng: random.Random) -> int:
    return rng.choice([1, 1, -1]) * rng.randint(1100, 89000)


def _swap(cents: int) -> int:
    """The amount with its second and third digit in each other's place."""
    digits = f"{abs(cents):05}"
    other = int(digits[0] + digits[2] + digits[1] + digits[3:])
    return other if cents > 0 else -other


def _closing(opening: int, entries: list[list[Any]], states: list[str]) -> int:
    return opening + sum(int(e[3]) for e in entries if e[1] in states)


def money(cents: int) -> str:
    """As it is written in the books."""
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


def ledger(params: dict[str, Any], name: str) -> str:
    """An account's file; its last line waits for the balance."""
    account = params["accounts"][name]
    lines = [f"Account {name}, {params['spoken']}", f"opening {money(account['opening'])}", ""]
    lines += [
        f"{day}  {state:<8} {reference}  {money(cents):>9}  {thing}"
        for day, state, reference, cents, thing in account["entries"]
    ]
    return "\n".join([*lines, "", "closing "])


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The accounts, the statement and the note."""
    rng = random.Random(params["statement"])
    texts = {f"account-{n}": ledger(params, name) for n, name in enumerate(params["names"], 1)}
    entries = [list(e) for e in params["accounts"][params["stated"]]["entries"]]
    entries[params["wrong"]][3] = params["right"]
    lines = [f"{e[2]}   {money(e[3])}" for e in entries if e[1] == "booked"]
    rng.shuffle(lines)
    texts["statement"] = (
        f"Statement of the account {params['stated']}\n{params['spoken']}, as booked by us\n\n"
        + "\n".join(lines)
        + "\n"
    )
    texts["note"] = (
        f"Closing of {params['spoken']}\n\n"
        + "".join(f"{name}:\n" for name in params["names"])
        + "all together:\n"
    )
    return {name: text.encode() for name, text in texts.items()}
