"""What all tools have in common: arguments that fit the signature, answers that fit the wire."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp_types import TextContent

from cua_gym.bridge import desktop, ending, files, shell, tools
from cua_gym.bridge.excerpt import excerpt
from cua_gym.bridge.pictures import Picture
from cua_gym.bridge.session import recordable
from cua_gym.bridge.tools import Reply, Tool, fitting

EVERY = [*desktop.TOOLS, *shell.PROGRAMS, *files.FILES, *ending.TOOLS]
WELL = Tool(files.read_file)

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.sampled_from(["\ud800", "NaN", "1e400", "true", "left", "enter"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("function", EVERY, ids=lambda function: function.__name__)
def test_every_tool_says_what_it_does_and_takes(function: Any) -> None:
    """A description, and a schema that admits nothing else."""
    tool = Tool(function)
    assert len(tool.description) > 10
    assert tool.schema["type"] == "object"
    assert tool.schema["additionalProperties"] is False
    assert "title" not in tool.schema


@given(st.sampled_from(EVERY).map(Tool), st.data())
def test_arguments_of_any_kind_are_taken_or_refused_by_a_sentence(
    tool: Tool, data: st.DataObject
) -> None:
    """Nothing else is raised, and what is taken can be recorded and written as JSON."""
    names = st.sampled_from([*tool.schema.get("properties", {}), "other"])
    arguments = data.draw(st.dictionaries(names, anything, max_size=5))
    parsed, why = None, ""
    try:
        parsed = tool.parse(arguments)
    except ValueError as error:
        why = str(error)
    if parsed is None:
        assert why.startswith(tool.name)
        return
    json.dumps(recordable(arguments)).encode()
    json.dumps(parsed, ensure_ascii=False).encode()
    assert set(parsed) == set(tool.schema.get("properties", {}))


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "\ud800"},
        {"path": "a", "offset": True},
        {"path": "a", "offset": float("nan")},
        {"path": "a", "offset": float("inf")},
        {"path": None},
        {"path": ["a"]},
        {"\ud800": 1},
        {"path": "a", "\ud800": 1},
    ],
)
def test_what_only_looks_as_if_it_fitted_is_refused(arguments: Mapping[str, Any]) -> None:
    """Halves of characters are no text, true is no number, and neither is what is none."""
    with pytest.raises(ValueError, match=r"^read_file"):
        WELL.parse(arguments)


def test_a_number_may_be_written_as_models_write_it() -> None:
    """A whole float and digits in quotes say the same."""
    assert WELL.parse({"path": "a", "offset": 12.0})["offset"] == 12
    assert WELL.parse({"path": "a", "offset": "12"})["offset"] == 12


texts = st.text(st.characters(categories=["L", "Cc", "So"])).map(str.encode)


@given(st.lists(texts | st.binary()), st.integers(4, 50))
@example(["你".encode() * 3, b"\xe4\xbd"], 4)
@example([b"\xe4", b"\xe4\xbd\xa0"], 4)
def test_parts_make_the_whole(pieces: list[bytes], size: int) -> None:
    """Whatever the bytes and wherever they are cut: what is told, put together, is the whole."""
    whole, at, told = b"".join(pieces), 0, b""
    while at < len(whole):
        data = whole[at : at + size]
        part = excerpt(data, last=at + len(data) == len(whole))
        assert 0 < part.taken <= size
        told += part.content.encode() if part.is_text else base64.b64decode(part.content)
        at += part.taken
    assert told == whole


@given(st.text(st.characters(categories=["L", "So"])), st.integers(4, 50))
def test_text_is_told_as_text(text: str, size: int) -> None:
    """However it is cut no part of a text is taken for something else, and none has U+FFFD."""
    whole, at, told = text.encode(), 0, ""
    while at < len(whole):
        data = whole[at : at + size]
        part = excerpt(data, last=at + len(data) == len(whole))
        assert part.field("text") == "text"
        told += part.text
        at += part.taken
    assert told == text


@given(st.lists(anything), st.integers(0, 200))
def test_what_fits_is_the_longest_beginning(items: list[Any], limit: int) -> None:
    """No item is cut, and one more would not have fitted."""

    def size(some: list[Any]) -> int:
        return sum(
            len(json.dumps(i, ensure_ascii=False).encode("utf-8", "replace")) + 2 for i in some
        )

    kept = list(fitting(items, limit))
    assert repr(kept) == repr(items[: len(kept)])
    assert size(kept) <= limit
    assert kept == items or len(kept) == len(items) or size(items[: len(kept) + 1]) > limit


def test_an_answer_that_is_too_long_says_so() -> None:
    """A client never gets one that would end its connection."""
    picture = Picture(b"x" * 600_000, "image/png", (1, 1), (0, 0, 1, 1), 1.0)
    answer = tools._result(Reply("\x01" * 60_000, picture=picture))
    assert answer.is_error
    [said] = answer.content
    assert isinstance(said, TextContent)
    assert "ask for less" in said.text


def test_half_a_character_from_a_guest_is_no_dead_answer() -> None:
    """What a program says may be no text; it is told as far as it is."""
    answer = tools._result(Reply("a\ud800b", {"name": "\udcff"}))
    assert "a?b" in answer.model_dump_json()
    assert answer.structured_content == {"name": "?"}


@pytest.mark.parametrize("length", [4096, 4097])
def test_what_is_recorded_of_long_arguments(length: int) -> None:
    """Beyond a length their length, sum and beginning, at any depth."""
    kept = recordable({"a": ["x" * length], "b": 1})
    assert kept["b"] == 1
    assert (kept["a"] == ["x" * length]) == (length == 4096)
