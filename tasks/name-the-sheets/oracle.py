"""Move each sheet to the end in the wanted order; the same dialog gives it its name."""

from __future__ import annotations

import shlex
from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.office_moves import SAVED_S, go_to
from cua_gym.agent.oracle import Desk, Solution

DIALOG = "^Move/Copy Sheet$"


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """A sheet is gone to by its old name, which the Name Box takes."""
    window = desk.wait_window(params["file"], active=True)
    titles = [params[f"title_{n}"] for n in range(1, 5)]
    for title in params["order"]:
        yield from go_to(desk, window, f"Sheet{titles.index(title) + 1}.C2")
        yield Key("alt+s")
        yield Key("m")
        desk.wait_window(DIALOG, SAVED_S, active=True)
        # To the places, the last of them, and on to the name.
        for key in ("alt+i", "end", "tab", "ctrl+a"):
            desk.look()
            yield Key(key)
        yield Type(title)
        yield Key("enter")
        while not desk.gone(DIALOG, timeout_s=20.0):
            yield Key("enter")
    yield Key("ctrl+s")
    path = shlex.quote(f"/home/user/{params['folder']}/{params['file']}")
    saved = f"unzip -p {path} xl/workbook.xml 2>/dev/null | grep -qF {shlex.quote(titles[-1])}"
    desk.until(saved, SAVED_S)
    return None
