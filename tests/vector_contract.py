"""What a vector of real machines promises, whatever kind they are."""

from __future__ import annotations

import os
import signal

import numpy as np
from gymnasium.vector import AutoresetMode

from cua_gym import actions as a
from cua_gym.vector import DesktopVectorEnv


def one_is_killed(env: DesktopVectorEnv, victim: int, shell: int) -> None:
    """Steps of the others are as they were; the slot ends unscored and comes back.

    Args:
        victim: the slot whose machine is killed.
        shell: a slot that is given a command where the others move the pointer.
    """
    many = env.num_envs
    mode = env.autoreset_mode
    observations, infos = env.reset(seed=0)
    assert "error" not in infos
    assert len(set(infos["instruction"])) == many
    assert observations in env.observation_space

    def at(offset: int) -> list[a.Action]:
        actions: list[a.Action] = [a.Move(100 + 50 * i, 300 + offset) for i in range(many)]
        actions[shell] = a.Shell(f"echo {offset}")
        return actions

    observations, _, _, truncations, infos = env.step(at(0))
    assert not truncations.any()
    for i in set(range(many)) - {shell}:
        assert observations["cursor"][i].tolist() == [100 + 50 * i, 300]
    assert infos["shell"][shell]["stdout"] == "0\n"
    folders = env.call("episode")

    os.kill(env.envs[victim].machine.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    observations, rewards, terminations, truncations, infos = env.step(at(20))
    hit = np.arange(many) == victim
    assert truncations.tolist() == hit.tolist()
    assert not terminations.any()
    assert not rewards.any()
    end = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert end["outcome"][victim]["kind"] == "unscored"
    assert end["_error"].tolist() == hit.tolist()
    for i in set(range(many)) - {shell, victim}:
        assert observations["cursor"][i].tolist() == [100 + 50 * i, 320]
        assert infos["steps_left"][i] == env.envs[i].episode.max_steps - 2
    assert infos["shell"][shell]["stdout"] == "20\n"

    if mode is AutoresetMode.DISABLED:
        _, infos = env.reset(options={"reset_mask": truncations})
        assert infos["_instruction"].tolist() == hit.tolist()
    elif mode is AutoresetMode.NEXT_STEP:
        *_, infos = env.step(at(40))
    assert "error" not in infos
    observations, _, _, truncations, infos = env.step(at(60))
    assert not truncations.any()
    for i in set(range(many)) - {shell}:
        assert observations["cursor"][i].tolist() == [100 + 50 * i, 360]
    anew = [now is not then for now, then in zip(env.call("episode"), folders, strict=True)]
    assert anew == hit.tolist()

    # An end that is no fault: it is graded, and the others go on.
    last: list[a.Action] = at(80)
    last[0] = a.Submit("nothing was done")
    observations, rewards, terminations, truncations, infos = env.step(last)
    first = np.arange(many) == 0
    assert terminations.tolist() == first.tolist()
    assert not truncations.any()
    end = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert end["outcome"][0]["kind"] == "scored"
    assert rewards[0] == end["outcome"][0]["score"]
    if mode is AutoresetMode.SAME_STEP:
        assert infos["_final_obs"].tolist() == first.tolist()
        assert infos["final_obs"][0] in env.single_observation_space
        assert infos["final_obs"][0]["cursor"].tolist() == [100, 360]
        assert infos["steps_left"][0] == env.envs[0].episode.max_steps
