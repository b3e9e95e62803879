"""The books as they must be, and the sums that come of a rule not kept."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Each account's whole file, the note, and what the folder then has."""
    texts = {}
    for n, name in enumerate(params["names"], 1):
        text = inputs[f"account-{n}"].decode()
        if name == params["stated"]:
            text = "\n".join(
                _corrected(line, params["right"]) if params["reference"] in line else line
                for line in text.split("\n")
            )
        texts[name] = f"{text}{_money(params['closing'][name])}\n"
    balances = [f"{name}: {_money(params['closing'][name])}" for name in params["names"]]
    totals = {name: _money(cents) for name, cents in params["totals"].items()}
    files = [f"{params['month']}-{name}.txt" for name in params["names"]]
    return {
        **{f"account_{n}": texts[name] for n, name in enumerate(params["names"], 1)},
        "corrected": _money(params["right"]),
        "note": "\n".join(
            [
                f"Closing of {params['spoken']}",
                "",
                *balances,
                f"all together: {totals['right']}",
                "",
            ]
        ),
        "names": sorted([*files, "statement.txt", "closing.txt"]),
        "packed": sorted([*files, "closing.txt"]),
        "with_planned": totals["planned"],
        "uncorrected": totals["uncorrected"],
    }


def _corrected(line: str, cents: int) -> str:
    day, state, reference, _, thing = line.split()
    return f"{day}  {state:<8} {reference}  {_money(cents):>9}  {thing}"


def _money(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"
