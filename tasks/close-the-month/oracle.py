"""Add up with the calculator, write into the tabs of the editor, rename, pack."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Generator
from decimal import Decimal
from typing import Any

from cua_gym.actions import Action, Click, Key, Type
from cua_gym.agent.moves import rename
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown

Moves = Generator[Action, Any, None]

_PLACES = {
    "Mousepad": (200, 25),
    "galculator": (900, 25),
    "Thunar": (900, 586),
    "Terminal": (900, 627),
}
"""Where each window can be clicked on its frame or status bar, as the setup lays them out."""


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """Alt and a number is a tab: the accounts first, then the statement and the note."""
    folder = f"/home/user/{params['folder']}/{params['month']}"
    names, stated = params["names"], params["stated"]
    tabs = {f"{name}.txt": n for n, name in enumerate([*names, "statement", "closing"], 1)}
    desk.focused("Mousepad")

    yield from _tab(desk, tabs, "statement.txt")
    yield from _tab(desk, tabs, f"{stated}.txt")
    entries = params["accounts"][stated]["entries"]
    day, state, reference, _, thing = entries[params["wrong"]]
    entries[params["wrong"]][3] = params["right"]
    # Above the entries are two lines and an empty one.
    yield from _line(
        desk,
        4 + params["wrong"],
        f"{day}  {state:<8} {reference}  {_money(params['right']):>9}  {thing}",
    )

    yield from _front(desk, "galculator")
    yield Click(*desk.find("text", "", app="galculator"))
    closing = {}
    for name in names:
        account = params["accounts"][name]
        amounts = [account["opening"], *(e[3] for e in account["entries"] if e[1] == "booked")]
        closing[name] = yield from _sum(desk, amounts)
    total = yield from _sum(desk, list(closing.values()))

    yield from _front(desk, "Mousepad")
    for name in names:
        yield from _tab(desk, tabs, f"{name}.txt")
        yield Key("ctrl+end")
        yield Type(f"{_money(closing[name])}\n")
        yield from _save(desk, f"{folder}/{name}.txt", f"closing {_money(closing[name])}")
    yield from _tab(desk, tabs, "closing.txt")
    balances = [f"{name}: {_money(closing[name])}" for name in names]
    last = f"all together: {_money(total)}"
    yield Key("ctrl+a")
    yield Type("\n".join([f"Closing of {params['spoken']}", "", *balances, last, ""]))
    yield from _save(desk, f"{folder}/closing.txt", last)

    yield from _front(desk, "Thunar")
    # From the top, so that a new name does not move the rows below it.
    for name in sorted(names):
        yield from rename(desk, folder, f"{name}.txt", f"{params['month']}-{name}.txt")

    yield from _front(desk, "Terminal")
    archive = f"../{params['month']}.tar.gz"
    yield Type(f"tar -czf {archive} {params['month']}-*.txt closing.txt\n")
    desk.until(f"tar -tzf {folder}/{archive} >/dev/null 2>&1", timeout_s=120.0)
    return None


def _money(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02}"


def _sum(desk: Desk, amounts: list[int]) -> Generator[Action, Any, int]:
    """Type a sum into the calculator and wait until it shows what comes out, to the last digit."""
    yield Type("+".join(map(_money, amounts)).replace("+-", "-"))
    yield Key("enter")
    shown = f"{(Decimal(sum(amounts)) / 100).normalize():f}"
    row = desk.node("table cell", f"^{shown.replace('.', '[.]')}$", app="galculator")
    return int(Decimal(row["name"]) * 100)


def _tab(desk: Desk, tabs: dict[str, int], name: str) -> Moves:
    yield Key(f"alt+{tabs[name]}")
    desk.focused(f"/{name}")


def _line(desk: Desk, number: int, text: str) -> Moves:
    """Write a line of the text editor anew."""
    yield Key("ctrl+l")
    desk.focused("Go To")
    yield Type(str(number))
    yield Key("enter")
    while True:
        try:
            desk.focused("Mousepad", timeout_s=20.0)
            break
        except NotShown:
            yield Key("enter")
    yield Key("shift+end")
    yield Type(text)


def _save(desk: Desk, path: str, line: str) -> Moves:
    """Save under its own name; it is in the file when that has the line."""
    there = f"grep -qFx -- {shlex.quote(line)} {shlex.quote(path)}"
    while True:
        yield Key("ctrl+s")
        with contextlib.suppress(NotShown):
            desk.until(there, timeout_s=30.0)
            return


def _front(desk: Desk, title: str) -> Moves:
    yield Click(*_PLACES[title])
    desk.focused(title)
