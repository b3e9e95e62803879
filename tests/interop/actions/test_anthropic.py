"""Promises of Anthropic's computer tool in our actions."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import beta
from anthropic.types.beta.beta_computer_member_name import BETA_COMPUTER_MEMBER_NAME_VALUES
from hypothesis import given
from hypothesis import strategies as st

from cua_gym import actions as a
from cua_gym.errors import ActionError, UnknownKey
from cua_gym.interop.actions import ONLY_LOOK, from_anthropic, to_anthropic
from tests.interop.actions import strategies as draw

AT = (7, 9)

# The documented actions of each version, in the order in which they came.
EXAMPLES: list[tuple[dict[str, Any], tuple[a.Action, ...]]] = [
    ({"action": "key", "text": "ctrl+s"}, (a.Key("ctrl+s"),)),
    ({"action": "key", "text": "Return"}, (a.Key("enter"),)),
    ({"action": "key", "text": "alt+Tab"}, (a.Key("alt+tab"),)),
    ({"action": "key", "text": "KP_0"}, (a.Key("kp_0"),)),
    ({"action": "key", "text": "ctrl+shift+Escape"}, (a.Key("ctrl+shift+esc"),)),
    ({"action": "key", "text": "Page_Down"}, (a.Key("page_down"),)),
    ({"action": "key", "text": "super"}, (a.Key("super"),)),
    ({"action": "key", "text": "ctrl+plus"}, (a.Key("ctrl+kp_add"),)),
    ({"action": "key", "text": "ctrl++"}, (a.Key("ctrl+kp_add"),)),
    ({"action": "key", "text": "ctrl + c"}, (a.Key("ctrl+c"),)),
    ({"action": "key", "text": "ctrl+question"}, (a.Key("ctrl+shift+/"),)),
    ({"action": "key", "text": "?"}, (a.Type("?"),)),
    ({"action": "key", "text": " "}, (a.Key("space"),)),
    ({"action": "key", "text": "Down Down Return"}, (a.Key("down"), a.Key("down"), a.Key("enter"))),
    ({"action": "type", "text": "naïve 你好\n"}, (a.Type("naïve 你好\n"),)),
    ({"action": "mouse_move", "coordinate": [100, 200]}, (a.Move(100, 200),)),
    ({"action": "left_click", "coordinate": [100, 200]}, (a.Click(100, 200),)),
    ({"action": "left_click"}, (a.Click(7, 9),)),
    ({"action": "right_click", "coordinate": [1, 2]}, (a.Click(1, 2, "right"),)),
    ({"action": "middle_click"}, (a.Click(7, 9, "middle"),)),
    ({"action": "double_click", "coordinate": [1, 2]}, (a.Click(1, 2, "left", 2),)),
    ({"action": "left_click_drag", "coordinate": [1, 2]}, (a.Drag(((7, 9), (1, 2))),)),
    ({"action": "screenshot"}, ONLY_LOOK),
    ({"action": "cursor_position"}, ONLY_LOOK),
    # 20250124
    (
        {"action": "left_click_drag", "start_coordinate": [3, 4], "coordinate": [1, 2]},
        (a.Drag(((3, 4), (1, 2))),),
    ),
    ({"action": "triple_click", "coordinate": [1, 2]}, (a.Click(1, 2, "left", 3),)),
    ({"action": "left_mouse_down"}, (a.MouseDown(),)),
    ({"action": "left_mouse_up"}, (a.MouseUp(),)),
    (
        {"action": "scroll", "coordinate": [1, 2], "scroll_direction": "down", "scroll_amount": 3},
        (a.Scroll(1, 2, 0, 3),),
    ),
    (
        {"action": "scroll", "scroll_direction": "left", "scroll_amount": 2, "text": "shift"},
        (a.KeyDown("shift"), a.Scroll(7, 9, -2, 0), a.KeyUp("shift")),
    ),
    (
        {"action": "left_click", "coordinate": [1, 2], "text": "ctrl+shift"},
        (a.Click(1, 2, "left", 1, ("ctrl", "shift")),),
    ),
    ({"action": "left_click", "coordinate": [1, 2], "text": ""}, (a.Click(1, 2),)),
    (
        {"action": "hold_key", "text": "ctrl+a", "duration": 1.5},
        (a.KeyDown("ctrl"), a.KeyDown("a"), a.Wait(1.5), a.KeyUp("a"), a.KeyUp("ctrl")),
    ),
    ({"action": "wait", "duration": 2}, (a.Wait(2.0),)),
    # 20251124
    ({"action": "zoom", "region": [100, 200, 400, 350]}, ONLY_LOOK),
    # the toolset of 20260801
    ({"action": "key", "text": "Tab", "repeat": 3}, (a.Key("tab"),) * 3),
    (
        {
            "action": "left_click_drag",
            "start_coordinate": [3, 4],
            "coordinate": [1, 2],
            "text": "ctrl",
        },
        (a.KeyDown("ctrl"), a.Drag(((3, 4), (1, 2))), a.KeyUp("ctrl")),
    ),
]


@pytest.mark.parametrize(("given_", "ours"), EXAMPLES)
def test_documented_examples(given_: dict[str, Any], ours: tuple[a.Action, ...]) -> None:
    """Each documented action is what its documentation says."""
    assert from_anthropic(given_, cursor=AT) == ours


def test_every_action_of_the_package_is_known() -> None:
    """The examples are all the actions that the provider's own package names."""
    assert {given_["action"] for given_, _ in EXAMPLES} == set(BETA_COMPUTER_MEMBER_NAME_VALUES)


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "needs its action"),
        ({"action": 3}, "needs its action"),
        ({"action": "left_clack"}, "left_click"),
        ({"action": "mouse_move"}, "coordinate: Field required"),
        (
            {"action": "mouse_move", "coordinate": [1.5, 2]},
            r"coordinate\.0: .* integer; got 1.5",
        ),
        ({"action": "mouse_move", "coordinate": ["1", 2]}, r"coordinate\.0: "),
        ({"action": "left_click", "coordinate": [1, 2, 3]}, "coordinate"),
        ({"action": "left_click", "coordinate": [1, 2], "modifiers": "ctrl"}, "modifiers"),
        ({"action": "screenshot", "coordinate": [1, 2]}, "coordinate"),
        ({"action": "wait", "duration": 61}, "less than or equal to 60; got 61"),
        ({"action": "wait", "duration": -1}, "got -1"),
        ({"action": "hold_key", "text": "", "duration": 1}, "text"),
        ({"action": "scroll", "scroll_direction": "in", "scroll_amount": 1}, "'up', 'down'"),
        ({"action": "scroll", "scroll_direction": "up", "scroll_amount": -1}, "got -1"),
        ({"action": "key", "text": "a", "repeat": 101}, "repeat"),
        ({"action": "type", "text": "x" * 20_001}, "at most 20000"),
    ],
)
def test_what_is_wrong_is_said(given_: dict[str, Any], said: str) -> None:
    """An error names the field and what is allowed; no field is dropped in silence."""
    with pytest.raises(ActionError, match=said):
        from_anthropic(given_, cursor=AT)


@pytest.mark.parametrize("text", ["Retrun", "ctrl+", "ctrl+ctrl", "", "   ", "XF86AudioPlay", "+a"])
def test_bad_chords_are_unknown_keys(text: str) -> None:
    """Unknown, repeated and empty names are `UnknownKey`; a final plus is a key."""
    if text == "ctrl+":
        assert from_anthropic({"action": "key", "text": text}, cursor=AT)
        return
    with pytest.raises(UnknownKey):
        from_anthropic({"action": "key", "text": text}, cursor=AT)


def test_an_unknown_key_gets_near_names() -> None:
    """The error helps a model to find the key."""
    with pytest.raises(UnknownKey, match=r"'Retrun'; did you mean .*return"):
        from_anthropic({"action": "key", "text": "ctrl+Retrun"}, cursor=AT)


same = st.one_of(
    draw.moves,
    st.builds(lambda p, m, b: a.Click(*p, *b, m), draw.point, draw.modifiers, st.sampled_from(
        [("left", 1), ("right", 1), ("middle", 1), ("left", 2), ("left", 3)]
    )),
    st.builds(lambda p, q: a.Drag((p, q)), draw.point, draw.point),
    draw.straight_scrolls,
    st.just(a.MouseDown()),
    st.just(a.MouseUp()),
    draw.text.map(a.Type),
    draw.chords(draw.names).map(a.Key),
    draw.seconds.map(a.Wait),
)  # fmt: skip


@given(same, draw.point)
def test_there_and_back(action: a.Action, cursor: tuple[int, int]) -> None:
    """Ours to theirs to ours is the identity, wherever the pointer is."""
    (said,) = to_anthropic(action)
    assert from_anthropic(said, cursor=cursor) == (action,)


def test_what_comes_back_in_parts() -> None:
    """A drag with stops is its moves with the button down; a diagonal scroll is two."""

    def back(action: a.Action) -> list[a.Action]:
        return [ours for said in to_anthropic(action) for ours in from_anthropic(said, cursor=AT)]

    assert back(a.Drag(((1, 1), (2, 2), (3, 3)))) == [
        a.Move(1, 1), a.MouseDown(), a.Move(2, 2), a.Move(3, 3), a.MouseUp(),
    ]  # fmt: skip
    assert back(a.Scroll(1, 2, 3, -4)) == [a.Scroll(1, 2, 3, 0), a.Scroll(1, 2, 0, -4)]


@pytest.mark.parametrize(
    "action",
    [
        a.MouseDown("right"),
        a.Drag(((1, 1), (2, 2)), "right"),
        a.Click(1, 1, "right", 2),
        a.KeyDown("a"),
        a.KeyUp("a"),
        a.Key("less"),
        a.Shell("true"),
        a.Submit(),
        a.GiveUp(),
    ],
)
def test_what_it_cannot_say(action: a.Action) -> None:
    """What the tool has no word for is an error, not something near it."""
    with pytest.raises(ActionError, match=r"cannot say|no name for"):
        to_anthropic(action)


@given(same)
def test_what_we_say_fits_the_package(action: a.Action) -> None:
    """The provider's own types take what we write, but for fractions of a second."""
    (said,) = to_anthropic(action)
    name = said.pop("action")
    shape = getattr(beta, f"BetaComputer{name.title().replace('_', '')}Input")
    if isinstance(action, a.Wait):
        said["duration"] = int(said["duration"])
    assert shape.model_validate(said, strict=True).model_dump(exclude_unset=True) == said


@given(draw.junk)
def test_junk_is_refused(junk: Any) -> None:
    """Whatever arrives gives valid actions or an `ActionError`."""
    draw.actions_or_refusal(lambda given_: from_anthropic(given_, cursor=AT), junk)
