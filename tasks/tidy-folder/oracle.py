"""Drag the one file onto the folder, rename the other with F2."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from cua_gym.actions import Drag
from cua_gym.agent.moves import rename
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The rows of its list view are in the accessibility tree by name."""
    desk.wait_window("Project")

    def row(name: str) -> tuple[int, int]:
        return desk.find("table cell", f"^{re.escape(name)}$", app="[Tt]hunar")

    moved = f"test -e ~/Project/Archive/{params['moved']}"
    for _ in range(4):
        # A busy desktop sees a press and a release, and no drag between them.
        yield Drag((row(params["moved"]), row("Archive")))
        with contextlib.suppress(NotShown):
            desk.until(moved, timeout_s=20.0)
            break
    desk.until(moved)
    yield from rename(desk, "/home/user/Project", params["old"], params["new"])
    return None
