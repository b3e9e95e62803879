"""Text checks: what is a difference is declared."""

from __future__ import annotations

import pytest

from cua_gym.errors import GradingError
from cua_gym.grading.check import Verdict

from .conftest import Judge


@pytest.mark.parametrize("seen", ["x", "x\n", "x\r\n", "\ufeffx"])
def test_newline_kind_final_newline_and_bom_are_no_difference(judge: Judge, seen: str):
    """Editors add and drop them (B139)."""
    assert judge("text.equals", seen, expected="x").passed


@pytest.mark.parametrize("seen", ["x\n\n", " x", "X", "xx", "", "x y"])
def test_everything_else_is_a_difference(judge: Judge, seen: str):
    """No substring, no prefix, no case, unless declared."""
    assert not judge("text.equals", seen, expected="x").passed


def test_a_missing_file_is_a_plain_fail(judge: Judge):
    """Absent evidence is a value, not a fault of the grader."""
    found = judge("text.equals", None, expected="")
    assert not found.passed
    assert "does not exist" in found.message


def test_what_is_not_utf8_is_a_plain_fail(judge: Judge):
    """Hostile bytes end a check, not the grading."""
    assert not judge("text.equals", b"\xff\xfe\x00", expected="").passed


def test_declared_variants_and_case_count(judge: Judge):
    """`Canceled` is `cancelled` where the task says so (B130)."""
    facts = [["170"], ["cancelled", "canceled"]]
    assert judge("text.states", "Order number 170 is Canceled", facts=facts).passed
    assert not judge(
        "text.states", "Order number 170 is Canceled", facts=[["170"], ["cancelled"]]
    ).passed
    assert judge(
        "text.equals", "Canceled", expected="cancelled", variants=["canceled"], case="fold"
    )


@pytest.mark.parametrize("seen", ["1170", "170.5", "1,170", "000000170", "-170", "17 0", "170x"])
def test_a_fact_is_a_number_of_its_own(judge: Judge, seen: str):
    """170 is in none of these (B133)."""
    found = judge("text.states", f"order {seen} it is", facts=[["170"]])
    assert not found.passed


@pytest.mark.parametrize(
    "seen",
    ["-170", "(-170)", "it is \u2212170", ".170", "1 170", "1\u00a0170", "1'170", "170 000"],
)
def test_a_number_keeps_its_sign_and_its_groups(judge: Judge, seen: str):
    """Neither a negative number nor part of a longer one, at any place of the text."""
    assert not judge("text.states", seen, facts=[["170"]]).passed


@pytest.mark.parametrize("seen", ["170", "(170)", "in 2024 170 orders", "A-170", "170.", "+ 170"])
def test_a_number_among_other_things_is_found(judge: Judge, seen: str):
    """A year before it, brackets around it or a full stop after it change nothing."""
    assert judge("text.states", seen, facts=[["170"]]).passed


def test_long_texts_are_compared_in_one_go(judge: Judge):
    """A million lines against thousands: pairs of them would take an hour."""
    wanted = [f"line {n}" for n in range(5000)]
    found = judge("text.lines", "a\n" * 1_000_000, expected=wanted)
    assert "further ['a']" in found.message


def test_a_part_is_not_a_pass(judge: Judge):
    """Half the facts is value 0.5 and not passed (B128)."""
    found = judge("text.states", "red", facts=[["red"], ["blue"]])
    assert (found.value, found.passed) == (0.5, False)


def test_a_forbidden_fact_undoes_all(judge: Judge):
    """The right word beside the wrong one is no answer."""
    assert judge("text.states", "red or blue", facts=[["red"]], forbidden=["blue"]).value == 0


def test_a_pattern_must_match_the_whole_text(judge: Judge):
    """No match of a part."""
    assert judge("text.matches", "ab12\n", pattern=r"[a-z]+\d+").passed
    assert not judge("text.matches", "x ab12", pattern=r"[a-z]+\d+").passed


def test_lines_are_counted(judge: Judge):
    """A line twice is not the same as once; order is free only where declared."""
    assert judge("text.lines", "a\nb\n", expected=["a", "b"]).passed
    assert not judge("text.lines", "a\nb\nb", expected=["a", "b"]).passed
    assert not judge("text.lines", "b\na", expected=["a", "b"]).passed
    assert judge("text.lines", "b\na", expected=["a", "b"], order=False).passed


def test_a_rule_that_does_not_exist_is_the_graders_fault(judge: Judge):
    """Never a zero for the agent."""
    with pytest.raises(GradingError, match="case is one of"):
        judge("text.equals", "x", expected="x", case="insensitive")


def test_code_in_an_answer_is_text(judge: Judge, tmp_path):
    """Nothing an agent writes is evaluated (B179)."""
    target = tmp_path / "touched"
    attack = f"__import__('os').system('touch {target}')"
    for name, arguments in (
        ("text.equals", {"expected": "1"}),
        ("numbers_dates.number", {"expected": 1}),
        ("numbers_dates.date", {"expected": "2025-01-01"}),
        ("data.json_value", {"expected": 1}),
        ("answer.equals", {"expected": "1"}),
        ("data.csv_rows", {"expected": [["1"]]}),
    ):
        found = judge(name, attack, **arguments)
        assert isinstance(found, Verdict)
        assert not found.passed
    assert not target.exists()
