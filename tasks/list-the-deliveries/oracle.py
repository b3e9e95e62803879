"""Look at both pictures and both texts, then write the list line by line."""

from __future__ import annotations

import shlex
from typing import Any

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.moves import save_as
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """An oracle knows what the pictures show; an agent has to read them."""
    desk.focused("board-1.png")
    yield Key("page_down")
    desk.focused("board-2.png")
    yield Click(*desk.find("toggle button", "Mousepad", app="panel"))
    desk.focused("Mousepad")
    for number, name in ((1, "note.txt"), (2, "orders.csv")):
        yield Key(f"alt+{number}")
        desk.focused(name)
    yield Key("ctrl+n")
    desk.focused("Untitled")
    yield Type(f"time,gate,order,customer,{params['goods']}\n")
    for line in _lines(params):
        yield Type(f"{line}\n")
    path = f"/home/user/{params['folder']}/{params['list']}"
    yield from save_as(desk, path)
    desk.until(f"test -s {shlex.quote(path)}")
    return None


def _lines(params: dict[str, Any]) -> list[str]:
    """What the boards say, changed as the note says, with what the table says of each order."""
    about = {order: f"{who},{count}" for order, who, count in params["table"]}
    times, gates = dict([params["moved"]]), dict([params["turned"]])
    return sorted(
        f"{times.get(order, clock)},{gates.get(order, gate)},{order},{about[order]}"
        for rows in params["boards"]
        for clock, gate, order in rows
        if order != params["cancelled"]
    )
