"""Chromium's profile: bookmarks, history, downloads, tabs."""

from __future__ import annotations

import json
import random
import sqlite3
import struct
from pathlib import Path
from typing import Any

import pytest

from cua_gym.errors import GradingError
from cua_gym.grading.check import Fails, Verdict
from cua_gym.grading.items import Entry, Item
from evaluators import browser
from evaluators.chromium_session import read_session

from .conftest import Judge, store

SAVED = Path(__file__).parent / "saved" / "chromium-session"
"""What Chromium 156 wrote after: a, b, back to a; b; c; c?x=1#frag; a#gone, closed; b in front."""
SITE = "http://127.0.0.1:42153"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://A.test", "http://a.test/", True),
        ("HTTP://a.test:80/x", "http://a.test/x", True),
        ("https://a.test:443/", "https://a.test", True),
        ("http://u:P@A.test/", "http://u:P@a.test/", True),
        ("about:blank", "about:blank", True),
        ("http://a.test/x", "http://a.test/x/", False),
        ("http://a.test/x", "http://a.test/X", False),
        ("http://a.test", "https://a.test", False),
        ("http://a.test:8080", "http://a.test", False),
        ("http://a.test/#b", "http://a.test/", False),
        ("http://a.test/?b", "http://a.test/", False),
        ("http://a.test.evil/", "http://a.test/", False),
        ("http://[", "http://a.test/", False),
        ("http://a.test:99999/", "http://a.test/", False),
    ],
)
def test_urls_are_the_same_page(one: str, other: str, same: bool):
    """As a browser would call it, and no nearer."""
    assert browser.same_url(one, other) is same


def url(name: str, address: str) -> dict[str, Any]:
    """One bookmark."""
    return {"name": name, "type": "url", "url": address, "id": "5", "guid": "x"}


def folder(name: str, *children: dict[str, Any]) -> dict[str, Any]:
    """One folder of bookmarks."""
    return {"name": name, "type": "folder", "children": list(children)}


def profile(*bar: dict[str, Any]) -> str:
    """``Bookmarks`` with these on the bar."""
    roots = {"bookmark_bar": folder("Bookmarks bar", *bar), "other": folder("Other bookmarks")}
    return json.dumps({"checksum": "x", "roots": roots, "version": 1})


BAR = (url("News", "http://a.test/"), folder("Work", url("Wiki", "http://b.test/w")))


def test_a_bookmark_is_in_its_folder(judge: Judge):
    """Its page, its name, once, and nowhere else."""

    def there(text: str | None, **rule: Any) -> bool:
        return judge("browser.bookmark", text, **rule).passed

    work = {"url": "http://b.test/w", "name": "Wiki", "folder": ["bookmark_bar", "Work"]}
    assert there(profile(*BAR), **work)
    assert there(profile(*BAR), url="http://A.test")
    assert not there(profile(*BAR), url="http://b.test/w")
    assert not there(profile(*BAR), **{**work, "name": "wiki"})
    assert not there(profile(*BAR), **{**work, "url": "http://b.test/"})
    assert not there(profile(*BAR), **{**work, "folder": ["bookmark_bar", "work"]})
    assert not there(profile(*BAR, BAR[0]), url="http://a.test/")
    assert not there(profile(*BAR, BAR[1]), **work)
    assert not there(profile(), url="http://a.test/")
    assert not there(profile(*BAR), url="http://a.test/", folder=["other"])


def test_a_folder_holds_exactly_its_bookmarks(judge: Judge):
    """Names, pages, folders and order."""
    wanted = [["News", "http://a.test"], ["Work", [["Wiki", "http://b.test/w"]]]]

    def same(text: str, **rule: Any) -> bool:
        return judge("browser.bookmarks", text, **({"expected": wanted} | rule)).passed

    assert same(profile(*BAR))
    assert not same(profile(*BAR[::-1]))
    assert same(profile(*BAR[::-1]), order=False)
    assert same(profile(*BAR), expected=[["Wiki", "http://b.test/w"]],
                folder=["bookmark_bar", "Work"])  # fmt: skip
    for other in (
        profile(BAR[0]),
        profile(*BAR, url("More", "http://c.test/")),
        profile(url("news", "http://a.test/"), BAR[1]),
        profile(BAR[0], folder("Work")),
        profile(BAR[0], url("Work", "http://b.test/w")),
        profile(BAR[0], folder("Work", url("Wiki", "http://b.test/"))),
    ):
        assert not same(other)
        assert not same(other, order=False)
    assert same(profile(), expected=[])
    with pytest.raises(GradingError, match="name, url or list"):
        same(profile(*BAR), expected=[["News"], ["Work", []]])


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "{}", "null", '{"roots": []}', '{"roots": {"bookmark_bar": 1}}',
     '{"roots": {"bookmark_bar": {"children": [1]}}}', b"\xff\xfe",
     '{"roots": {"bookmark_bar": {"children": [{"url": 5}, {"name": [1]}]}}}',
     '{"roots": ' + '{"bookmark_bar": ' * 5000],
)  # fmt: skip
def test_what_is_no_bookmarks_file_is_a_plain_fail(judge: Judge, text: str | bytes | None):
    """For what is to be there and for an empty folder alike."""
    assert not judge("browser.bookmark", text, url="http://a.test/").passed
    assert not judge("browser.bookmarks", text, expected=[]).passed


@pytest.fixture
def history(tmp_path: Path) -> Item:
    """As collected from a profile: two pages, a hidden one, a finished and a broken download."""
    path = tmp_path / "History"
    with sqlite3.connect(path) as connection:
        connection.executescript("""
            PRAGMA synchronous = OFF;
            CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR,
              title LONGVARCHAR, visit_count INTEGER DEFAULT 0 NOT NULL,
              hidden INTEGER DEFAULT 0 NOT NULL);
            CREATE TABLE downloads(id INTEGER PRIMARY KEY, target_path LONGVARCHAR NOT NULL,
              received_bytes INTEGER NOT NULL, total_bytes INTEGER NOT NULL,
              state INTEGER NOT NULL);
            CREATE TABLE downloads_url_chains (id INTEGER NOT NULL, chain_index INTEGER NOT NULL,
              url LONGVARCHAR NOT NULL, PRIMARY KEY (id, chain_index));
            INSERT INTO urls(url, title, visit_count, hidden) VALUES
              ('http://a.test/', 'A', 2, 0), ('http://a.test/sub', 'S', 1, 0),
              ('http://frame.test/', 'F', 1, 1);
            INSERT INTO downloads VALUES (1, '/home/user/Downloads/f.pdf', 9, 9, 1),
              (2, '/home/user/Downloads/g.pdf', 4, 9, 1),
              (3, '/home/user/Downloads/h.pdf', 9, 9, 2);
            INSERT INTO downloads_url_chains VALUES (1, 0, 'http://a.test/get'),
              (1, 1, 'http://cdn.test/f.pdf'), (2, 0, 'http://a.test/g'), (3, 0, 'http://a.test/h');
        """)
    connection.close()
    entry = store(tmp_path, "0000", "/p/History", path.read_bytes())
    return Item("history", "glob", "/p/History*", "present", tmp_path, entries=(entry,))


def test_a_visit_is_of_this_very_page(history: Item):
    """As often as declared; frames within other pages are none."""
    assert browser.visited(history, url="http://A.test", visits=2).passed
    assert browser.visited(history, url="http://a.test/sub").passed
    assert not browser.visited(history, url="http://a.test", visits=3).passed
    assert not browser.visited(history, url="http://a.test/su").passed
    assert not browser.visited(history, url="http://frame.test/").passed
    assert browser.not_visited(history, url=r"http://b\.test/.*").passed
    assert browser.not_visited(history, url="a.test").passed
    assert not browser.not_visited(history, url=r"http://a\.test/.*").passed
    assert not browser.not_visited(history, url=".*").passed


def test_a_history_that_is_gone_is_not_an_empty_one(history: Item, tmp_path: Path):
    """Whoever removes the profile has not cleared it."""
    gone = Item("history", "glob", "/p/History*", "absent", tmp_path)
    entry = store(tmp_path, "0001", "/p/History", b"SQLite format 3\0" * 9)
    broken = Item("history", "glob", "/p/History*", "present", tmp_path, entries=(entry,))
    for item in (gone, broken):
        assert not browser.not_visited(item, url=".*").passed
        assert not browser.visited(item, url="http://a.test/").passed
        assert not browser.downloaded(item, url="http://a.test/get", path="/x").passed


def test_a_download_is_finished_and_in_its_place(history: Item):
    """From any URL of its chain; not broken off, not elsewhere."""
    path = "/home/user/Downloads/f.pdf"
    assert browser.downloaded(history, url="http://a.test/get", path=path).passed
    assert browser.downloaded(history, url="http://cdn.test/f.pdf", path=path).passed
    assert not browser.downloaded(history, url="http://a.test/", path=path).passed
    assert not browser.downloaded(history, url="http://a.test/get", path=f"{path}x").passed
    for name in "gh":
        path = f"/home/user/Downloads/{name}.pdf"
        assert not browser.downloaded(history, url=f"http://a.test/{name}", path=path).passed


def sessions(folder: Path, *files: bytes, odd: str = "file") -> Item:
    """Session files, the last one the newest."""
    entries = [
        store(folder, f"{n:04}", f"/p/Sessions/Session_{n + 5}", data)
        for n, data in enumerate(files)
    ]
    if odd != "file":
        entries.append(Entry("/p/Sessions/Session_99", odd, 0))
    state = "present" if entries else "absent"
    return Item("s", "glob", "/p/Sessions/Session_*", state, folder, entries=tuple(entries))


OPEN = [f"{SITE}/a.html", f"{SITE}/b.html", f"{SITE}/c.html", f"{SITE}/c.html?x=1#frag"]


def test_the_tabs_of_a_real_session(tmp_path: Path):
    """Where each went back to, without the closed one, with the one in front."""
    item = sessions(tmp_path, SAVED.read_bytes())
    assert browser.tabs(item, expected=OPEN, active=OPEN[1]).passed
    assert not browser.tabs(item, expected=OPEN, active=OPEN[0]).passed
    assert not browser.tabs(item, expected=OPEN[::-1]).passed
    assert browser.tabs(item, expected=OPEN[::-1], order=False).passed
    for other in (OPEN[:3], [*OPEN, f"{SITE}/a.html#gone"], [*OPEN[:3], f"{SITE}/c.html"], []):
        assert not browser.tabs(item, expected=other).passed
        assert not browser.tabs(item, expected=other, order=False).passed


def record(command: int, *numbers: int) -> bytes:
    """One command of a session file with its whole numbers."""
    body = bytes([command]) + struct.pack(f"<{len(numbers)}i", *numbers)
    return struct.pack("<H", len(body)) + body


def page(tab: int, index: int, address: str) -> bytes:
    """The command for a tab's page."""
    body = bytes([6]) + struct.pack("<iiii", 0, tab, index, len(address)) + address.encode()
    return struct.pack("<H", len(body)) + body


HEAD = b"SNSS\3\0\0\0"


def test_windows_moves_and_pruned_pages_are_followed(tmp_path: Path):
    """A tab that moves, pages that fall away, a window that closes."""
    tabs = b"".join(
        record(0, window, tab) + record(2, tab, place) + page(tab, 0, address) + record(7, tab, 0)
        for window, tab, place, address in [
            (1, 10, 0, "http://a.test/"), (1, 11, 1, "http://b.test/"), (2, 20, 0, "http://c.test/"),
        ]
    )  # fmt: skip

    def seen(more: bytes) -> list[list[str]]:
        return [[tab.url for tab in window.tabs] for window in read_session(HEAD + tabs + more)]

    assert seen(b"") == [["http://a.test/", "http://b.test/"], ["http://c.test/"]]
    assert seen(record(2, 10, 2)) == [["http://b.test/", "http://a.test/"], ["http://c.test/"]]
    assert seen(record(17, 2, 0, 0, 0)) == [["http://a.test/", "http://b.test/"]]
    assert seen(record(0, 1, 20) + record(2, 20, 2))[0][2] == "http://c.test/"
    more = page(20, 1, "http://d.test/") + page(20, 2, "http://e.test/") + record(7, 20, 2)
    assert seen(more)[1] == ["http://e.test/"]
    assert seen(more + record(24, 20, 0, 2))[1] == ["http://e.test/"]
    assert seen(more + record(24, 20, 2, 1))[1] == ["http://d.test/"]


def test_the_newest_session_counts(tmp_path: Path):
    """An older one that was right is over; a link or a heap in its place is none."""
    empty = HEAD + record(0, 1, 2)
    assert not browser.tabs(sessions(tmp_path, SAVED.read_bytes(), empty), expected=OPEN).passed
    assert browser.tabs(sessions(tmp_path, empty, SAVED.read_bytes()), expected=OPEN).passed
    item = sessions(tmp_path, SAVED.read_bytes(), odd="link")
    assert not browser.tabs(item, expected=OPEN).passed
    assert not browser.tabs(sessions(tmp_path), expected=[]).passed
    with pytest.raises(GradingError, match="as a glob"):
        browser.tabs(Item("s", "file", "/p/Session_1", "absent", tmp_path), expected=OPEN)


@pytest.mark.parametrize(
    "data",
    [b"", b"SNSS", b"SNSS\x09\0\0\0", HEAD + record(0, 1), HEAD + record(6, 0, 1, 0, 2**31 - 1),
     HEAD + record(6, 0, 1, 0, -5), HEAD + page(1, 0, "x").replace(b"x", b"\xff"), b"\0" * 100],
)  # fmt: skip
def test_what_is_no_session_is_a_plain_fail(tmp_path: Path, data: bytes):
    """Another version, commands cut short, lengths beyond the end."""
    assert not browser.tabs(sessions(tmp_path, data), expected=[]).passed


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_session_is_a_plain_fail_or_read(tmp_path: Path, seed: int):
    """Bytes changed anywhere never become a fault of the grader."""
    dice = random.Random(seed)
    data = bytearray(SAVED.read_bytes())
    for _ in range(60):
        data[dice.randrange(8, len(data))] = dice.randrange(256)
    item = sessions(tmp_path, bytes(data[: dice.randrange(8, len(data))]))
    assert isinstance(browser.tabs(item, expected=OPEN), Verdict)
    try:
        read_session(bytes(data))
    except Fails:
        pass
