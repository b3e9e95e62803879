"""Numbers and dates: nothing is guessed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import GradingError
from cua_gym.grading.check import Fails
from evaluators.numbers_dates import close, parse_date, parse_number

from .conftest import Judge

NOT_NUMBERS = [
    "",
    " ",
    "nan",
    "NaN",
    "null",
    "None",
    "inf",
    "-inf",
    "zero",
    "-",
    ".",
    "0x0",
    "٣",
    "1_0",
]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_nothing_but_zero_is_zero(judge: Judge, text: str):
    """Empty, NaN, null and infinities never equal 0 (B137)."""
    assert not judge("numbers_dates.number", text, expected=0, absolute=1e9).passed


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12
    )
)
def test_a_number_survives_its_locale(value: Decimal):
    """What is written with marks is read back with the same marks."""
    english = f"{value:,.4f}"
    german = english.translate(str.maketrans(",.", ".,"))
    assert parse_number(english, grouping=",") == value
    assert parse_number(german, decimal=",", grouping=".") == value
    assert parse_number(f"{value:.4f}") == value


@given(st.text())
def test_any_text_is_a_number_or_fails(text: str):
    """No text makes the parser raise anything but its refusal."""
    try:
        assert parse_number(text).is_finite()
    except Fails:
        pass


@pytest.mark.parametrize("text", ["1,5", "1,50,000", "12,34", "1 000"])
def test_a_mark_that_is_not_declared_is_refused(text: str):
    """1,5 is never 15 (B143)."""
    with pytest.raises(Fails):
        parse_number(text)


def test_float_noise_is_no_difference(judge: Judge):
    """Equal at the stated tolerance (B140)."""
    found = judge("numbers_dates.number", "979.1358516266992", expected=979.1358516266946)
    assert found.passed
    assert not judge("numbers_dates.number", "979.1359", expected=979.1358516266946).passed


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("21", True),
        ("21 inches", True),
        ("21in", True),
        ("21 cm", False),
        ("21 inches long", False),
    ],
)
def test_only_the_declared_unit_may_follow(judge: Judge, text: str, passed: bool):
    """21 and 21 inches are one, 21 cm is not (B134)."""
    found = judge("numbers_dates.number", text, expected=21, unit="inches", unit_variants=["in"])
    assert found.passed is passed


def test_a_units_case_counts(judge: Judge):
    """A megawatt is no milliwatt."""
    assert judge("numbers_dates.number", "5 MW", expected=5, unit="MW").passed
    assert not judge("numbers_dates.number", "5 MW", expected=5, unit="mW").passed


def test_leading_zeros_are_no_number(judge: Judge):
    """000000170 is an identifier, as text and as number (B133)."""
    assert not judge("numbers_dates.number", "000000170", expected=170).passed
    assert not judge("text.equals", "000000170", expected="170").passed
    assert not judge("text.equals", "170", expected="000000170").passed
    with pytest.raises(GradingError, match="no number"):
        judge("numbers_dates.number", "170", expected="000000170")


@pytest.mark.parametrize("wanted", [float("nan"), float("inf"), "x", True])
def test_a_wanted_value_that_nothing_could_miss_is_the_graders_fault(wanted: object):
    """NaN in a task is an error, never a verdict."""
    with pytest.raises(GradingError):
        close(Decimal(1), wanted, 0, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["October 21st", "Oct 21st", "Oct. 21", "21 October", "21st of October", "21/10", "10/21"],
)
def test_dates_are_equal_as_dates(judge: Judge, text: str):
    """However it is written, as long as it can be read in one way (B131)."""
    assert judge("numbers_dates.date", text, expected="October 21st").passed


@pytest.mark.parametrize(
    "text", ["05/06", "5.6.2025", "30 February", "2025-13-01", "21/10/25", "soon", ""]
)
def test_ambiguous_and_impossible_dates_are_refused(text: str):
    """Two readings are none."""
    with pytest.raises(Fails):
        parse_date(text)


def test_the_year_counts_where_the_task_has_one(judge: Judge):
    """A missing year is a difference unless declared optional; a wrong one always is."""
    wanted = {"expected": "2025-10-21"}
    assert judge("numbers_dates.date", "Tuesday, October 21, 2025", **wanted).passed
    assert not judge("numbers_dates.date", "October 21", **wanted).passed
    assert judge("numbers_dates.date", "October 21", **wanted, year_optional=True).passed
    assert not judge("numbers_dates.date", "October 21, 2024", **wanted, year_optional=True).passed


def test_a_currency_stands_on_either_side(judge: Judge):
    """As people write it; another currency and a second sign are refused."""
    dollars = {"expected": -5, "unit": "$", "unit_variants": ["USD"], "unit_required": True}
    for text in ("-$5", "$-5", "-5 $", "-5 USD", "\u2212$5.00"):
        assert judge("numbers_dates.number", text, **dollars).passed
    for text in ("-€5", "$5", "-$-5", "USD -5", "-5", "$", "-$", "$$-5", "-5 CAD"):
        assert not judge("numbers_dates.number", text, **dollars).passed


@pytest.mark.parametrize("text", ["1" * 2_000_000, "0." + "0" * 300, "1e-999", "9" * 190])
def test_a_number_of_any_length_is_a_plain_fail(judge: Judge, text: str):
    """A million digits would overflow the arithmetic, which must not cost the verdict."""
    assert not judge("numbers_dates.number", text, expected=7).passed


def test_a_long_text_is_no_date(judge: Judge):
    """However many words it has."""
    assert not judge("numbers_dates.date", "mon " * 100_000, expected="2025-10-21").passed


def test_a_date_that_contradicts_itself_is_none(judge: Judge):
    """21 October 2025 is a Tuesday."""
    assert judge("numbers_dates.date", "Tue, 21 October 2025", expected="2025-10-21").passed
    assert not judge("numbers_dates.date", "Monday 21 October 2025", expected="2025-10-21").passed


@given(st.text())
def test_any_text_is_a_date_or_fails(text: str):
    """No text makes the parser raise anything but its refusal."""
    try:
        parse_date(text)
    except Fails:
        pass


@given(st.dates())
def test_iso_dates_are_read_back(day):
    """Any day that exists."""
    assert parse_date(day.isoformat()) == (day.year, day.month, day.day)
