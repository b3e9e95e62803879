"""Ask the shell, then edit the report on the screen."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Key, Shell, Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The report is short, so it is typed anew around the two values."""
    desk.wait_window("report.txt")
    _, info = yield Shell(
        "awk '$4 == 200 {print $6 + 0, $5}' ~/server/access.log | sort -n | tail -n 1"
    )
    duration, request = info["shell"]["stdout"].split()
    yield Key("ctrl+a")
    yield Type(
        f"Incident {params['incident']}\nSlowest answered request: {request}\n"
        f"Duration: {duration} ms\nReported by: operations\n"
    )
    yield Key("ctrl+s")
    desk.until(f"grep -q {request} ~/server/report.txt")
    return None
