"""SQLite: what a query finds, whatever an agent made of the database."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cua_gym.errors import GradingError
from cua_gym.grading.check import Verdict
from cua_gym.grading.items import Entry, Item
from evaluators import sqlite

from .conftest import store

START = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT, total REAL, state TEXT);
INSERT INTO orders VALUES (1, 'Ada', 10, 'open'), (2, 'O''Brien', 2.5, 'open'),
  (3, NULL, 0, 'cancelled');
"""
Ask = Callable[..., Verdict]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with three orders."""
    path = tmp_path / "app.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(START)
    connection.close()
    return path


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """``sqlite.rows`` on what lies beside and under ``app.db`` now."""

    def run(query: str, expected: list[list[object]], **arguments: object) -> Verdict:
        evidence = tmp_path / "evidence"
        shutil.rmtree(evidence, ignore_errors=True)
        evidence.mkdir()
        entries = []
        for number, found in enumerate(sorted(tmp_path.glob("app.db*"))):
            guest = f"/home/user/{found.name}"
            if found.is_symlink():
                entries.append(Entry(guest, "link", 0))
            else:
                entries.append(store(evidence, f"{number:04}", guest, found.read_bytes()))
        state = "present" if entries else "absent"
        item = Item("db", "glob", "/home/user/app.db*", state, evidence, entries=tuple(entries))
        return sqlite.rows(item, query=query, expected=expected, **arguments)

    return run


OPEN = "SELECT name, total FROM orders WHERE state = 'open' ORDER BY id"


@pytest.mark.usefixtures("path")
def test_rows_are_all_the_rows(ask: Ask):
    """Their values, types, number and, unless declared free, order."""
    right = [["Ada", 10], ["O'Brien", 2.5]]
    assert ask(OPEN, right).passed
    assert ask(OPEN, [["Ada", 10.004], ["O'Brien", 2.5]], absolute=0.01).passed
    assert ask(OPEN, right[::-1], order=False).passed
    for other in (
        right[:1],
        [*right, ["", 0]],
        right[::-1],
        [["Ada", "10"], ["O'Brien", 2.5]],
        [["ada", 10], ["O'Brien", 2.5]],
        [["Ada", 10], ["Ada", 10]],
    ):
        assert not ask(OPEN, other).passed
    assert not ask(OPEN, [["Ada", 10], ["Ada", 10]], order=False).passed
    assert not ask("SELECT name FROM orders WHERE id = 3", [[""]]).passed
    assert ask("SELECT id FROM orders WHERE name = ?", [[2]], values=["O'Brien"]).passed


def test_an_answer_in_words_changes_no_database(ask: Ask, path: Path):
    """The state is asked, not the agent: what was to become 10 is as it was (B136)."""
    query = "SELECT total FROM orders WHERE id = 2"
    assert not ask(query, [[10]]).passed
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE orders SET total = 10 WHERE id = 2")
    connection.close()
    assert ask(query, [[10]]).passed


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    """A program that has it open and has not merged its log."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        yield connection
    connection.close()


def test_the_newest_changes_lie_beside_it(ask: Ask, path: Path, writer: sqlite3.Connection):
    """Committed in the log counts, under way does not."""
    query = "SELECT name FROM orders WHERE id = 1"
    writer.execute("UPDATE orders SET name = 'Eve' WHERE id = 1")
    assert path.with_name("app.db-wal").stat().st_size
    assert ask(query, [["Eve"]]).passed
    writer.execute("BEGIN")
    writer.execute("UPDATE orders SET name = 'Bob' WHERE id = 1")
    assert ask(query, [["Eve"]]).passed


def test_half_a_change_is_undone_by_its_journal(ask: Ask, path: Path, tmp_path: Path):
    """As its own program would at its next start."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
        connection.execute("BEGIN")
        connection.execute("UPDATE orders SET name = 'Bob'")
        connection.execute("CREATE TABLE filler AS SELECT zeroblob(200000)")
        saved = path.with_name("app.db-journal").read_bytes()
        half = path.read_bytes()
        connection.execute("ROLLBACK")
    connection.close()
    assert half != path.read_bytes()
    path.write_bytes(half)
    path.with_name("app.db-journal").write_bytes(saved)
    assert ask("SELECT count(*) FROM orders WHERE name = 'Bob'", [[0]]).passed


def test_a_journal_that_names_a_host_file_is_refused(ask: Ask, path: Path, tmp_path: Path):
    """SQLite would look at that file and remove it."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    name = str(victim).encode()
    tail = (1).to_bytes(4, "big") + name + len(name).to_bytes(4, "big")
    tail += (sum(name)).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    path.with_name("app.db-journal").write_bytes(b"\0" * 512 + tail)
    assert "names a file elsewhere" in ask("SELECT 1", [[1]]).message
    assert victim.exists()


def test_links_in_its_place_are_not_followed(ask: Ask, path: Path, tmp_path: Path):
    """Neither the database nor its log."""
    other = path.rename(tmp_path / "other")
    path.symlink_to(other)
    assert not ask(OPEN, []).passed
    path.unlink()
    other.rename(path)
    path.with_name("app.db-wal").symlink_to("/etc/hostname")
    assert "link" in ask(OPEN, []).message


def test_no_database_is_a_plain_fail(ask: Ask, path: Path):
    """Absent, empty, of another kind, cut short, or without the table."""
    data = path.read_bytes()
    for other in (
        b"",
        b"SQLite format 3\0",
        b"\xff" * 5000,
        data[:3000],
        data[:100] + b"\xff" * 8092,
    ):
        path.write_bytes(other)
        assert not ask(OPEN, []).passed
    path.unlink()
    assert not ask(OPEN, []).passed


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_database_is_a_plain_fail_or_read(ask: Ask, path: Path, seed: int):
    """Bytes changed anywhere never become a fault of the grader."""
    data = bytearray(path.read_bytes())
    for n in range(40):
        data[(seed * 7919 + n * n * 131 + 16) % len(data)] ^= 1 + (seed * 31 + n) % 255
    path.write_bytes(data)
    assert isinstance(ask(OPEN, [["Ada", 10]]), Verdict)


@pytest.mark.parametrize(
    "trick",
    [
        "CREATE VIEW orders AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) "
        "SELECT i AS id, 'Ada' AS name, 10 AS total, 'open' AS state FROM n",
        "CREATE VIEW orders AS SELECT 1 AS id, 'Ada' AS name, 10 AS total, 'open' AS state",
        "CREATE TABLE orders (id, total, state, name AS (hex(zeroblob(1000000))));"
        "INSERT INTO orders VALUES (1, 10, 'open')",
        "CREATE TABLE orders (id, total, state, name AS ('Ada'));"
        "INSERT INTO orders VALUES (1, 10, 'open'); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET type = 'index', name = 'x', tbl_name = 'x'",
        "CREATE VIEW ORDERS AS SELECT 1 AS id, 'Ada' AS name, 10 AS total, 'open' AS state;"
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET type = 'table'",
        "CREATE TABLE orders (id, name, total, state COLLATE evil)",
        "CREATE TABLE orders (id, name BLOB, total, state);"
        "INSERT INTO orders VALUES (1, CAST(x'ff' AS TEXT), 10, 'open')",
        "CREATE TABLE orders (id, name, total, state);"
        "INSERT INTO orders VALUES (1, zeroblob(11000000), 10, 'open')",
    ],
)
def test_a_table_that_computes_is_refused(ask: Ask, path: Path, trick: str):
    """Endless views, computed columns, unknown collations, text that is none, huge values."""
    with sqlite3.connect(path) as connection:
        connection.create_collation("evil", lambda a, b: 0)
        connection.executescript(f"DROP TABLE orders; {trick}")
    connection.close()
    before = time.process_time()
    assert not ask(OPEN, [["Ada", 10]]).passed
    assert time.process_time() - before < 5


def test_a_query_that_takes_too_long_is_a_plain_fail(ask: Ask, path: Path, monkeypatch):
    """The query is ours, the number of rows is the agent's."""
    monkeypatch.setattr(sqlite, "QUERY_S", 0.2)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 9 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 5000) SELECT i, 'x', i, 'open' FROM n"
        )
    connection.close()
    query = "SELECT count(*) FROM orders a, orders b, orders c WHERE a.total < b.total + c.total"
    assert "interrupted" in ask(query, [[0]]).message
    assert "rows" in ask("SELECT a.id FROM orders a, orders b", []).message


def test_where_its_log_might_be_missed_is_the_tasks_fault(tmp_path: Path):
    """One file alone is not all of a database."""
    item = Item("db", "file", "/home/user/app.db", "absent", tmp_path)
    with pytest.raises(GradingError, match="a glob of its path and a star"):
        sqlite.rows(item, query=OPEN, expected=[])


@pytest.mark.parametrize(
    "query",
    ["SELEC 1", "DROP TABLE orders", "SELECT 1; SELECT 2",
     "SELECT count(hex(1))", "ATTACH '/tmp/x' AS y", "PRAGMA user_version", ""],
)  # fmt: skip
def test_what_is_no_query_is_found_with_the_task(query: str):
    """Before any agent could be blamed for it."""
    with pytest.raises(ValueError, match="no query"):
        sqlite.a_query(query)


@pytest.mark.usefixtures("path")
def test_an_unknown_function_is_the_tasks_fault(ask: Ask):
    """It stands in the query, since nothing of the database is computed."""
    with pytest.raises(GradingError, match="hex"):
        ask("SELECT hex(name) FROM orders", [])


@pytest.mark.parametrize(
    "query", [OPEN, "WITH a AS (SELECT id FROM orders WHERE id = ?) SELECT * FROM a"]
)
def test_a_query_of_tables_yet_unknown_is_one(query: str):
    """The database is the agent's, and is not there when a task is loaded."""
    sqlite.a_query(query)
