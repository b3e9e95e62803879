"""A vector of real machines: different tasks, one of them killed, resets side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

from cua_gym.vector import DesktopVectorEnv
from tests.endure import endure
from tests.vector_contract import one_is_killed

pytestmark = pytest.mark.vm

TASKS = ["tidy-folder", "write-many-scripts", "slowest-request", "tidy-folder"]


@pytest.fixture(params=list(AutoresetMode), ids=lambda mode: mode.value)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DesktopVectorEnv]:
    made = gym.make_vec(
        "cua_gym/Desktop-v0", num_envs=4, task=TASKS, autoreset_mode=request.param, runs=tmp_path
    )
    assert isinstance(made, DesktopVectorEnv)
    yield made
    made.close()


@pytest.mark.timeout(900)
def test_four_machines_one_of_which_is_killed(env: DesktopVectorEnv):
    """The same task twice, and the seeds make them two."""
    one_is_killed(env, victim=1, shell=TASKS.index("slowest-request"))
    first, last = (env.envs[i].episode.variation for i in (0, 3))
    assert first.params != last.params


@pytest.mark.timeout(600)
def test_episodes_with_random_kills_are_all_accounted_for(tmp_path: Path):
    """The short form of a hundred (`tests.endure`)."""
    endure("qemu", tmp_path, episodes=12, many=3, every_s=2.0)
