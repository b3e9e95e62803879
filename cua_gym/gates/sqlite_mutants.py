"""Variants of a SQLite database, row by row; its evidence is a glob of the file and a star."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, place, spread

__all__ = ["MAGIC", "broken", "kept"]

MAGIC = b"SQLite format 3\0"
_BESIDE = ("", "-wal", "-journal")

Parts = Mapping[str, bytes]
"""A database's files by what stands behind its own name: "", ``-wal``, ``-journal``."""
Row = tuple[Any, ...]
"""Its number, then its values."""
Statement = tuple[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table with row numbers.

    Attributes:
        columns: those that are stored.
        key: the column that is the row's number, or "".
        unique: whether no row can be there twice.
    """

    name: str
    columns: tuple[str, ...]
    key: str
    unique: bool
    rows: dict[int, Row]


def _merged(parts: Parts) -> bytes:
    """All of a database as one file, with what its program had not merged yet."""
    with tempfile.TemporaryDirectory(prefix="cua-gym-mutant-") as folder:
        copy = Path(folder) / "copy"
        for ending in _BESIDE:
            if ending in parts:
                copy.with_name(f"copy{ending}").write_bytes(parts[ending])
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
            data: bytes = connection.serialize()
    return data


@contextlib.contextmanager
def _opened(data: bytes) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(data)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        yield connection


def _changed(data: bytes, statements: Sequence[Statement]) -> bytes:
    """The database after some statements."""
    with _opened(data) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement, values in statements:
            connection.execute(statement, tuple(values))
        changed: bytes = connection.serialize()
    return changed


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _tables(data: bytes) -> dict[str, _Table]:
    with _opened(data) as connection:
        listed = connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
            "AND NOT wr AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        ).fetchall()
        return {name: _table(connection, name) for (name,) in listed}


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    info = connection.execute(
        "SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden = 0", (name,)
    ).fetchall()
    keys = [column for column, _, key in info if key]
    alias = [c for c, kind, key in info if key and kind.upper() == "INTEGER"]
    indexes = connection.execute("SELECT 1 FROM pragma_index_list(?) WHERE [unique]", (name,))
    columns = tuple(column for column, _, _ in info)
    shown = ", ".join(map(_quoted, columns))
    rows = connection.execute(f"SELECT rowid, {shown} FROM {_quoted(name)} ORDER BY rowid")
    key = alias[0] if len(keys) == 1 and alias else ""
    return _Table(name, columns, key, bool(indexes.fetchall()), {r[0]: r for r in rows})


def broken(start: Parts | None, parts: Parts) -> list[Content]:
    """Half of the changed rows undone, each on its own, doubled, and its changed values altered.

    Tables without row numbers are left alone.
    """
    try:
        solved = _merged(parts)
        before, after = _tables(_merged(start)) if start else {}, _tables(solved)
    except sqlite3.Error:
        return []
    every: list[tuple[_Table, int, Row | None]] = []
    for table in after.values():
        old = before[table.name].rows if table.name in before else {}
        for number in sorted({*old, *table.rows}):
            if old.get(number) != table.rows.get(number):
                every.append((table, number, old.get(number)))  # noqa: PERF401  it reads better

    def undone(some: Sequence[tuple[_Table, int, Row | None]]) -> bytes:
        return _changed(solved, [_undo(*one) for one in some])

    found: list[Content] = halves(every, undone)
    rows: list[Content] = []
    for table, number, was in spread(every):
        name = f"{place(table.name)}-{number}"
        rows.append(Variant("reverted", name, partial(undone, [(table, number, was)])))
        if number not in table.rows:
            continue
        if was is not None:
            drop = _undo(table, number, None)
            rows.append(Variant("dropped", name, partial(_changed, solved, [drop])))
        if not table.unique:
            double = _doubled(table, number)
            rows.append(Variant("doubled", name, partial(_changed, solved, [double])))
        for where, statement in _wrong_values(table, number, was):
            make = partial(_changed, solved, [statement])
            rows.append(Variant("altered", f"{name}:{where}", make))
    return found + spread(rows, MOST - len(found))


def _undo(table: _Table, number: int, was: Row | None) -> Statement:
    if was is None:
        return f"DELETE FROM {_quoted(table.name)} WHERE rowid = ?", [number]
    return _insert(table, "rowid", was)


def _insert(table: _Table, number: str, row: Row) -> Statement:
    columns = [number, *map(_quoted, table.columns)] if number else map(_quoted, table.columns)
    marks = ", ".join("?" * len(row))
    # What was unique may be taken by now.
    return (
        f"INSERT OR REPLACE INTO {_quoted(table.name)} ({', '.join(columns)}) VALUES ({marks})",
        row,
    )


def _doubled(table: _Table, number: int) -> Statement:
    row = table.rows[number][1:]
    values = [None if c == table.key else v for c, v in zip(table.columns, row, strict=True)]
    return _insert(table, "", tuple(values))


def _wrong_values(table: _Table, number: int, was: Row | None) -> Iterator[tuple[str, Statement]]:
    for at, column in enumerate(table.columns, 1):
        value = table.rows[number][at]
        if column == table.key or (was is not None and was[at] == value):
            continue
        update = (
            f"UPDATE OR REPLACE {_quoted(table.name)} SET {_quoted(column)} = ? WHERE rowid = ?"
        )
        if not isinstance(value, int | float | str):
            yield f"{place(column)}:text", (update, ["x", number])
            continue
        for how, text in altered(str(value)):
            wrong = text if isinstance(value, str) else _number(text)
            yield f"{place(column)}:{how}", (update, [wrong, number])


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return text if text == "nan" else kind(text)
        except ValueError:
            pass  # it is the next kind, or text
    return text


def kept(parts: Parts) -> Iterator[Content]:
    """All of it in one file, written anew."""
    try:
        merged = _merged(parts)
    except sqlite3.Error:
        return  # it only claims to be a database
    yield Variant("rewritten", "", partial(_changed, merged, [("VACUUM", [])]))
