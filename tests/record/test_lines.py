"""Files of JSON lines."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.record.lines import LineTail, LineWriter, read_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
RECORDS = st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples."""
    return tmp_path_factory.mktemp("lines")


@given(old=RECORDS, new=RECORDS, cut=st.integers(0, 40))
def test_append_after_a_torn_line(
    folder: Path, old: list[dict[str, object]], new: list[dict[str, object]], cut: int
) -> None:
    """Wherever the file was torn, whole old records and all new ones read back."""
    path = folder / "traj.jsonl"
    path.unlink(missing_ok=True)
    with LineWriter(path) as lines:
        for record in old:
            lines.append(record)
    os.truncate(path, max(0, path.stat().st_size - cut))
    whole = path.read_bytes().count(b"\n")
    with LineWriter(path) as lines:
        for record in new:
            lines.append(record)
    assert list(read_lines(path)) == old[:whole] + new


def test_torn_line_longer_than_a_block(tmp_path: Path) -> None:
    """A torn tail of any length is found and removed."""
    path = tmp_path / "traj.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 200_000)
    with LineWriter(path) as lines:
        lines.append({"a": 2})
    assert list(read_lines(path)) == [{"a": 1}, {"a": 2}]


def test_damage_in_the_middle_is_told(tmp_path: Path) -> None:
    """A broken line that is not the last is an error that names it."""
    path = tmp_path / "traj.jsonl"
    path.write_text('{"a": 1}\n{"a":\n{"a": 3}\n')
    with pytest.raises(ValueError, match=r"traj.jsonl:2 is no JSON"):
        list(read_lines(path))


def test_odd_values(tmp_path: Path) -> None:
    """Lone surrogates and numpy scalars travel; NaN and arrays are refused, nothing written."""
    path = tmp_path / "traj.jsonl"
    with LineWriter(path) as lines:
        lines.append({"name": "bad\udcff", "score": np.float32(0.5), "path": Path("/x")})
        with pytest.raises(ValueError, match="not JSON compliant"):
            lines.append({"score": float("nan")})
        with pytest.raises(TypeError, match="ndarray"):
            lines.append({"rgb": np.zeros(3)})
    assert list(read_lines(path)) == [{"name": "bad\udcff", "score": 0.5, "path": "/x"}]


@given(records=RECORDS, data=st.data())
def test_a_tail_reads_every_record_once(
    folder: Path, records: list[dict[str, object]], data: st.DataObject
) -> None:
    """Read at any moments, also amid a line, it gives what `read_lines` gives, in order."""
    path, growing = folder / "whole.jsonl", folder / "growing.jsonl"
    path.unlink(missing_ok=True)
    with LineWriter(path) as lines:
        for record in records:
            lines.append(record)
    written = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=4)))
    tail, seen = LineTail(growing), []
    for cut in (*cuts, len(written)):
        growing.write_bytes(written[:cut])
        seen += tail.more()
    assert seen == list(read_lines(path))
    assert tail.more() == []
