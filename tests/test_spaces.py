"""Promises of the action and observation spaces."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym import actions as a
from cua_gym.spaces import ActionSpace, ToolPolicy, observation_space


@given(st.integers(0, 2**31), st.sampled_from(["gui", "shell", "both"]))
def test_samples_are_contained_and_seeded(seed: int, tools: ToolPolicy) -> None:
    """A seed gives the same actions again, all of them valid."""
    one = ActionSpace((64, 48), tools, seed)
    two = ActionSpace((64, 48), tools, seed)
    for _ in range(20):
        action = one.sample()
        assert action == two.sample()
        assert action in one
        assert not isinstance(action, a.Submit | a.GiveUp)


def test_policy_decides_what_exists() -> None:
    """A gui task has no Shell, a shell task no pointer; both may submit."""
    gui, shell = ActionSpace((64, 48), "gui"), ActionSpace((64, 48), "shell")
    assert a.Shell("ls") not in gui
    assert a.Click(1, 1) not in shell
    assert a.Shell("ls") in shell
    assert a.Submit() in gui
    assert a.Submit() in shell
    assert "Shell is not allowed" in (gui.refusal(a.Shell("ls")) or "")


@pytest.mark.parametrize(
    "action",
    [a.Move(64, 0), a.Move(0, 48), a.Move(-1, 0), a.Drag(((0, 0), (64, 1))), a.Key("nokey"), 7],
)
def test_what_does_not_fit_is_refused_with_a_reason(action: object) -> None:
    """Off-screen points, unknown keys and other objects are not contained."""
    space = ActionSpace((64, 48))
    assert action not in space
    assert space.refusal(action)


def test_json_round_trip_and_pickle() -> None:
    """Spaces pickle small, and samples survive Gymnasium's JSON hooks."""
    space = ActionSpace((1280, 800), seed=1)
    samples = [space.sample() for _ in range(10)]
    assert space.from_jsonable(space.to_jsonable(samples)) == samples
    assert copy.deepcopy(space) == space  # by way of pickle's protocol
    assert len(pickle.dumps(space)) < 2000


def test_observation_space_is_height_first() -> None:
    """Screenshots are (height, width, 3), cursors (x, y)."""
    space = observation_space((1280, 800))
    assert space["screenshot"].shape == (800, 1280, 3)
    assert space["cursor"].nvec.tolist() == [1280, 800]
