"""Moves that several oracles make."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from cua_gym.actions import Action, Key, Type
from cua_gym.agent.oracle import Desk

__all__ = ["save_as"]


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
