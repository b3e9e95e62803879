"""Open the line, then the timetable; Ctrl+D, the name, the folder, Enter."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key, Type
from cua_gym.agent.browsing import PAGE_S, Moves, follow, shown
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """Which of the line's timetables it is, is known here; a person reads the dates."""
    one, other = params["lines"][params["line"]]
    page = params["url"].rpartition("/")[2]
    [which] = [key for key, name in params["tables"].items() if name == page]
    season = ("summer", "winter")[int(which[2])]
    days = ("Monday to Saturday", "Sundays")[int(which[3])]
    desk.focused(f"{params['company']} - Chromium")
    yield from follow(desk, f"{one} and {other}", f"{one} and {other} - Chromium")
    title = f"{params['from']} to {params['to']}, {season}, {days}"
    yield from follow(desk, title, f"{title} - Chromium")
    yield from _bookmark(desk, params["name"])
    return None


def _bookmark(desk: Desk, name: str) -> Moves:
    """The browser offers the folder Other bookmarks."""
    yield Key("ctrl+d")
    shown(desk, "entry", "Bookmark name")
    yield Key("ctrl+a")
    yield Type(name)
    folder = shown(desk, "combo box", "Folder")
    yield Key("tab")
    before = desk.look()
    yield Type("B")
    desk.changed(before, folder)
    desk.look()
    yield Key("shift+tab")
    yield Key("enter")
    desk.until(f"grep -qF '\"{name}\"' ~/.config/chromium/Default/Bookmarks", PAGE_S)
