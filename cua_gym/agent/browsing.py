"""Moves of oracles in Chromium, by keyboard; each waits until the window's title shows what it did.

A page's title stands before `` - Chromium`` in the window's. What only loads a page is done again
when the page does not come: a busy browser may not have been listening.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import Any

from cua_gym.actions import Action, Key, Type
from cua_gym.agent.oracle import Desk
from cua_gym.machine.desktop import NotShown

__all__ = ["PAGE_S", "fill_form", "follow", "go_to"]

PAGE_S = 90.0
"""A page takes a few seconds in an emulated guest, and ten times that with busy neighbours."""

Moves = Generator[Action, Any, None]


def go_to(desk: Desk, address: str, title: str) -> Moves:
    """Type an address into the address bar, and wait until the window's title has this text."""
    for _ in range(3):
        yield Key("ctrl+l")
        yield Type(address)
        # Without what the browser adds of longer addresses that it knows.
        yield Key("delete")
        yield Key("enter")
        with contextlib.suppress(NotShown):
            desk.focused(title, PAGE_S)
            return
    desk.focused(title, PAGE_S)


def follow(desk: Desk, text: str, title: str) -> Moves:
    """Follow the first link of the page that has this text, as found by find-in-page."""
    for _ in range(3):
        yield Key("ctrl+f")
        yield Type(text)
        # Leaves the focus on the link that was found.
        yield Key("escape")
        yield Key("enter")
        with contextlib.suppress(NotShown):
            desk.focused(title, PAGE_S)
            return
    desk.focused(title, PAGE_S)


def fill_form(desk: Desk, texts: Sequence[str], title: str) -> Moves:
    """Fill the fields from the one that has the focus, send the form, and wait for the next page.

    Nothing is done again here: a form sent twice is something else.
    """
    for number, text in enumerate(texts):
        if number:
            yield Key("tab")
        yield Type(text)
    yield Key("enter")
    desk.focused(title, 3 * PAGE_S)
