"""Eight light desktops in one vector, each with a task of its own."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

from cua_gym.vector import DesktopVectorEnv
from tests.endure import endure
from tests.vector_contract import one_is_killed

pytestmark = [pytest.mark.x11, pytest.mark.slow]

TASKS = [
    "fill-in-letter", "clean-csv", "count-gate-entries", "unpack-requested", "join-notes",
    "what-counts", "edit-server-settings", "work-out-a-bill",
]  # fmt: skip


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
@pytest.mark.timeout(300)
def test_eight_desktops_one_of_which_is_killed(mode: AutoresetMode, tmp_path: Path):
    """As virtual machines do."""
    env = gym.make_vec(
        "cua_gym/Desktop-v0",
        num_envs=8,
        task=TASKS,
        backend="x11",
        autoreset_mode=mode,
        film_every=3,
        runs=tmp_path,
    )
    assert isinstance(env, DesktopVectorEnv)
    try:
        one_is_killed(env, victim=3, shell=2)
    finally:
        env.close()


@pytest.mark.timeout(300)
def test_episodes_with_random_kills_are_all_accounted_for(tmp_path: Path):
    """The short form of a thousand (`tests.endure`)."""
    endure("x11", tmp_path, episodes=24, many=4, every_s=2.0)
