"""JSON, CSV and INI by their own rules."""

from __future__ import annotations

import pytest

from .conftest import Judge


@pytest.mark.parametrize("seen", ['{"a": 0}', '{"a": 0.0}', '{"b": 1, "a": 0}'])
def test_a_json_value_is_found_at_its_path(judge: Judge, seen: str):
    """Order and spelling of a number are free."""
    assert judge("data.json_value", seen, path=["a"], expected=0).passed


@pytest.mark.parametrize(
    "seen",
    ['{"a": "0"}', '{"a": false}', '{"a": null}', '{"a": NaN}', '{"a": ""}', '{}', '[0]', "",
     '{"a": 0, "a": 0}', '{"a": [0]}', "{'a': 0}", "[" * 100_000],
)  # fmt: skip
def test_another_type_is_another_value(judge: Judge, seen: str):
    """Null, false, empty and NaN are not 0; a hostile nesting is a plain fail (B137)."""
    assert not judge("data.json_value", seen, path=["a"], expected=0).passed


def test_a_decimal_comma_is_read_by_the_declared_locale(judge: Judge):
    """1,5 is 1.5 and never 15 (B143)."""
    german = {"delimiter": ";", "decimal": ","}
    assert judge("data.csv_rows", "1,5;2,0\n", expected=[[1.5, 2]], **german).passed
    assert not judge("data.csv_rows", "1,5;2,0\n", expected=[[15, 20]], **german).passed
    assert not judge("data.csv_rows", "1,5;2,0\n", expected=[[1.5, 2]], delimiter=";").passed


def test_rows_are_all_rows(judge: Judge):
    """A row too many, too few or elsewhere is a difference; order only where declared."""
    assert judge("data.csv_rows", "a,b\n1,\n", expected=[["a", "b"], [1, ""]]).passed
    assert not judge("data.csv_rows", "a,b\n1,\n", expected=[["a", "b"], [1, 0]]).passed
    assert not judge("data.csv_rows", "a,b\n", expected=[["a", "b"], [1, ""]]).passed
    assert judge("data.csv_rows", "b\na\n", expected=[["a"], ["b"]], order=False).passed
    assert not judge("data.csv_rows", "a\na\n", expected=[["a"], ["b"]], order=False).passed


def test_a_cell_is_found_by_row_and_header(judge: Judge):
    """Row 1 is the header."""
    table = "name,sum\nx,5\n"
    assert judge("data.csv_cell", table, row=2, column="sum", expected=5).passed
    assert not judge("data.csv_cell", table, row=3, column="sum", expected=5).passed
    assert not judge("data.csv_cell", table, row=2, column="total", expected=5).passed


@pytest.mark.parametrize("seen", ['a,"b', "x" * 2_000_000, "\0"])
def test_broken_csv_is_a_plain_fail(judge: Judge, seen: str):
    """Unclosed quotes and huge cells end the check, not the grading."""
    assert not judge("data.csv_rows", seen, expected=[["a", "b"]]).passed


def test_an_ini_value_is_that_of_its_section(judge: Judge):
    """Names are exact; a key twice is refused."""
    text = "[One]\nKey=v\n[Two]\nKey=w\n"
    assert judge("data.ini_value", text, section="Two", key="Key", expected="w").passed
    assert not judge("data.ini_value", text, section="Two", key="key", expected="w").passed
    assert not judge("data.ini_value", "[T]\na=1\na=1", section="T", key="a", expected="1").passed
