"""Eight light desktops in one vector, each with a task of its own."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from cua_gym import actions as a
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


def test_a_reused_batch_shows_what_the_screens_show(tmp_path: Path):
    """Only what changed is copied into it; over the end of an episode, too."""
    env = DesktopVectorEnv(
        2, TASKS[:2], backend="x11", autoreset_mode="SameStep", copy=False, film_every=0,
        runs=tmp_path,
    )  # fmt: skip
    opened = a.Shell("setsid -f mousepad >/dev/null 2>&1 </dev/null")
    written = [a.Click(400, 300), a.Type("abc\ndef"), a.Move(1279, 799), a.Key("ctrl+a")]
    gone = [a.Key("backspace"), a.Move(0, 0), a.Click(20, 790), a.Key("escape")]
    same = 0
    try:
        batch, _ = env.reset(seed=1)
        for action in (opened, a.Wait(4), *written, *gone, a.Submit(), opened, a.Wait(4), *written):
            seen, *_, infos = env.step([action, a.Move(640, 400)])
            assert np.shares_memory(seen["screenshot"], batch["screenshot"])
            for i, one in enumerate(env.envs):
                now = one.machine.screen.grab()
                if now.serial == infos["frame_serial"][i]:  # nothing has changed since
                    assert (now.rgb == seen["screenshot"][i]).all(), f"{action} in slot {i}"
                    same += 1
    finally:
        env.close()
    assert same > 15, "the screens were never at rest"


@pytest.mark.timeout(300)
def test_episodes_with_random_kills_are_all_accounted_for(tmp_path: Path):
    """The short form of a thousand (`tests.endure`)."""
    endure("x11", tmp_path, episodes=24, many=4, every_s=2.0)
