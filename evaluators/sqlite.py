"""SQLite databases: what a query finds in a private copy, with what its program had not merged yet.

The evidence is a glob of the database's path and a star (``/home/user/app.db*``), because the
newest changes may lie beside it: in ``-wal``, or undone by a ``-journal``. A database is an agent's
file, so nothing in its schema is computed: views and generated columns are refused.
"""

from __future__ import annotations

import contextlib
import fnmatch
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .data import same_value
from .numbers_dates import DEFAULT_RELATIVE

QUERY_S = 2.0
MAX_ROWS = 10_000
MAX_BYTES = 10_000_000
"""Of one value or row."""
FUNCTIONS = {
    "abs", "avg", "coalesce", "count", "date", "datetime", "glob", "group_concat", "ifnull",
    "julianday", "length", "like", "lower", "max", "min", "nullif", "round", "strftime", "substr",
    "sum", "time", "total", "trim", "typeof", "unixepoch", "upper",
}  # fmt: skip
"""What a query may use; none takes long on a long value."""
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")


def a_query(text: str) -> None:
    """What a query is: one SELECT with known functions.

    Raises:
        ValueError: it is not.
    """
    if text.split(None, 1)[:1] not in (["SELECT"], ["WITH"]):
        raise ValueError("it is no query: it begins with neither SELECT nor WITH")
    with contextlib.closing(sqlite3.connect(":memory:")) as empty:
        empty.set_authorizer(_allow)
        try:
            empty.execute(f"EXPLAIN {text}")
        except sqlite3.Error as error:
            unknown = ("no such table", "no such column", "Incorrect number of bindings")
            if not str(error).startswith(unknown):
                raise ValueError(f"it is no query: {error}") from error


Query = Annotated[str, a_query]


@check
def rows(
    item: Item,
    *,
    query: Query,
    expected: list[list[Any]],
    values: Sequence[str | int | float] = (),
    order: bool = True,
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
) -> Verdict:
    """The query finds exactly these rows; ``?`` in it stand for ``values``.

    Numbers are equal within the larger tolerance; ``order`` may be declared to be free. It refuses
    missing and further rows, text for a number, NULL for anything, a broken database, and one
    whose tables are views or computed.
    """
    with database(item) as connection:
        seen = found(connection, query, values)

    def same(row: list[Any], wanted: list[Any]) -> bool:
        return same_value(row, wanted, absolute, relative)

    message = f"{len(seen)} rows for {len(expected)}: {query}"
    right = len(seen) == len(expected)
    if right and order:
        right = all(same(a, b) for a, b in zip(seen, expected, strict=True))
    elif right:
        left = list(seen)
        for wanted in expected:
            match = next((n for n, row in enumerate(left) if same(row, wanted)), None)
            if match is None:
                right = False
                break
            del left[match]
    return verdict(right, message, seen=seen[:50], wanted=expected[:50])


@contextlib.contextmanager
def database(item: Item) -> Iterator[sqlite3.Connection]:
    """A connection that can do nothing but read, to a copy that is then thrown away.

    Raises:
        Fails: there is no such database, or it is broken.
        GradingError: the evidence is no glob of a path and a star.
    """
    if sqlite3.sqlite_version_info < (3, 37):
        raise GradingError(f"SQLite {sqlite3.sqlite_version} cannot list its tables; 3.37 can")
    if item.kind != "glob" or not item.source.endswith("*"):
        raise GradingError(
            f"{item.name}: collect a database as a glob of its path and a star, not {item.source!r}"
        )
    if not item.present:
        raise Fails(f"{item.name}: {item.note or 'absent'} ({item.source})", seen=item.state)
    paths = [e.guest for e in item.entries if fnmatch.fnmatchcase(e.guest, item.source[:-1])]
    if len(paths) != 1:
        raise Fails(f"{len(paths)} databases {item.source[:-1]} instead of one", seen=paths)
    with tempfile.TemporaryDirectory(prefix="cua-gym-sqlite-") as folder:
        copy = Path(folder) / "copy"
        for ending in ("", "-wal", "-journal"):
            for entry in (e for e in item.entries if e.guest == paths[0] + ending):
                if entry.kind != "file":
                    raise Fails(f"{entry.guest} is a {entry.kind}", seen=entry.kind)
                data = item.stored(entry).read_bytes()
                if ending == "-journal" and data.endswith(_SUPER_JOURNAL):
                    # SQLite would look for the file that it names, and remove it.
                    raise Fails(f"{entry.guest} names a file elsewhere", seen=data[-200:])
                copy.with_name(f"copy{ending}").write_bytes(data)
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            until = time.process_time() + QUERY_S
            connection.set_progress_handler(lambda: time.process_time() > until, 10_000)
            with _agents_content(item.name):
                _harden(connection)
            yield connection


def found(
    connection: sqlite3.Connection, query: str, values: Sequence[Any] = ()
) -> list[list[Any]]:
    """What a query of ours finds.

    Raises:
        Fails: the database is broken, lacks what is asked for, or the query takes too long.
    """
    with _agents_content(query):
        result = connection.execute(query, tuple(values)).fetchmany(MAX_ROWS + 1)
    if len(result) > MAX_ROWS:
        raise Fails(f"over {MAX_ROWS} rows: {query}", seen=[list(row) for row in result[:20]])
    return [list(row) for row in result]


def _harden(connection: sqlite3.Connection) -> None:
    """As SQLite's own notes on hostile databases say, before anything is read."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200)
    for setting in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "temp_store = MEMORY",
        "query_only = ON",
    ):
        connection.execute(f"PRAGMA {setting}")
    # What the schema came to, not what its own table says of it, which can be forged.
    kinds = dict(connection.execute("SELECT name, type FROM pragma_table_list").fetchmany(MAX_ROWS))
    for name in (n for n, kind in kinds.items() if kind in ("table", "shadow")):
        columns = connection.execute("SELECT hidden FROM pragma_table_xinfo(?)", (name,))
        if any(hidden in (2, 3) for (hidden,) in columns.fetchmany(MAX_ROWS)):
            raise Fails(f"computed columns in {name!r}")
    views = {name.lower() for name, kind in kinds.items() if kind == "view"}
    connection.set_authorizer(
        # Within a view, and within a WITH of ours, that is its name.
        lambda action, one, two, three, within: (
            sqlite3.SQLITE_DENY
            if within is not None and within.lower() in views
            else _allow(action, one, two, three, within)
        )
    )


def _allow(action: int, _: str | None, two: str | None, *rest: str | None) -> int:
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in FUNCTIONS:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


@contextlib.contextmanager
def _agents_content(what: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.ProgrammingError as error:  # how it was asked
        raise GradingError(f"{what}: {error}") from error
    except sqlite3.DatabaseError as error:
        if str(error).startswith("not authorized to use function"):
            # Nothing of the database computes, so it stands in the query.
            raise GradingError(
                f"{what}: {error}; it may use {', '.join(sorted(FUNCTIONS))}"
            ) from error
        raise Fails(f"{what}: {error}") from error
    except (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:
        raise Fails(f"{what}: {error}") from error
