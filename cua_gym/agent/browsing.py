"""Moves of oracles in Chromium; each waits for its effect.

A window has a page's title well before the page is drawn, and until then the page takes neither
keys nor clicks. So what is clicked or typed into is looked for in the accessibility tree first, and
what only loads a page is done again when that does not come. Asking a guest again and again takes
from the browser what it needs itself, so titles are waited for by the window's own word.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.moves import Box, Moves
from cua_gym.agent.oracle import Desk
from cua_gym.machine.base import Rgb
from cua_gym.machine.desktop import NotShown

__all__ = ["PAGE_S", "fill_form", "follow", "shown"]

PAGE_S = 200.0
"""A page takes some seconds in an emulated guest, and over a minute with busy neighbours."""

_APP = "[Cc]hrom"


def follow(desk: Desk, text: str, title: str) -> Moves:
    """Click on the link with exactly this text, and wait until the window's title has another."""
    for _ in range(3):
        x, y = desk.find("link", f"^{re.escape(text)}$", app=_APP, timeout_s=2 * PAGE_S)
        before = desk.look()
        yield Click(x, y)
        with contextlib.suppress(NotShown):
            _wait_page(desk, title, before)
            return
    desk.focused(title)


def _wait_page(desk: Desk, title: str, before: Rgb) -> None:
    """Until the title is there and something is drawn below it."""
    named = "xprop -id $(xdotool getactivewindow) -spy _NET_WM_NAME"
    desk.until(f"grep -qF -- {shlex.quote(title)} < <(exec {named} 2>/dev/null)", PAGE_S)
    desk.focused(title)
    desk.changed(before, (0, 100, before.shape[1], before.shape[0] - 140))
    desk.look()


def fill_form(desk: Desk, fields: Mapping[str, str], title: str) -> Moves:
    """Fill fields that stand one after the other, send the form, and wait for the next page.

    Nothing is done again once it is sent: a form sent twice is something else.

    Args:
        fields: how each is called, as its label begins, and its text.
        title: text of the next window title.
    """
    first, *_, last = [*fields] * 2
    x, y, width, height = box = shown(desk, "entry", first)
    if first != last:
        box = shown(desk, "entry", last)
    for _ in range(3):
        yield Click(x + width // 2, y + height // 2)
        yield Key("ctrl+a")
        before = desk.look()
        for number, text in enumerate(fields.values()):
            if number:
                yield Key("tab")  # it selects all that the next one has
            yield Type(text)
        # What came to the last one came to those before it.
        if desk.changed(before, box):
            break
    before = desk.look()
    yield Key("enter")
    _wait_page(desk, title, before)


def shown(desk: Desk, role: str, name: str) -> Box:
    """Wait until the page has something of this role whose name begins so: where it is."""
    x, y, width, height = desk.node(role, f"^{re.escape(name)}", app=_APP, timeout_s=2 * PAGE_S)[
        "box"
    ]
    return x, y, width, height
