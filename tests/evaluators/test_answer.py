"""What the agent said at the end."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .conftest import Judge


def test_an_answer_is_all_of_the_answer(judge: Judge):
    """No sentence around it, and none is not an empty one."""
    assert judge("answer.equals", " 42\n", expected=42).passed
    for other in ("the answer is 42", "", "42.0", None):
        assert not judge("answer.equals", other, expected=42).passed


def test_giving_up_is_read_from_the_submission(judge: Judge):
    """Its text is the agent's, its kind is ours."""
    assert judge("answer.gave_up", '{"kind": "give_up"}').passed
    assert not judge("answer.gave_up", '{"kind": "submit", "answer": "give_up"}').passed


def test_a_reason_states_what_only_a_look_can_give(judge: Judge):
    """Its words are free; the kind of the end is ours."""
    facts = [["1920x1080", "Full HD"], ["Red Hat"]]

    def value(reason: object, kind: str = "give_up", forbidden: Sequence[str] = ()) -> float:
        text = json.dumps({"kind": kind, "reason": reason})
        return judge("answer.gave_up_since", text, facts=facts, forbidden=forbidden).value

    assert value("The RED HAT screen has at most 1920x1080.") == 1
    assert value("red hat, full hd") == 1
    assert value("1920x1080 at most") == 0.5
    assert value("The RED HAT screen has at most 1920x1080.", kind="submit") == 0
    assert value("Red Hat 1920x1080, or 2560x1440", forbidden=["2560x1440"]) == 0
    for reason in ("it cannot be done", "", None, ["Red Hat 1920x10800"], "Red Hats 11920x1080"):
        assert value(reason) <= 0.5


def test_a_reason_in_a_broken_submission(judge: Judge):
    """It is ours, but a check holds against anything."""
    for text in ("", "{", "[]", '{"kind": "give_up"}', None):
        assert not judge("answer.gave_up_since", text, facts=[["a"]]).passed
