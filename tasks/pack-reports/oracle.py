"""One command, typed into the terminal."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Type
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """The prompt comes back when tar is done."""
    desk.wait_window("Terminal")
    pattern = f"*-{params['year']}-{params['quarter']}.csv"
    yield Type(f"cd ~/Reports && tar -czf ../{params['archive']}.tar.gz {pattern} && cd\n")
    desk.until(f"tar -tzf ~/{params['archive']}.tar.gz >/dev/null 2>&1")
    return None
