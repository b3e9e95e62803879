"""Documents for ``vary.py``: what was said is in them, in either kind, byte for byte the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cua_gym.grading.library import CheckLibrary
from cua_gym.task.documents import document_bytes
from tests.evaluators.conftest import ROOT, item

BLOCKS: list[list[Any]] = [
    ["Title", "A & B"],
    ["Heading 1", "One"],
    ["Text", "Größe <b> “so”"],
    ["Heading 2", "Two"],
    ["Quotation", "It was so."],
    [["Name", "Room"], ["Ann", "12"]],
    ["Text", "End"],
]
LINES = [
    "A & B", "One", "Größe <b> “so”", "Two", "It was so.", "Name", "Room", "Ann", "12", "End",
]  # fmt: skip
HOLDS: list[tuple[str, dict[str, Any]]] = [
    ("paragraphs", {"expected": LINES}),
    ("paragraphs", {"expected": ["A & B"], "style": "Title"}),
    ("paragraphs", {"expected": ["It was so."], "style": "Quotations", "variants": ["Quote"]}),
    ("headings", {"expected": [[1, "One"], [2, "Two"]]}),
    ("table", {"expected": [["Name", "Room"], ["Ann", "12"]]}),
    ("page", {"width": 210, "height": 297, "margins": [20, 20, 20, 20]}),
]


@pytest.mark.parametrize("kind", ["docx", "odt"])
@pytest.mark.parametrize(("name", "wanted"), HOLDS)
def test_what_was_said_is_in_it(tmp_path: Path, kind: Any, name: str, wanted: dict[str, Any]):
    """Text, styles, tables and the page, as the bundled checks see them."""
    check = CheckLibrary(ROOT / "evaluators", tmp_path).find(f"documents.{name}")
    found = check(item(tmp_path, document_bytes(kind, BLOCKS)), **wanted)
    assert found.passed, found


@pytest.mark.parametrize("kind", ["docx", "odt"])
def test_the_same_bytes_each_time(kind: Any):
    """And others for other words."""
    assert document_bytes(kind, BLOCKS) == document_bytes(kind, BLOCKS)
    assert document_bytes(kind, BLOCKS) != document_bytes(kind, BLOCKS[:-1])


def test_what_is_none_is_refused():
    """Another kind, another style, half a paragraph."""
    wrong: Any
    for wrong in (["Heading 9", "x"], ["Text"], ["Text", "a", "b"]):
        with pytest.raises(ValueError, match="a paragraph is"):
            document_bytes("odt", [wrong])
    wrong = "doc"
    with pytest.raises(ValueError, match="docx or odt"):
        document_bytes(wrong, BLOCKS)
