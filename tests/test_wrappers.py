"""Wrappers for classical reinforcement learning, on the computer in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cua_gym
from cua_gym import actions as a
from cua_gym.env import DesktopEnv
from cua_gym.machine.settle import Settle
from cua_gym.wrappers import KINDS, DiscreteActions, SmallScreen
from tests.run.toy import make_suite, on_toy_computer


@pytest.fixture
def env(tmp_path: Path) -> Iterator[DesktopEnv]:
    task = on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))
    settle = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
    env = cua_gym.make(task, runs=tmp_path / "runs", settle=settle)
    yield env
    env.close()


@pytest.mark.parametrize(
    ("numbers", "action"),
    [
        ((0, 0, 0, 0), a.Move(10, 12)),
        ((1, 31, 19, 0), a.Click(630, 468)),
        ((2, 0, 0, 1), a.Click(10, 12, count=2)),
        ((3, 0, 0, 1), a.Click(10, 12, button="right")),
        ((4, 3, 3, 1), a.Key("tab")),
        ((5, 3, 3, 1), a.Submit()),
    ],
)
def test_four_numbers_are_an_action(env: DesktopEnv, numbers: Any, action: a.Action):
    """The middle of a cell, counted from the top left; what a kind does not need is ignored."""
    wrapped = DiscreteActions(env)
    assert wrapped.action_space == gym.spaces.MultiDiscrete([6, 32, 20, 10])
    assert wrapped.action(np.array(numbers)) == action


def test_every_sample_is_possible(env: DesktopEnv):
    """Nothing is off the screen or unknown, also with cells of a pixel."""
    for columns, rows in ((32, 20), (1, 1), (640, 480)):
        wrapped = DiscreteActions(env, columns=columns, rows=rows)
        for _ in range(200):
            assert env.action_space.refusal(wrapped.action(wrapped.action_space.sample())) is None


def test_a_choice_of_kinds(env: DesktopEnv):
    """A pointing task needs no keys; what is unknown is named."""
    wrapped = DiscreteActions(env, kinds=["click"], keys=[])
    assert wrapped.action_space == gym.spaces.MultiDiscrete([1, 32, 20, 1])
    assert wrapped.action(np.array([0, 0, 0, 0])) == a.Click(10, 12)
    with pytest.raises(ValueError, match=r"'jump'.*double_click"):
        DiscreteActions(env, kinds=["jump"])
    with pytest.raises(ValueError, match="0 x 20"):
        DiscreteActions(env, columns=0)
    with pytest.raises(ValueError, match="needs keys"):
        DiscreteActions(env, keys=[])
    assert "submit" in KINDS


def test_a_small_picture(env: DesktopEnv):
    """Averages of the screenshot, in colour or gray."""
    small = SmallScreen(env, (64, 48))
    picture, _ = small.reset(seed=1)
    assert small.observation_space.contains(picture)
    whole = env.machine.screen.grab().rgb.reshape(48, 10, 64, 10, 3).mean((1, 3))
    assert np.abs(picture - whole).max() <= 1
    gray, _ = SmallScreen(env, (64, 48), gray=True).reset(seed=1)
    assert gray.shape == (48, 64, 1)


def test_both_together(env: DesktopEnv):
    """As a learner gets it: samples in, pictures and the score out."""
    learner = SmallScreen(DiscreteActions(env), (84, 84))
    learner.reset(seed=1)
    ended = False
    while not ended:
        picture, reward, terminated, truncated, _ = learner.step(learner.action_space.sample())
        assert learner.observation_space.contains(picture)
        assert reward == 0
        ended = terminated or truncated


def test_it_wraps_desktops():
    """Another environment has no screen."""
    with pytest.raises(TypeError, match="DesktopEnv"):
        DiscreteActions(gym.make("CartPole-v1"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "numbers",
    [(-1, 0, 0, 0), (6, 0, 0, 0), (0, 32, 0, 0), (0, 0, -1, 0), (0, 0, 0, 10), (0, 0, 0)],
)
def test_numbers_outside_the_space(env: DesktopEnv, numbers: Any):
    """They are refused; -1 is not the last kind, which would submit."""
    with pytest.raises(ValueError, match=r"no action of MultiDiscrete.*\["):
        DiscreteActions(env).action(np.array(numbers))


def test_keys_that_there_are_not(env: DesktopEnv):
    """Found when it is made, not by a learner's first try; chords are fine."""
    for keys in (["enter", "pag_down"], [""]):
        with pytest.raises(ValueError, match="cannot be pressed"):
            DiscreteActions(env, keys=keys)
    assert DiscreteActions(env, keys=["ctrl+s"]).action(np.array([4, 0, 0, 0])) == a.Key("ctrl+s")


def test_a_copy_from_the_spec(tmp_path: Path):
    """Gymnasium makes another one like it, with its wrappers and their arguments."""
    task = on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))
    env = gym.make("cua_gym/Desktop-v0", task=task, runs=tmp_path / "runs")
    wrapped = SmallScreen(DiscreteActions(env, columns=4, keys=["tab"]), (64, 48), gray=True)
    assert wrapped.spec is not None
    copy = gym.make(wrapped.spec)
    assert copy.spec is not None
    assert copy.spec.additional_wrappers == wrapped.spec.additional_wrappers
    assert copy.action_space == gym.spaces.MultiDiscrete([6, 4, 20, 1])
    assert copy.observation_space == wrapped.observation_space
    copy.close()
    wrapped.close()
