"""Moves in a text editor with tabs among other windows, as Mousepad is."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.moves import Moves
from cua_gym.agent.oracle import Desk
from cua_gym.machine.desktop import NotShown

__all__ = ["front", "rewrite_line", "save", "show_tab"]


def show_tab(desk: Desk, number: int, name: str) -> Moves:
    """Show a tab of Mousepad.

    Args:
        number: its place, from 1.
        name: of its file.
    """
    yield Key(f"alt+{number}")
    desk.focused(f"/{name}")


def rewrite_line(desk: Desk, number: int, text: str) -> Moves:
    """Write a line of Mousepad's text anew.

    Args:
        number: from 1.
        text: without a line break.
    """
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


def save(desk: Desk, path: str, line: str) -> Moves:
    """Save a text under its own name.

    Args:
        path: where it lies, absolute guest path.
        line: what the file has once it is saved, and had not before.
    """
    there = f"grep -qFx -- {shlex.quote(line)} {shlex.quote(path)}"
    while True:
        yield Key("ctrl+s")
        with contextlib.suppress(NotShown):
            desk.until(there, timeout_s=30.0)
            return


def front(desk: Desk, places: Mapping[str, tuple[int, int]], title: str) -> Moves:
    """Bring a window to the front.

    Args:
        places: by title, a pixel of each window's frame or status bar that no other hides.
    """
    yield Click(*places[title])
    desk.focused(title)
