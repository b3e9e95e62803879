"""Moves that several oracles make."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Any

from cua_gym.actions import Action, Click, Key, Type, Wait
from cua_gym.agent.oracle import Desk
from cua_gym.machine.base import Rgb
from cua_gym.machine.desktop import NotShown

__all__ = ["Box", "Moves", "rename", "save_as", "with_effect"]

Box = tuple[int, int, int, int]
"""x, y, width, height in screen pixels."""

Moves = Generator[Action, Any, None]


def rename(desk: Desk, folder: str, old: str, new: str) -> Moves:
    """Rename a file in Thunar's list of its folder.

    Args:
        folder: absolute guest path.
        new: with the ending of ``old``.
    """
    dialog = f'Rename "{old}"'
    for _ in range(6):
        # Sought anew each time: now and then a busy Thunar loses the row of what was renamed.
        yield Click(*desk.find("table cell", f"^{re.escape(old)}$", app="[Tt]hunar"))
        yield Key("f2")
        with contextlib.suppress(NotShown):
            desk.focused(dialog, timeout_s=15.0)
            break
        # It has not yet looked at what is selected, and takes no F2 or another's. Or, after earlier
        # renames, its rows are not where they are said to be: F5 has it list them anew.
        yield Key("escape")
        yield Key("f5")
    else:
        desk.focused(dialog)
    # All but the ending is selected.
    yield Type(new.rpartition(".")[0])
    yield Key("enter")
    there = f"test -e {shlex.quote(f'{folder}/{new}')}"
    while True:
        try:
            desk.until(there, timeout_s=20.0)
            break
        except NotShown:
            # Until it has looked at the name, the dialog takes no Enter.
            desk.focused(dialog)
            yield Key("enter")
    # The dialog is still there for a moment, and takes the next click.
    desk.focused(f"{PurePosixPath(folder).name} - Thunar")


def save_as(desk: Desk, path: str) -> Moves:
    """Save a GTK program's new document under an absolute guest path."""
    yield Key("ctrl+s")
    desk.wait_window("^Save As$")
    yield Key("ctrl+a")
    yield Type(path)
    yield Key("enter")
    # While the dialog still looks into the folder that was typed, it takes no Enter.
    while not desk.gone("^Save As$", timeout_s=3.0):
        yield Key("enter")


def with_effect(
    action: Action, before: Rgb, box: Box, waits: int = 20
) -> Generator[Action, Any, Rgb]:
    """Do an action and look until a box (x, y, width, height) of the screen is another.

    A busy program queues keys, and LibreOffice drops repeated arrows from its queue.

    Args:
        before: ``(height, width, 3)`` screenshot from before the action.
        waits: seconds to look for; then it goes on, and the checks will tell.

    Returns:
        The screenshot with the effect.
    """
    x, y, width, height = box
    part = slice(y, y + height), slice(x, x + width)
    observation, _ = yield action
    for _ in range(waits):
        if (observation["screenshot"][part] != before[part]).any():
            break
        observation, _ = yield Wait(1.0)
    screenshot: Rgb = observation["screenshot"]
    return screenshot
