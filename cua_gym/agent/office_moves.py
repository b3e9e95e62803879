"""Moves of oracles in LibreOffice, by keyboard; each waits until the screen shows what it did.

LibreOffice carries a shortcut out when it comes to it, so what is typed right after one may go to
where the cursor was before. Places are measured from its window, which fills the screen.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.moves import Box, Moves
from cua_gym.agent.oracle import Desk
from cua_gym.machine.desktop import Window

__all__ = [
    "SAVED_S",
    "Box",
    "Moves",
    "answer_files",
    "fill_cells",
    "find_text",
    "go_to",
    "page_of",
    "pressed",
    "replace_all",
    "save_office_as",
]

SAVED_S = 240.0
"""The first save of a kind loads a filter; emulated, with busy neighbours, it took 40 s."""


def pressed(desk: Desk, key: str, box: Box) -> Moves:
    """Press a key and look until a box (x, y, width, height) of the screen is another.

    When it is not after a minute, go on: the checks will tell.
    """
    before = desk.look()
    yield Key(key)
    desk.changed(before, box)


def page_of(window: Window) -> Box:
    """Where a document or a sheet is drawn: below the toolbars, above what opens at the bottom."""
    return window.x, window.y + 150, window.width - 80, window.height - 280


def fill_cells(desk: Desk, window: Window, cells: str, text: str) -> Moves:
    """Enter a text or formula in a cell, or in all cells of a range, as Alt+Enter does.

    Args:
        cells: as the Name Box takes it, ``B2:B9``, ``Summary.B2``.
    """
    yield from go_to(desk, window, cells)
    yield Type(text)
    yield from pressed(desk, "alt+enter" if ":" in cells else "enter", page_of(window))


def go_to(desk: Desk, window: Window, cells: str) -> Moves:
    """Select a cell or range by the Name Box; the sheet has the keyboard again afterwards."""
    # A click takes the keyboard there before what is typed next; a shortcut would not.
    yield Click(window.x + 52, window.y + 125)
    _until_named(desk, window, True)
    yield Key("ctrl+a")
    yield Type(cells)
    yield Key("enter")
    _until_named(desk, window, False)


def _until_named(desk: Desk, window: Window, wanted: bool) -> None:
    """Wait until the Name Box has the keyboard, or has it no more, as its frame's colour shows.

    When it does not come to that in two minutes, go on: the checks will tell.
    """
    x, y = window.x + 2, window.y + 107
    for _ in range(240):
        edge = desk.look()[y : y + 36, x : x + 6].astype(int)
        blue = (edge[..., 2] > 200) & (edge[..., 0] < 110)
        if blue.any() == wanted:
            return


def find_text(desk: Desk, window: Window, text: str) -> Moves:
    """Select the next place that has a text, case aside; the cursor must be elsewhere."""
    bar = (window.x, window.y + window.height - 65, 300, 40)
    yield from pressed(desk, "ctrl+f", bar)
    yield Type(text)
    yield from pressed(desk, "enter", page_of(window))
    yield from pressed(desk, "esc", bar)


def replace_all(desk: Desk, pairs: Mapping[str, str], *, whole_words: bool = False) -> Moves:
    """Replace texts everywhere in a document, one after the other; each must be there."""
    yield Key("ctrl+h")
    dialog = desk.wait_window("^Find and Replace$", SAVED_S, active=True)
    said = (dialog.x + 85, dialog.y + 80, 500, 25)
    if whole_words:
        yield Key("alt+d")
    for old, new in pairs.items():
        for field, text in (("alt+f", old), ("alt+p", new)):
            yield Key(field)
            # Once, after a Replace All, the Ctrl+A that followed at once was lost.
            desk.look()
            yield Key("ctrl+a")
            desk.look()
            yield Type(text)
        # "Search key replaced 3 times."
        yield from pressed(desk, "alt+l", said)
    yield Key("alt+c")
    while not desk.gone("^Find and Replace$", timeout_s=30.0):
        yield Key("esc")


def save_office_as(desk: Desk, path: str) -> Moves:
    """Save the document under an absolute guest path, in the format that it has."""
    yield Key("ctrl+shift+s")
    yield from answer_files(desk, "^Save$", path)
    desk.until(f"unzip -tqq {shlex.quote(path)} 2>/dev/null", SAVED_S)


def answer_files(desk: Desk, title: str, path: str) -> Moves:
    """Answer a file dialog, which may take its time to come and to look into the folder."""
    desk.wait_window(title, SAVED_S, active=True)
    yield Key("ctrl+a")
    yield Type(path)
    yield Key("enter")
    while not desk.gone(title, timeout_s=20.0):
        yield Key("enter")
