"""Read the name of the screen, open the list where it would have to be, give up."""

from __future__ import annotations

import re
from typing import Any

from cua_gym.actions import Click, GiveUp, Key
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The list of resolutions is there as soon as its first item is."""
    desk.wait_window("^Display$")
    screen = desk.node("combo box", '"$', app="display")["name"]
    if params["kind"] == "resolution":
        yield Click(*desk.find("combo box", r"^\d+x\d+\*?$", app="display"))
        desk.find("menu item", r"^\d+x\d+", app="display")
        try:
            desk.find("menu item", f"^{re.escape(params['value'])}", app="display", timeout_s=3.0)
        except NotShown:
            yield Key("escape")
        else:
            raise LookupError(f"{params['value']} is on offer")
    else:
        desk.until("test $(xrandr | grep -c ' connected') = 1")
    yield GiveUp(f"there is no such {params['kind']}; the only screen is {screen}")
    return None
