"""Whether a text says something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.gates.phrases import Said

TEXT = """Save it as /home/user/Documents/word.txt before 14 March 2025.
Total: 1,234.50 EUR; Rate 7 %; id r1a2b3; column F holds 12 rows. Müller & Söhne"""


@pytest.mark.parametrize(
    "value",
    [
        "word.txt", "SAVE it", "/home/user/Documents/word.txt", "save\n  it", "1234.5", 1234.5,
        "1.234,50", -1234.50, 7, "7", "2025-03-14", "r1a2b3", "F12", "Documents/word.txt",
        "Total\nRate", "mÜLLER", "Mu\N{COMBINING DIAERESIS}ller", 14, "F7:F12",
    ],
)  # fmt: skip
def test_is_said(value: str | float) -> None:
    """Case, whitespace, number format, date format, order of lines do not matter."""
    assert Said([TEXT]).has(value)


@pytest.mark.parametrize(
    "value",
    ["word.pdf", "save as", "1234.6", 1235, 17, "2025-03-15", "r1a2", "1a2b3", "ord", "G12", "ave",
     "Total\nVAT", "2025-02-30", "EUR Rate 9", "77.12"],
)  # fmt: skip
def test_is_not_said(value: str | float) -> None:
    """Parts of words and numbers, other values, words from here and there."""
    assert not Said([TEXT]).has(value)


def test_no_phrase_runs_over_texts() -> None:
    """The end of one text and the beginning of the next are no phrase."""
    assert not Said(["one two", "three"]).has("two three")


def test_signs_that_are_no_words() -> None:
    """What has neither letters nor digits is looked for as it is."""
    assert Said(["a 😀 b"]).has("😀")
    assert not Said(["a 😀 b"]).has("🚀")


@given(st.text(min_size=1).filter(str.strip), st.text(), st.text())
def test_whatever_stands_there_is_said(value: str, before: str, after: str) -> None:
    """Any text is found between spaces, whatever is around it."""
    assert Said([f"{before} {value} {after}"]).has(value)


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0.001, max_value=1e6))
def test_numbers_are_found_as_written(number: float) -> None:
    """A number is said by its plain decimal form."""
    assert Said([f"x {number:f} y"]).has(float(f"{number:f}"))
