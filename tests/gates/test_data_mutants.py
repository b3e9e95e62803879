"""Mutants of CSV, JSON, XML and SQLite: sound checks see all of them, weak ones are found."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from cua_gym.gates import json_mutants, sqlite_mutants

from .conftest import At, Glob, Judge, Make, point

ROWS = [["name", "amount"], ["Ada", 12.5], ["Bob; B", 7], ["Cy", 30]]
CSV = b'name;amount\r\nAda;12,5\r\n"Bob; B";7\r\nCy;30\r\n'
GERMAN = {"delimiter": ";", "decimal": ","}


def test_csv(make: Make, judged: Judge) -> None:
    """Every changed cell and row counts to a check of all rows; how lines end does not."""
    old = b'name;amount\r\nAda;12,5\r\n"Bob; B";0\r\n'
    start = make("start", table=At("/home/user/t.csv", old))
    solved = make("solved", table=At("/home/user/t.csv", CSV))
    found = judged(start, solved, point("data.csv_rows", "table", expected=ROWS, **GERMAN))
    assert not found.offenders
    assert {
        "reverted:table:row-3",
        "dropped:table:row-4",
        "doubled:table:row-4",
        "altered:table:row-3:column-2:digit",
        "altered:table:row-4:column-1:appended",
        "newlines:table",
    } <= set(found.names)
    # Of a row that was there already, only the cell that changed.
    assert not [n for n in found.names if "row-3:column-1" in n or "row-2:column" in n]


def test_csv_cell(make: Make, judged: Judge) -> None:
    """A check of one cell does not see that other new rows are missing, and is caught."""
    start = make("start", table=At("/home/user/t.csv", None))
    solved = make("solved", table=At("/home/user/t.csv", CSV))
    args = {"row": 2, "column": "amount", "expected": 12.5, **GERMAN}
    found = judged(start, solved, point("data.csv_cell", "table", **args))
    assert "dropped:table:row-4" in found.offenders
    assert "altered:table:row-2:column-2:digit" not in found.offenders


BEFORE = {"title": "Old", "size": 10, "wrap": False, "tabs": [2, 4], "gone": 1, "kept": {"a": 1}}
AFTER = {"title": "New", "size": 12, "wrap": True, "tabs": [2, 4, 8], "kept": {"a": 1}, "no": None}


def test_json(make: Make, judged: Judge) -> None:
    """Every changed leaf counts; the order of keys and white space do not."""
    start = make("start", prefs=At("/a.json", json.dumps(BEFORE, indent=1).encode()))
    solved = make("solved", prefs=At("/a.json", json.dumps(AFTER, indent=1).encode()))
    found = judged(start, solved, point("data.json_value", "prefs", expected=AFTER))
    assert not found.offenders
    assert {
        "reverted:prefs:title",
        "reverted:prefs:gone",
        "reverted:prefs:tabs.2",
        "altered:prefs:size:nan",
        "altered:prefs:size:null",
        "altered:prefs:wrap:turned",
        "altered:prefs:no:zero",
        "reformatted:prefs",
    } <= set(found.names)
    assert not [n for n in found.names if "kept" in n or "tabs.0" in n]


def test_json_half(make: Make, judged: Judge) -> None:
    """A check of one key lets the others be undone, and is caught."""
    start = make("start", prefs=At("/a.json", json.dumps(BEFORE).encode()))
    solved = make("solved", prefs=At("/a.json", json.dumps(AFTER).encode()))
    found = judged(start, solved, point("data.json_value", "prefs", path=["size"], expected=12))
    assert {"reverted:prefs:title", "reverted:prefs:wrap"} <= set(found.offenders)
    assert "altered:prefs:size:digit" not in found.offenders


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": []}, {"a": [1, 2]}),
        ({"a": {"x": 1}}, {"a": 5}),
        ([1, 2, 3], [3]),
        (None, {"a": {}}),
        ({"a": None}, {"a": {"b": None}}),
    ],
)
def test_json_shapes(before: object, after: object) -> None:
    """Whatever the shapes, every variant can be made and is another value."""
    for variant in json_mutants.broken(before, after):
        assert repr(json.loads(variant.make())) != repr(after)


SVG = b"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%d"><title>%s</title><!-- a="1" b="2" -->
<g><rect x="1" y='2'/><rect x="%d" y="2"/></g></svg>
"""


def test_xml(make: Make, judged: Judge) -> None:
    """Changed texts and attributes count, the order of attributes does not."""
    start = make("start", plan=At("/plan.svg", SVG % (10, b"Old", 5)))
    solved = make("solved", plan=At("/plan.svg", SVG % (10, b"New", 6)))
    svg = "{http://www.w3.org/2000/svg}"
    found = judged(
        start,
        solved,
        point("data.xml_value", "plan", path=f"{svg}title", expected="New", weight=0.5),
        point(
            "data.xml_value",
            "plan",
            path=f"{svg}g/{svg}rect[2]",
            attribute="x",
            expected=6,
            weight=0.5,
        ),
    )
    assert not found.offenders
    assert {
        "altered:plan:svg/title:extended",
        "altered:plan:svg/g/rect.2@x:digit",
        "reverted:plan:svg/g/rect.2@x",
        "attributes:plan",
    } <= set(found.names)
    assert not [n for n in found.names if "width" in n]


def database(path: Path, *statements: str) -> dict[str, bytes]:
    """A database's files as a program in the middle of its work has them."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n REAL)")
        connection.execute("CREATE TABLE codes (code TEXT UNIQUE)")
        connection.execute("INSERT INTO t VALUES (1, 'Ada', 2.5), (2, 'Bob', 3)")
        for statement in statements:
            connection.execute(statement)
        return {f"/home/user/{p.name}": p.read_bytes() for p in path.parent.iterdir()}


def test_sqlite(make: Make, judged: Judge, tmp_path: Path) -> None:
    """Every changed row and value counts, also what lies beside the file; one file is the same."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    changed = ("UPDATE t SET n = 4 WHERE id = 2", "INSERT INTO t VALUES (3, 'Cy', NULL)")
    new = database(tmp_path / "b/app.db", *changed)
    assert "/home/user/app.db-wal" in new
    start = make("start", db=Glob("/home/user/app.db*", database(tmp_path / "a/app.db")))
    solved = make("solved", db=Glob("/home/user/app.db*", new))
    rows = [["Ada", 2.5], ["Bob", 4], ["Cy", None]]
    query = "SELECT name, n FROM t ORDER BY id"
    found = judged(start, solved, point("sqlite.rows", "db", query=query, expected=rows))
    assert not found.offenders
    assert {
        "reverted:db:t-2",
        "dropped:db:t-2",
        "doubled:db:t-2",
        "altered:db:t-2:n:digit",
        "altered:db:t-3:name:cut",
        "altered:db:t-3:n:text",
        "half:db:first",
        "rewritten:db",
    } <= set(found.names)
    assert not [n for n in found.names if "t-1" in n or "wal" in n]


def test_broken_database() -> None:
    """What only claims to be a database has no rows to alter."""
    assert sqlite_mutants.broken(None, {"": sqlite_mutants.MAGIC + b"x" * 2000}) == []
