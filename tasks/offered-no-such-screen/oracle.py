"""Open the list where it would have to be, see that it is not there, give up."""

from __future__ import annotations

import re
from typing import Any

from cua_gym.actions import Click, GiveUp, Key
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The list is there as soon as its first item is."""
    desk.wait_window("^Display$")
    if params["kind"] == "resolution":
        yield Click(*desk.find("combo box", r"^\d+x\d+\*?$", app="display"))
        wanted, nth = f"^{re.escape(params['value'])}", 0
        desk.find("menu item", r"^\d+x\d+", app="display")
    else:
        yield Click(*desk.find("combo box", '"$', app="display"))
        wanted, nth = '"$', 1
        desk.find("menu item", wanted, app="display")
    try:
        desk.find("menu item", wanted, app="display", nth=nth, timeout_s=3.0)
    except NotShown:
        yield Key("escape")
        yield GiveUp(f"the display settings offer no such {params['kind']}")
    raise LookupError(f"{params['value']} is on offer")
