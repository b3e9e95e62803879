"""Every bundled task on a real machine: the oracle solves it, doing nothing does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.agent.load import load_agent
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.run.local import AgentChoice, Plan, run_local
from cua_gym.task import bundled_suite

pytestmark = pytest.mark.vm


@pytest.mark.parametrize("name", bundled_suite().names())
def test_oracle_solves_and_doing_nothing_does_not(name: str, tmp_path: Path) -> None:
    """oracle 1.0 with a frame per step; null and give-up 0.0."""
    agents = [AgentChoice(a, load_agent(a)) for a in ("oracle", "null", "give-up")]
    rows = list(run_local(Plan([bundled_suite().task(name)], agents, tmp_path, "run", [11])))
    said = {row.agent: str(row.outcome) for row in rows}
    assert {row.agent: row.outcome.score for row in rows} == {
        "oracle": 1.0,
        "null": 0.0,
        "give-up": 0.0,
    }, said
    assert rows[0].outcome.success
    for row in rows:
        assert row.folder is not None
        replay = Replay(RunFolder(row.folder))
        steps = list(replay.steps())
        assert len(list(replay.folder.frames.glob("*.png"))) == len(steps)
