"""What the agent said at the end."""

from __future__ import annotations

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
