"""Which content has which variants, whatever it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.gates.formats import variants

TEXT = st.text(st.sampled_from("ab1 .,;:=-\"'\n\r\t<{é"), max_size=60)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.floats(-9, 9)
    | st.text("a1 ", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=8,
)


@given(st.sampled_from(["/a.txt", "/a.csv", "/a.ini", "/a.html"]), st.none() | TEXT, TEXT)
def test_text(path: str, start: str | None, solved: str) -> None:
    """Of any two texts every broken variant is another text, and every kept one is too."""
    data = solved.encode()
    broken, kept = variants(path, None if start is None else start.encode(), data)
    assert all(variant.make() != data for variant in [*broken, *kept])
    assert len({variant.name for variant in kept}) == len(kept)


@given(JSON, JSON)
def test_json(start: object, solved: object) -> None:
    """Of any two values every broken variant is another value, and every kept one is the same."""
    old, new = json.dumps(start).encode(), json.dumps(solved).encode()
    broken, kept = variants("/a.json", old, new)
    if not isinstance(solved, dict | list):
        return  # a bare value is text
    same = repr(sorted_deep(json.loads(new)))
    assert all(repr(sorted_deep(json.loads(v.make()))) != same for v in broken)
    assert all(repr(sorted_deep(json.loads(v.make()))) == same for v in kept)


def sorted_deep(value: object) -> object:
    """One form of objects whose keys stand in another order."""
    if isinstance(value, dict):
        return sorted((key, sorted_deep(item)) for key, item in value.items())
    return [sorted_deep(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 no zip at all",
        b"\x89PNG\r\n\x1a\n cut",
        b"\x1f\x8b cut",
        b"%PDF-1.7\n\xff\xfe binary",
        b"<a><b></a>",
        b"{ no json",
        b"d\t755\tu\tu\t1\t\0 cut",
        b"SQLite format 3\0 cut",
        "é".encode("latin-1"),
        b'a,"b\n',
    ],
)
def test_broken_files(data: bytes) -> None:
    """What only looks like a format has no more variants than other bytes, and breaks nothing."""
    for suffix in ("txt", "csv", "json", "xml", "png", "zip", "xlsx", "db"):
        broken, kept = variants(f"/a.{suffix}", None, data)
        for variant in [*broken, *kept]:
            assert variant.make() != data


def test_untouched() -> None:
    """What is as it was has no variants."""
    assert variants("/a.txt", b"same", b"same") == ([], [])
