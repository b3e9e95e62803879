"""Moves that several oracles make."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from cua_gym.actions import Action, Key, Type, Wait
from cua_gym.agent.oracle import Desk
from cua_gym.machine.base import Rgb

__all__ = ["save_as", "with_effect"]


def save_as(desk: Desk, path: str) -> Generator[Action, Any, None]:
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
    action: Action, before: Rgb, box: tuple[int, int, int, int], waits: int = 20
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
