"""The order desk that several bundled tasks have, each its own copy."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cua_gym.task.suite import bundled_suite

TASKS = ("order-status", "enter-orders", "cancel-shipped-order")
INPUTS = [bundled_suite().path / "tasks" / name / "inputs" for name in TASKS]
ROWS = """
INSERT INTO customers VALUES (101, 'Marta Lind', '1 Mill Lane', 'Carrow');
INSERT INTO articles VALUES ('A-2041', 'kettle', 1250);
INSERT INTO orders VALUES (5001, 101, 'A-2041', 3, '2025-02-01', '2025-03-12', 'R1', 'open');
INSERT INTO orders VALUES (5002, 101, 'A-2041', 2, '2025-02-01', '2025-03-12', 'R2', 'shipped');
INSERT INTO payments VALUES (1, 5001, '2025-03-02', 500);
"""
ORDER = {"customer": "101", "article": "A-2041", "quantity": "4", "delivery": "2025-04-01"}

Ask = Callable[..., tuple[str, str]]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A customer with an open and a shipped order."""
    path = tmp_path / "orders.db"
    with closing(sqlite3.connect(path)) as base:
        base.executescript((INPUTS[0] / "schema.sql").read_text() + ROWS)
    return path


@pytest.fixture
def ask(database: Path) -> Iterator[Ask]:
    """Ask a running desk for a page, or send it a form: the address and page it comes to."""
    kept = socket.socket()
    # Kept until the end, or another test may get the port first; the desk shares it by this.
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port = kept.getsockname()[1]
    words = [sys.executable, "-I", str(INPUTS[0] / "desk.py"), str(database), str(port)]
    with kept, subprocess.Popen([*words, "2025-03-10"], stdout=subprocess.DEVNULL) as desk:

        def ask(path: str, form: dict[str, str] | None = None) -> tuple[str, str]:
            data = None if form is None else urllib.parse.urlencode(form).encode()
            address = f"http://127.0.0.1:{port}{path}"
            try:
                with urllib.request.urlopen(address, data, timeout=30) as page:
                    return page.url.partition(str(port))[2], page.read().decode()
            except urllib.error.HTTPError as refusal:
                with refusal:
                    return path, refusal.read().decode()

        try:
            end = time.monotonic() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    assert time.monotonic() < end
            yield ask
        finally:
            desk.kill()


def states(database: Path) -> list[str]:
    """Of all orders."""
    with closing(sqlite3.connect(database)) as base:
        return [state for (state,) in base.execute("SELECT state FROM orders ORDER BY number")]


@pytest.mark.parametrize("name", ["desk.py", "schema.sql"])
def test_the_copies_are_equal(name: str):
    """A task's folder stands alone; what is mended in one is mended in all."""
    first, *rest = (folder.joinpath(name).read_bytes() for folder in INPUTS)
    assert all(copy == first for copy in rest)


def test_customers_and_orders_are_found(ask: Ask):
    """By a part of the name or town; an order by its number."""
    assert "/customers/101" in ask("/search?q=lind")[1]
    assert "/customers/101" in ask("/search?q=carr")[1]
    assert "/customers/101" not in ask("/search?q=nobody")[1]
    assert ask("/search?q=5001")[0] == "/orders/5001"
    page = ask("/orders/5001")[1]
    assert "37.50 EUR" in page
    assert "5.00 EUR" in page


def test_an_order_is_entered(ask: Ask, database: Path):
    """As of the desk's day; a form that is wrong enters nothing."""
    for wrong in ({"article": "A-1"}, {"customer": "1"}, {"quantity": "0"}, {"delivery": "1 May"}):
        assert "Not saved" in ask("/orders", ORDER | wrong)[1]
    assert ask("/orders", ORDER | {"reference": " PH-1 "})[0] == "/orders/new?saved=5003"
    with closing(sqlite3.connect(database)) as base:
        rows = base.execute("SELECT * FROM orders WHERE number > 5002").fetchall()
    assert rows == [(5003, 101, "A-2041", 4, "2025-03-10", "2025-04-01", "PH-1", "open")]


def test_what_is_shipped_cannot_be_cancelled(ask: Ask, database: Path):
    """Neither is it offered, nor done for who asks all the same."""
    assert "/orders/5001/cancel" in ask("/orders/5001")[1]
    assert "cannot be cancelled" in ask("/orders/5002")[1]
    assert "/orders/5002/cancel" not in ask("/orders/5002")[1]
    assert "Not done" in ask("/orders/5002/cancel", {})[1]
    assert states(database) == ["open", "shipped"]
    ask("/orders/5001/cancel", {})
    ask("/orders/5002/return", {})
    assert states(database) == ["cancelled", "taken back"]
