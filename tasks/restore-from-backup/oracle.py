"""Read the index, look into every archive, give up."""

from __future__ import annotations

import re
import shlex
from typing import Any

from cua_gym.actions import GiveUp, Shell
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The reason is what the index says and what the archives show."""
    desk.wait_window(re.escape(params["place"]))
    folder = shlex.quote(f"/home/user/{params['folder']}")
    lost = params["lost"]
    _, info = yield Shell(f"cd {folder} && grep -F {shlex.quote(lost)}, {params['index']}")
    states = info["shell"]["stdout"]
    _, info = yield Shell(
        f"cd {folder} && for a in *.zip; do unzip -Z1 $a; done 2>/dev/null; "
        "for a in *.tar.gz; do tar -tzf $a; done 2>/dev/null"
    )
    if "removed" not in states or lost in info["shell"]["stdout"].split("\n"):
        raise AssertionError(f"{lost} is there after all")
    yield GiveUp(f"No backup holds {lost} any more; the index says: {states.splitlines()[0]}")
    return None
