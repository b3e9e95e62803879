"""Promises of OpenAI's computer call in our actions."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import ComputerAction, ResponseComputerToolCall
from pydantic import TypeAdapter

from cua_gym import actions as a
from cua_gym.errors import ActionError, UnknownKey
from cua_gym.interop.actions import (
    ONLY_LOOK,
    PIXELS_PER_NOTCH,
    Scale,
    from_openai,
    to_openai,
)
from cua_gym.interop.actions.openai import WAIT_S
from tests.interop.actions import strategies as draw

EXAMPLES: list[tuple[dict[str, Any], tuple[a.Action, ...]]] = [
    ({"type": "click", "button": "left", "x": 10, "y": 20}, (a.Click(10, 20),)),
    ({"type": "click", "button": "right", "x": 10, "y": 20}, (a.Click(10, 20, "right"),)),
    ({"type": "click", "button": "wheel", "x": 10, "y": 20}, (a.Click(10, 20, "middle"),)),
    (
        {"type": "click", "button": "left", "x": 1, "y": 2, "keys": ["SHIFT", "CTRL"]},
        (a.Click(1, 2, "left", 1, ("shift", "ctrl")),),
    ),
    ({"type": "double_click", "x": 10, "y": 20, "keys": None}, (a.Click(10, 20, "left", 2),)),
    (
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]},
        (a.Drag(((1, 2), (3, 4), (5, 6))),),
    ),
    (
        {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}], "keys": ["ALT"]},
        (a.KeyDown("alt"), a.Drag(((1, 2), (3, 4))), a.KeyUp("alt")),
    ),
    ({"type": "keypress", "keys": ["CTRL", "L"]}, (a.Key("ctrl+l"),)),
    ({"type": "keypress", "keys": ["ENTER"]}, (a.Key("enter"),)),
    ({"type": "keypress", "keys": ["ARROWLEFT"]}, (a.Key("left"),)),
    ({"type": "keypress", "keys": ["PAGEDOWN"]}, (a.Key("page_down"),)),
    ({"type": "keypress", "keys": ["CMD", "SPACE"]}, (a.Key("super+space"),)),
    ({"type": "keypress", "keys": ["CTRL", "+"]}, (a.Key("ctrl+kp_add"),)),
    ({"type": "move", "x": 10, "y": 20}, (a.Move(10, 20),)),
    (
        {"type": "move", "x": 1, "y": 2, "keys": ["SHIFT"]},
        (a.KeyDown("shift"), a.Move(1, 2), a.KeyUp("shift")),
    ),
    ({"type": "screenshot"}, ONLY_LOOK),
    (
        {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 300},
        (a.Scroll(1, 2, 0, 3),),
    ),
    ({"type": "scroll", "x": 1, "y": 2, "scrollX": -200, "scrollY": 0}, (a.Scroll(1, 2, -2, 0),)),
    (
        {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": -100, "keys": ["CTRL"]},
        (a.KeyDown("ctrl"), a.Scroll(1, 2, 0, -1), a.KeyUp("ctrl")),
    ),
    ({"type": "type", "text": "naïve 你好"}, (a.Type("naïve 你好"),)),
    ({"type": "wait"}, (a.Wait(WAIT_S),)),
]


@pytest.mark.parametrize(("given_", "ours"), EXAMPLES)
def test_documented_examples(given_: dict[str, Any], ours: tuple[a.Action, ...]) -> None:
    """Each documented action is what its documentation says."""
    assert from_openai(given_) == ours


def test_every_action_of_the_package_is_known() -> None:
    """The examples are all the actions that the provider's own package has."""
    kinds = get_args(get_args(ComputerAction)[0])
    assert {given_["type"] for given_, _ in EXAMPLES} == {
        get_args(kind.model_fields["type"].annotation)[0] for kind in kinds
    }


CALL = {"type": "computer_call", "id": "1", "call_id": "2", "pending_safety_checks": []}


def test_a_batch_keeps_its_order() -> None:
    """The ``actions`` of a call are done one after another, looks in the middle left out."""
    batch = [{"type": "click", "x": 4, "y": 5, "button": "left"}, {"type": "screenshot"}]
    batch += [{"type": "type", "text": "penguin"}, {"type": "keypress", "keys": ["ENTER"]}]
    call = ResponseComputerToolCall.model_validate(
        {**CALL, "status": "completed", "actions": batch}
    )
    assert from_openai(call.model_dump()) == (a.Click(4, 5), a.Type("penguin"), a.Key("enter"))


def test_the_call_of_before_has_one_action() -> None:
    """``computer_use_preview`` puts its action into ``action``."""
    call = {**CALL, "action": {"type": "move", "x": 1, "y": 2}}
    assert from_openai(call) == (a.Move(1, 2),)


def test_nothing_of_a_batch_with_a_fault_is_returned() -> None:
    """One bad action refuses the whole batch: its rest was planned on it."""
    call = {**CALL, "actions": [{"type": "move", "x": 1, "y": 2}, {"type": "teleport"}]}
    with pytest.raises(ActionError, match="teleport"):
        from_openai(call)


@pytest.mark.parametrize(
    ("pixels", "notches"),
    [(0, 0), (1, 1), (-1, -1), (49, 1), (149, 1), (150, 2), (-150, -2), (-149, -1), (800, 8)],
)
def test_pixels_of_a_scroll_are_notches(pixels: int, notches: int) -> None:
    """The nearest number, a half away from zero, and at least one for any scroll at all."""
    given_ = {"type": "scroll", "x": 0, "y": 0, "scroll_x": pixels, "scroll_y": -pixels}
    assert from_openai(given_) == (a.Scroll(0, 0, notches, -notches),)


def test_the_scroll_is_not_scaled() -> None:
    """A smaller picture moves the place, not the wheel."""
    given_ = {"type": "scroll", "x": 99, "y": 0, "scroll_x": 0, "scroll_y": 200}
    assert from_openai(given_, scale=Scale((100, 100), (200, 200))) == (a.Scroll(199, 0, 0, 2),)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "needs its type"),
        ({"type": 3}, "needs its type"),
        ({"type": "teleport"}, "'double_click'"),
        ({"type": "click", "x": 1, "y": 2, "button": "back"}, r"no back button here.* alt\+left"),
        ({"type": "click", "x": 1, "y": 2, "button": "thumb"}, "'wheel'"),
        ({"type": "click", "x": 1, "button": "left"}, "y: Field required"),
        ({"type": "drag", "path": [{"x": 1, "y": 2}]}, "path: .*at least 2"),
        ({"type": "scroll", "x": 1, "y": 1, "scroll_y": 20_000}, "Scroll.dy must be from -100"),
        ({"type": "move", "x": 1, "y": 2, "speed": 3}, "speed"),
        ({"type": "computer_call", "actions": 3}, "must be a list, not a int"),
        ({"type": "computer_call"}, "a dict, not a NoneType"),
    ],
)
def test_what_is_wrong_is_said(given_: dict[str, Any], said: str) -> None:
    """An error names the field and what is allowed; no field is dropped in silence."""
    with pytest.raises(ActionError, match=said):
        from_openai(given_)


@pytest.mark.parametrize("keys", [[], ["CTRL", "CTRL"], ["HELLO"], [""]])
def test_bad_chords_are_unknown_keys(keys: list[str]) -> None:
    """Unknown, repeated and empty names are `UnknownKey`."""
    with pytest.raises(UnknownKey):
        from_openai({"type": "keypress", "keys": keys})


same = st.one_of(
    draw.moves,
    st.builds(lambda p, b, m: a.Click(*p, b, 1, m), draw.point, draw.button, draw.modifiers),
    st.builds(lambda p, m: a.Click(*p, "left", 2, m), draw.point, draw.modifiers),
    draw.paths.map(a.Drag),
    draw.scrolls(draw.notches, draw.notches),
    draw.text.map(a.Type),
    draw.chords(draw.names).map(a.Key),
    st.just(a.Wait(WAIT_S)),
)


@given(same)
def test_there_and_back(action: a.Action) -> None:
    """Ours to theirs to ours is the identity, and the provider's own types take what we write."""
    (said,) = to_openai(action)
    assert from_openai(said) == (action,)
    shape = TypeAdapter[Any](ComputerAction)
    parsed = shape.validate_python(said, strict=True)
    assert shape.dump_python(parsed, exclude_unset=True) == said


def test_a_notch_is_what_it_says() -> None:
    """The size of a notch is the documented constant."""
    (said,) = to_openai(a.Scroll(1, 2, 0, -3))
    assert said["scroll_y"] == -3 * PIXELS_PER_NOTCH


@pytest.mark.parametrize(
    "action",
    [
        a.MouseDown(),
        a.MouseUp(),
        a.Drag(((1, 1), (2, 2)), "right"),
        a.Click(1, 1, "right", 2),
        a.Click(1, 1, "left", 3),
        a.KeyDown("a"),
        a.KeyUp("a"),
        a.Key("less"),
        a.Wait(1.0),
        a.Shell("true"),
        a.Submit(),
        a.GiveUp(),
    ],
)
def test_what_it_cannot_say(action: a.Action) -> None:
    """What the format has no word for is an error, not something near it."""
    with pytest.raises(ActionError, match=r"cannot say|no name for"):
        to_openai(action)


@given(draw.junk)
def test_junk_is_refused(junk: Any) -> None:
    """Whatever arrives gives valid actions or an `ActionError`."""
    draw.actions_or_refusal(from_openai, junk)
    draw.actions_or_refusal(from_openai, {**CALL, "actions": junk})
