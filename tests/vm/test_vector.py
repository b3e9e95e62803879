"""A vector of real machines: different tasks, one of them killed, resets side by side."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium.vector import AutoresetMode

from cua_gym import actions as a
from cua_gym.vector import DesktopVectorEnv

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
    """Steps of the others are as they were; the slot ends unscored and comes back."""
    observations, infos = env.reset(seed=0)
    assert "error" not in infos
    assert len(set(infos["instruction"])) == 4
    assert env.observation_space.contains(observations)
    # The same task with another seed has another folder on its desktop.
    assert (observations["screenshot"][0] != observations["screenshot"][3]).any()
    spots = [a.Move(100 + 50 * i, 300) for i in range(4)]
    shell = TASKS.index("slowest-request")
    spots[shell] = a.Shell("echo here")  # type: ignore[call-overload]
    observations, _, _, truncations, infos = env.step(spots)
    assert not truncations.any()
    for i in set(range(4)) - {shell}:
        assert observations["cursor"][i].tolist() == [100 + 50 * i, 300]
    assert infos["shell"][shell]["stdout"] == "here\n"
    os.kill(env.envs[1].machine.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    observations, rewards, terminations, truncations, infos = env.step(spots)
    assert truncations.tolist() == [False, True, False, False]
    assert not terminations.any()
    assert not rewards.any()
    end = infos["final_info"] if env.autoreset_mode is AutoresetMode.SAME_STEP else infos
    assert end["outcome"][1]["kind"] == "unscored"
    assert end["_error"].tolist() == [False, True, False, False]
    assert observations["cursor"][3].tolist() == [250, 300]
    if env.autoreset_mode is AutoresetMode.DISABLED:
        _, infos = env.reset(options={"reset_mask": truncations})
        assert infos["_instruction"].tolist() == truncations.tolist()
    elif env.autoreset_mode is AutoresetMode.NEXT_STEP:
        *_, infos = env.step(spots)
    assert "error" not in infos
    observations, *_, truncations, infos = env.step(spots)
    assert not truncations.any()
    assert observations["cursor"][1].tolist() == [150, 300]
