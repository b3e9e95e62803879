"""Placeholders: looked up, never evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.template import TemplateError, fill, fill_text, names


def test_a_lone_placeholder_keeps_its_type():
    """``"{x}"`` is the value; within other text it is written out."""
    assert fill("{x}", {"x": 41.5}) == 41.5
    assert fill({"a": ["{x}", "n={x}"]}, {"x": 3}) == {"a": [3, "n=3"]}
    assert fill("{input.a.txt}", {"input.a.txt": b"\0"}) == b"\0"


def test_keys_are_filled_too():
    """As text; two that become one would hide a value."""
    assert fill({"{x}.service": "{x}"}, {"x": 3}) == {"3.service": 3}
    assert list(names({"{x}": ["{y}"]})) == ["x", "y"]
    with pytest.raises(TemplateError, match="the same once filled"):
        fill({"{x}": 1, "3": 2}, {"x": 3})
    with pytest.raises(TemplateError, match="unknown placeholder"):
        fill({"{y}": 1}, {"x": 3})


@given(st.text())
def test_any_text_survives_with_its_braces_doubled(text: str):
    """Doubling the braces is enough to write any text."""
    escaped = text.replace("{", "{{").replace("}", "}}")
    assert fill_text(escaped, {}) == text
    assert not list(names(escaped))


@given(st.text(), st.text())
def test_a_value_is_never_read_as_a_template(value: str, around: str):
    """What a placeholder brings in is text, whatever braces it has."""
    around = around.replace("{", "").replace("}", "")
    assert fill_text(f"{around}{{x}}{around}", {"x": value}) == f"{around}{value}{around}"


@pytest.mark.parametrize("text", ["{y}", "{", "}", "{x", "{x!r}", "{x.__class__}", "{0}", "{}"])
def test_what_cannot_be_filled_is_refused(text: str):
    """Unknown names, stray braces, and everything that str.format would evaluate."""
    with pytest.raises(TemplateError):
        fill_text(text, {"x": "v"})


@pytest.mark.parametrize("value", [True, None, b"x", [1], {"a": 1}])
def test_only_text_and_numbers_fit_inside_text(value: object):
    """A list in the middle of a sentence is the author's mistake."""
    with pytest.raises(TemplateError, match="only text and numbers"):
        fill_text("a {x} b", {"x": value})
