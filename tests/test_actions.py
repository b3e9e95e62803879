"""Promises of the typed actions and their codec."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym import actions as a
from cua_gym.errors import ActionError

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
pixel = st.integers(-5000, 5000)
near = st.integers(-1000, 1000)  # however it goes, no path of five is too long
points = st.lists(st.tuples(near, near), min_size=2, max_size=5).map(tuple)
button = st.sampled_from(["left", "middle", "right"])
any_action = st.one_of(
    st.builds(a.Move, pixel, pixel),
    st.builds(a.Click, pixel, pixel, button, st.integers(1, 3), st.just(("ctrl", "shift"))),
    st.builds(a.MouseDown, button),
    st.builds(a.MouseUp, button),
    st.builds(a.Drag, points, button),
    st.builds(a.Scroll, pixel, pixel, st.integers(-100, 100), st.integers(-100, 100)),
    st.builds(a.Type, text),
    st.builds(a.Key, text),
    st.builds(a.KeyDown, text),
    st.builds(a.KeyUp, text),
    st.builds(a.Wait, st.floats(0, 60)),
    st.builds(a.Shell, text, st.floats(0, 600)),
    st.builds(a.Submit, st.none() | text),
    st.builds(a.GiveUp, text),
)


@given(any_action)
def test_every_action_survives_its_json_form(action: a.Action) -> None:
    """dict -> JSON -> dict -> action is the identity."""
    data = json.loads(json.dumps(a.action_to_dict(action)))
    assert a.action_from_dict(data) == action


def test_every_kind_is_covered_by_the_codec() -> None:
    """The union and the list of classes are the same."""
    assert len({a.action_to_dict(c)["type"] for c in _one_of_each()}) == len(a.ACTIONS)


def _one_of_each() -> list[a.Action]:
    return [
        a.Move(1, 2),
        a.Click(1, 2),
        a.MouseDown(),
        a.MouseUp(),
        a.Drag(((0, 0), (1, 1))),
        a.Scroll(1, 2, 0, 1),
        a.Type("x"),
        a.Key("enter"),
        a.KeyDown("shift"),
        a.KeyUp("shift"),
        a.Wait(),
        a.Shell("true"),
        a.Submit(),
        a.GiveUp(),
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "unknown action type"),
        ({"type": "teleport"}, "move, click"),
        ({"type": "move", "x": 1}, "needs y"),
        ({"type": "move", "x": 1, "y": 2, "z": 3}, "not z"),
        ({"type": "move", "x": 1.5, "y": 2}, "Move.x must be a whole number"),
        ({"type": "move", "x": True, "y": 2}, "whole number"),
        ({"type": "click", "x": 1, "y": 2, "count": 9}, "from 1 to 3"),
        ({"type": "click", "x": 1, "y": 2, "button": "thumb"}, "left, middle or right"),
        ({"type": "wait", "seconds": float("nan")}, "seconds from 0 to 60"),
        ({"type": "wait", "seconds": 1e9}, "seconds from 0 to 60"),
        ({"type": "type", "text": None}, "Type.text must be text"),
        ({"type": "type", "text": "\ud800"}, "surrogates"),
        ({"type": "drag", "path": [[1, 2]]}, "two"),
        ({"type": "drag", "path": [[1, 2], [3]]}, "points"),
        ({"type": "scroll", "x": 1, "y": 2, "dy": 101}, "from -100 to 100"),
    ],
)
def test_bad_input_is_an_action_error_that_says_what(data: dict[str, object], said: str) -> None:
    """Wrong input names the field, the value and what is allowed."""
    with pytest.raises(ActionError, match=said):
        a.action_from_dict(data)


def test_numpy_and_integral_floats_are_pixels() -> None:
    """Coordinates from arrays and JSON numbers become plain ints."""
    assert a.validate(a.Move(np.int64(3), 4.0)) == a.Move(3, 4)  # type: ignore[arg-type]


def test_only_a_valid_action_has_a_json_form() -> None:
    """A NaN would end the record, and so the attempt, instead of the agent's step."""
    with pytest.raises(ActionError, match="seconds from 0 to 60"):
        a.action_to_dict(a.Wait(float("nan")))


def test_a_path_has_a_length() -> None:
    """A drag that would take minutes is refused, however many points it has."""
    there_and_back = [(0, 0), (1000, 0)] * 10
    assert isinstance(a.action_from_dict({"type": "drag", "path": there_and_back}), a.Drag)
    with pytest.raises(ActionError, match="at most 20000 pixels"):
        a.action_from_dict({"type": "drag", "path": there_and_back * 3})
    with pytest.raises(ActionError, match="to 20000"):
        a.action_from_dict({"type": "drag", "path": [(0, 0), (10**400, 0)]})
