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
    ).passed
    assert not judge("text.equals", "Canceled", expected="cancelled", case="fold").passed


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


@pytest.mark.usefixtures("hurried")
def test_a_pattern_that_a_text_makes_try_for_ever_is_a_plain_fail(judge: Judge):
    """The author's pattern is careless, the agent's text abuses it: some seconds, then 0."""
    found = judge("text.matches", "a" * 50, pattern=r"(a+)+b")
    assert not found.passed
    assert "over 0.2 s" in found.message


@pytest.mark.usefixtures("hurried")
def test_a_text_of_a_million_near_facts_is_a_plain_fail(judge: Judge):
    """None of them is a number of its own, and each would have to be looked at."""
    assert "over 0.2 s" in judge("text.states", "1,1" * 1_000_000, facts=[["1"]]).message
    assert judge("text.states", "1,1 " * 10_000 + "1", facts=[["1"]]).passed


def test_accents_are_one_form_where_declared(judge: Judge):
    """Composed or not; widths only by NFKC."""
    assert judge("text.equals", "cafe\u0301", expected="caf\u00e9", form="NFC").passed
    assert not judge("text.equals", "cafe\u0301", expected="caf\u00e9").passed
    assert not judge("text.equals", "\uff11", expected="1", form="NFC").passed
    assert judge("text.equals", "\uff11", expected="1", form="NFKC").passed


@pytest.mark.parametrize("name", ["answer.equals", "text.equals", "text.states"])
def test_a_heap_of_accents_is_a_plain_fail(judge: Judge, name: str):
    """Sorting 160 KB of them would take a minute, and the verdict with it."""
    heap = "a" + "\u0301\u0323" * 80_000
    wanted = {"facts": [["b"]]} if name == "text.states" else {"expected": "b"}
    rule = {"form": "NFC"} if name == "text.equals" else {}
    assert "combining marks" in judge(name, heap, **wanted, **rule).message


def test_many_words_of_another_script_are_no_heap(judge: Judge):
    """Vowel signs are marks too, a few on each letter."""
    words = "\u0e17\u0e35\u0e48 " * 500 + "\u6f22" * 500
    assert judge("text.equals", words, expected=words, form="NFC").passed


def test_newlines_are_declared(judge: Judge):
    """Their kind, and the last one, count where the task says so (B139)."""
    assert not judge("text.equals", "x\r\ny", expected="x\ny", newline="exact").passed
    assert not judge("text.equals", "x\n", expected="x", final_newline="exact").passed


@pytest.mark.parametrize("seen", ["", " ", "nan", "null", "None"])
def test_nothing_states_no_zero(judge: Judge, seen: str):
    """An empty text has no fact, and is not a number either (B137)."""
    assert not judge("text.states", seen, facts=[["0"]]).passed
    assert not judge("answer.equals", seen, expected=0).passed
