"""Promises of OSWorld's ``computer_13`` in our actions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from cua_gym import actions as a
from cua_gym.errors import ActionError, UnknownKey
from cua_gym.interop.actions import ONLY_LOOK, Scale, from_computer_13, to_computer_13
from tests.interop.actions import strategies as draw

AT = (7, 9)


def word(kind: str, **parameters: Any) -> dict[str, Any]:
    """One action as OSWorld writes it."""
    return {"action_type": kind, "parameters": parameters}


EXAMPLES: list[tuple[Any, tuple[a.Action, ...]]] = [
    (word("MOVE_TO", x=100.0, y=200.7), (a.Move(100, 200),)),
    (word("MOVE_TO"), ONLY_LOOK),
    (word("CLICK"), (a.Click(7, 9),)),
    (word("CLICK", x=1, y=2), (a.Click(1, 2),)),
    (word("CLICK", button="right", x=1, y=2, num_clicks=2), (a.Click(1, 2, "right", 2),)),
    (word("CLICK", button="middle", num_clicks=3), (a.Click(7, 9, "middle", 3),)),
    ({"action_type": "CLICK", "x": 1, "y": 2}, (a.Click(1, 2),)),
    (word("MOUSE_DOWN"), (a.MouseDown(),)),
    (word("MOUSE_UP", button="right"), (a.MouseUp("right"),)),
    (word("RIGHT_CLICK"), (a.Click(7, 9, "right"),)),
    (word("DOUBLE_CLICK", x=1, y=2), (a.Click(1, 2, "left", 2),)),
    (word("DRAG_TO", x=1, y=2), (a.Drag(((7, 9), (1, 2))),)),
    (word("SCROLL", dy=5), (a.Scroll(7, 9, 0, -5),)),
    (word("SCROLL", dy=-5), (a.Scroll(7, 9, 0, 5),)),
    (word("SCROLL", dx=1, dy=0), (a.Scroll(7, 9, 1, 0), a.Scroll(7, 9, 0, 0))),
    (word("TYPING", text="a'\\b\n"), (a.Type("a'\\b\n"),)),
    (word("PRESS", key="enter"), (a.Key("enter"),)),
    (word("PRESS", key="\t"), (a.Key("tab"),)),
    (word("PRESS", key="?"), (a.Type("?"),)),
    (word("PRESS", key="num7"), (a.Key("kp_7"),)),
    (word("KEY_DOWN", key="shiftright"), (a.KeyDown("shift_r"),)),
    (word("KEY_UP", key="winleft"), (a.KeyUp("super"),)),
    (word("HOTKEY", keys=["ctrl", "pgdn"]), (a.Key("ctrl+page_down"),)),
    (word("HOTKEY", keys=["ctrl", "?"]), (a.Key("ctrl+shift+/"),)),
    (word("WAIT"), (a.Wait(2.0),)),
    ("WAIT", (a.Wait(2.0),)),
    ({"action_type": "FAIL"}, (a.GiveUp(),)),
    ("DONE", (a.Submit(),)),
]


@pytest.mark.parametrize(("given_", "ours"), EXAMPLES)
def test_documented_examples(given_: Any, ours: tuple[a.Action, ...]) -> None:
    """Each action of the space is what OSWorld does for it: a positive dy is up."""
    assert from_computer_13(given_, cursor=AT) == ours


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({}, "one of MOVE_TO, CLICK"),
        ("TELEPORT", "one of MOVE_TO, CLICK"),
        (word("MOVE_TO", x=1, y="2"), "y: "),
        (word("DRAG_TO", x=1), "DRAG_TO needs x and y"),
        (word("SCROLL"), "SCROLL needs dx or dy"),
        (word("SCROLL", dy=3, x=1), "SCROLL does not take x"),
        (word("CLICK", button="thumb"), "no button is called 'thumb'"),
        (word("CLICK", num_clicks=4), "from 1 to 3"),
        (word("TYPING"), "message: Field required"),
        (word("DONE", answer=1), "DONE does not take answer"),
        ({**word("CLICK", x=1, y=2), "speed": 3}, "CLICK does not take speed"),
        (word("KEY_DOWN", key="?"), "no key of its own; hold 'shift' and name '/'"),
        ({"action_type": "CLICK", "parameters": 3}, "parameters is a dict"),
    ],
)
def test_what_is_wrong_is_said(given_: Any, said: str) -> None:
    """An error names the parameter and what is allowed; none is dropped in silence."""
    with pytest.raises(ActionError, match=said):
        from_computer_13(given_, cursor=AT)


@pytest.mark.parametrize("key", ["hello", "volumeup", "", "é"])
def test_keys_that_no_pc_has(key: str) -> None:
    """OSWorld would do nothing for a key that X has not; here it is said."""
    with pytest.raises(UnknownKey):
        from_computer_13(word("PRESS", key=key), cursor=AT)


def test_the_pointer_is_native_and_the_rest_is_the_picture() -> None:
    """A drag starts where the pointer is on the screen and ends where the picture says."""
    scale = Scale((100, 100), (200, 200))
    drag = from_computer_13(word("DRAG_TO", x=99, y=0), cursor=AT, scale=scale)
    assert drag == (a.Drag((AT, (199, 0))),)


def back(action: a.Action, cursor: tuple[int, int]) -> list[a.Action]:
    """Ours to theirs to ours, the pointer followed."""
    done: list[a.Action] = []
    for said in to_computer_13(action):
        ours = from_computer_13(said, cursor=cursor)
        cursor = next(((m.x, m.y) for m in ours if isinstance(m, a.Move)), cursor)
        done += ours
    return done


@given(draw.osworld, draw.point)
def test_there_and_back(action: a.Action, cursor: tuple[int, int]) -> None:
    """Ours to theirs to ours is the identity, wherever the pointer is."""
    assert back(action, cursor) == [action]


@given(draw.started, draw.point)
def test_there_and_back_from_a_start(action: a.Drag | a.Scroll, cursor: tuple[int, int]) -> None:
    """A drag and a scroll come back as they were, after the move to where they start."""
    start = action.path[0] if isinstance(action, a.Drag) else (action.x, action.y)
    assert back(action, cursor) == [a.Move(*start), action]


def test_what_comes_back_in_parts() -> None:
    """Held modifiers, stops and other buttons are said by keys and buttons going down and up."""
    assert back(a.Click(1, 2, "left", 1, ("ctrl",)), AT) == [
        a.KeyDown("ctrl"), a.Click(1, 2), a.KeyUp("ctrl"),
    ]  # fmt: skip
    assert back(a.Drag(((1, 1), (2, 2)), "right"), AT) == [
        a.Move(1, 1), a.MouseDown("right"), a.Move(1, 1), a.Move(2, 2), a.MouseUp("right"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "action",
    [
        a.Type("naïve"),
        a.Key("kp_enter"),
        a.Wait(1.0),
        a.Shell("true"),
        a.Submit("42"),
        a.GiveUp("too hard"),
    ],
)
def test_what_it_cannot_say(action: a.Action) -> None:
    """What the space has no word for is an error, not something near it."""
    with pytest.raises(ActionError, match=r"cannot say|no name for"):
        to_computer_13(action)


@given(draw.junk)
def test_junk_is_refused(junk: Any) -> None:
    """Whatever arrives gives valid actions or an `ActionError`."""
    draw.actions_or_refusal(lambda given_: from_computer_13(given_, cursor=AT), junk)
