"""Moves of oracles in LibreOffice, by keyboard; each waits until the screen shows what it did.

LibreOffice carries a shortcut out when it comes to it, so what is typed right after one may go to
where the cursor was before. Places are measured from its window, which fills the screen. Moves
that go on from a screenshot are given the one from before and return the one from after.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from cua_gym.actions import Action, Key, Type, Wait
from cua_gym.agent.oracle import Desk
from cua_gym.machine.base import Rgb
from cua_gym.machine.desktop import Window

__all__ = [
    "SAVED_S",
    "answer_files",
    "fill_cells",
    "find_text",
    "page_of",
    "pressed",
    "replace_all",
    "save_office_as",
]

WAITS_S = (1.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""For what is seen at once on a machine that is not busy: few steps, and a minute in all."""
SAVED_S = 180.0
"""The first save of a kind loads a filter; emulated, with busy neighbours, it took 40 s."""

Box = tuple[int, int, int, int]
Move = Generator[Action, Any, Rgb]


def pressed(key: str, screen: Rgb, box: Box) -> Move:
    """Press a key and look until a box (x, y, width, height) of the screen is another.

    When it never is, go on: the checks will tell.
    """
    x, y, width, height = box
    part = slice(y, y + height), slice(x, x + width)
    observation, _ = yield Key(key)
    for seconds in WAITS_S:
        if (observation["screenshot"][part] != screen[part]).any():
            break
        observation, _ = yield Wait(seconds)
    after: Rgb = observation["screenshot"]
    return after


def page_of(window: Window) -> Box:
    """Where a document or a sheet is drawn: below the toolbars, above what opens at the bottom."""
    return window.x, window.y + 150, window.width - 80, window.height - 280


def fill_cells(window: Window, screen: Rgb, cells: str, text: str) -> Move:
    """Enter a text or formula in a cell, or in all cells of a range, as Alt+Enter does.

    Args:
        cells: as the Name Box takes it, ``B2:B9``, ``Summary.B2``.
    """
    # With its frame, which shows whether it has the keyboard.
    name_box = (window.x + 2, window.y + 107, 130, 36)
    screen = yield from pressed("ctrl+shift+t", screen, name_box)
    observation, _ = yield Type(cells)
    screen = yield from pressed("enter", observation["screenshot"], name_box)
    observation, _ = yield Type(text)
    screen = observation["screenshot"]
    key = "alt+enter" if ":" in cells else "enter"
    return (yield from pressed(key, screen, page_of(window)))


def find_text(window: Window, screen: Rgb, text: str) -> Move:
    """Select the next place that has a text, case aside; the cursor must be elsewhere."""
    bar = (window.x, window.y + window.height - 65, 300, 40)
    screen = yield from pressed("ctrl+f", screen, bar)
    observation, _ = yield Type(text)
    screen = observation["screenshot"]
    screen = yield from pressed("enter", screen, page_of(window))
    return (yield from pressed("esc", screen, bar))


def replace_all(
    desk: Desk, pairs: Mapping[str, str], *, whole_words: bool = False
) -> Generator[Action, Any, None]:
    """Replace texts everywhere in a document, one after the other; each must be there."""
    yield Key("ctrl+h")
    dialog = desk.wait_window("^Find and Replace$", active=True)
    said = (dialog.x + 85, dialog.y + 80, 500, 25)
    if whole_words:
        yield Key("alt+d")
    for old, new in pairs.items():
        yield Key("alt+f")
        yield Key("ctrl+a")
        yield Type(old)
        yield Key("alt+p")
        yield Key("ctrl+a")
        observation, _ = yield Type(new)
        # "Search key replaced 3 times."
        yield from pressed("alt+l", observation["screenshot"], said)
    yield Key("alt+c")
    while not desk.gone("^Find and Replace$", timeout_s=30.0):
        yield Key("esc")


def save_office_as(desk: Desk, path: str) -> Generator[Action, Any, None]:
    """Save the document under an absolute guest path, in the format that it has."""
    yield Key("ctrl+shift+s")
    yield from answer_files(desk, "^Save$", path)
    desk.until(f"unzip -tqq {path} 2>/dev/null", SAVED_S)


def answer_files(desk: Desk, title: str, path: str) -> Generator[Action, Any, None]:
    """Answer a file dialog, which may take its time to come and to look into the folder."""
    desk.wait_window(title, SAVED_S, active=True)
    yield Key("ctrl+a")
    yield Type(path)
    yield Key("enter")
    while not desk.gone(title, timeout_s=20.0):
        yield Key("enter")
