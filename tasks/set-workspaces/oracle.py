"""Search the settings, open Workspaces, set the number."""

from __future__ import annotations

import contextlib
from typing import Any

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The dialogs draw inside the settings window, where no accessible node says what they are.

    So two clicks are measured from the nodes around them.
    """
    desk.wait_window("^Settings$")
    observation, _ = yield Type("workspaces")
    x, y, _, height = desk.node("label", "^Personal$", app="settings")["box"]
    # The third of the icons that the search leaves, below the heading. The title changes first;
    # the icons go when the dialog is there.
    yield Click(x + 440, y + height + 28)
    desk.changed(observation["screenshot"], (x, y, 300, 20))
    window = desk.wait_window("^Workspaces$")
    count = f"xfconf-query -c xfwm4 -p /general/workspace_count | grep -qx {params['count']}"
    for _ in range(4):
        # A dialog that is still being built takes some of this and drops the rest.
        yield Click(window.x + 215, window.y + 100, count=2)
        yield Key("ctrl+a")
        yield Type(str(params["count"]))
        yield Key("tab")
        with contextlib.suppress(NotShown):
            desk.until(count, timeout_s=20.0)
            return None
    desk.until(count)
    return None
