"""What checkpoints want, and what of it can be known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cua_gym.gates.wanted import Wanted, wanted

from .sound import Edit, make_task

CHECKS = '''
"""Checks with every kind of parameter."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from cua_gym.grading.check import Item, Verdict, check, verdict

Kind = Literal["loud", "quiet"]


def query(text: str) -> None:
    """Any text is one."""


@check
def any_of(
    item: Item,
    *,
    expected: Any,
    kind: Kind = "loud",
    sure: bool = True,
    pattern: Annotated[str, re.compile] = "",
    sql: Annotated[str, query] = "",
    tolerance: float = 0.0,
    facts: list[list[str]] | None = None,
    note: str = "option",
) -> Verdict:
    """Accepts nothing."""
    return verdict(False)
'''


def wants(suite: Path, args: str, **more: str) -> list[Wanted]:
    """What the sound task wants when its one check has these arguments."""
    task = make_task(
        suite,
        Edit(
            replace={
                "hidden/checkpoints.toml": (
                    ("text.equals", "checks.any_of"),
                    ('{ expected = "{answer.sum}", whitespace = "trim" }', args),
                    ('[discovered]\n"answer.sum" = "by adding the prices"', ""),
                )
            },
            add={"hidden/checks.py": CHECKS, **more},
        ),
    )
    return [w for w in wanted(task.variation(0)) if "evidence" not in w.place]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ('{ expected = "Baker" }', [("expected", ("Baker",))]),
        ("{ expected = 41.5, sure = true }", [("expected", (41.5,))]),
        ("{ expected = true }", []),
        ('{ expected = ["a1", 7] }', [("expected[0]", ("a1",)), ("expected[1]", (7,))]),
        ('{ expected = { vat = 7 } }', [("expected (a key)", ("vat",)), ("expected.vat", (7,))]),
        ('{ expected = 1, kind = "quiet", note = "x" }', [("expected", (1,))]),
        ('{ expected = 1, tolerance = 0.5 }', [("expected", (1,))]),
        ('{ expected = "" }', []),
    ],
)  # fmt: skip
def test_literals(tmp_path: Path, args: str, expected: Any) -> None:
    """Leaves and keys; no options, no words that the check itself knows, no yes and no."""
    assert [(w.place, w.either) for w in wants(tmp_path, args)] == expected


def test_an_option_with_a_placeholder_counts(tmp_path: Path) -> None:
    """An option is content when it holds a value of the variation; its parts are known apart."""
    (_, note) = wants(tmp_path, '{ expected = 1, note = "sum of {params.item}" }')
    assert note.place == "note"
    assert note.sources == ("params.item",)
    assert [source for _, source in note.parts] == ["", "params.item"]


def test_a_pattern_wants_its_words(tmp_path: Path) -> None:
    """Of a regular expression the literal words, whatever stands around them."""
    pattern = r"^(?:Invoice|Bill) no\\.\\s+[0-9]+ .*for {params.item}$"
    found = wants(tmp_path, f'{{ expected = 1, pattern = "{pattern}" }}')[1:]
    assert [w.either[0] for w in found[:2]] == ["Invoice", "Bill"]
    assert str(found[-1].either[0]).startswith("for ")
    assert {w.sources for w in found} == {("params.item",)}


def test_a_query_wants_its_names(tmp_path: Path) -> None:
    """Of SQL the names and values, not its own words."""
    sql = "SELECT customer FROM orders WHERE item = '{params.item}'"
    words = [w.either[0] for w in wants(tmp_path, f'{{ expected = 1, sql = "{sql}" }}')]
    assert words[1:4] == ["customer", "orders", "item"]


def test_facts_are_said_in_one_of_several_ways(tmp_path: Path) -> None:
    """Each inner list is one thing."""
    args = '{ expected = 1, facts = [["{params.item}", "leaf"], ["cup"]] }'
    found = {w.place: w.either[1:] for w in wants(tmp_path, args)}
    assert found["facts[0]"] == ("leaf",)


def test_names_of_files(tmp_path: Path) -> None:
    """The last part of a path is wanted; of a pattern its words; of programs' own files none."""
    task = make_task(
        tmp_path,
        Edit(
            replace={
                "task.toml": (
                    ('file = "/home/user/note.txt"', 'glob = "/home/user/*-notes-[0-9].txt"'),
                ),
                "hidden/checkpoints.toml": (
                    ("text.equals", "files.exists"),
                    ('args = { expected = "{answer.sum}", whitespace = "trim" }', ""),
                    ('[discovered]\n"answer.sum" = "by adding the prices"', ""),
                ),
            }
        ),
    )
    names = [w.either[0] for w in wanted(task.variation(0)) if "evidence" in w.place]
    assert names == ["-notes-", ".txt"]
