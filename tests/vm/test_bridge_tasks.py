"""Bundled tasks through the bridges alone: an MCP client plays their oracles' moves.

Each day another tenth of them, as of the gates (`test_gates`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.task import bundled_suite
from tests.vm.bridge_desk import BridgeDesk
from tests.vm.conftest import todays
from tests.vm.mcp_harness import Transport, serving

pytestmark = pytest.mark.vm

SEED = 0
"""One of the gates' own, so its start state is made once."""


@pytest.mark.parametrize("name", todays(bundled_suite().names()))
def test_the_tools_suffice_for_every_task(name: str, tmp_path: Path) -> None:
    """Solved by tools that every agent has, scored 1.0, each step with the call it came from."""
    variation = bundled_suite().task(name).variation(SEED)
    # Tasks with a shell go by the stdio ends, so both transports do tasks to their ends.
    transport: Transport = "stdio" if variation.task.tool_policy == "both" else "http"
    with serving(name, tmp_path, SEED) as server:
        with server.connected(transport) as remotes:
            assert set(remotes) == set(server.ends)
            desk = BridgeDesk(remotes)
            solve = variation.task.module("oracle.py").solve
            desk.play(solve(dict(variation.params), desk))
        outcome = server.outcome()
    assert (outcome["outcome"], outcome["score"]) == ("scored", 1.0), outcome
    steps = list(Replay(RunFolder(server.folder)).steps())
    assert all(step.call for step in steps[1:])
