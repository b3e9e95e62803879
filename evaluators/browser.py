"""Chromium's profile, as its files say: bookmarks, history, downloads, open tabs.

Its settings are JSON (`data.json_value` on ``Preferences``, with ``default``, since it writes what
was changed alone). The evidence is, below ``~/.config/chromium/Default``: ``Bookmarks``, the glob
``History*``, the glob ``Sessions/Session_*``. It writes them late: tabs and bookmarks after some
3 s, settings and history after up to 10 s, all of them when it is closed; a task says so, or closes
it first with a live command.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .bounds import within
from .chromium_session import read_session
from .data import parse_json
from .sqlite import database, found
from .text import Pattern

PORTS = {"http": 80, "https": 443}
ROOTS = ("bookmark_bar", "other", "synced")
MAX_SESSION = 16 * 1024 * 1024


def a_folder(path: Sequence[str]) -> None:
    """What a path to a folder of bookmarks is.

    Raises:
        ValueError: it is not.
    """
    if not path or path[0] not in ROOTS:
        raise ValueError(f"a folder begins with one of {', '.join(ROOTS)}")


Folder = Annotated[Sequence[str], a_folder]


def same_url(one: str, other: str) -> bool:
    """Whether two URLs are one: the case of scheme and host, the port that a scheme has anyway,
    and the slash after a bare host are no difference; a fragment or query is."""
    return _plain_url(one) == _plain_url(other)


def _plain_url(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:  # no URL, so as it is
        return url
    if not parts.netloc:
        return url
    host = parts.netloc.rpartition("@")[2].lower()
    if port is not None and port == PORTS.get(parts.scheme):
        host = host.removesuffix(f":{port}")
    user, at, _ = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}{at}{host}", path=parts.path or "/").geturl()


@check
def bookmark(
    item: Item, *, url: str, name: str = "", folder: Folder = ("bookmark_bar",)
) -> Verdict:
    """In this very folder there is exactly one bookmark of the URL, and it has the ``name``.

    ``folder``: ``bookmark_bar``, ``other`` or ``synced``, then names of folders below. It refuses
    a bookmark in another folder, another spelling of the name, and a page below or above.
    """
    children = _folder(item, folder)
    fits = [c for c in children if "url" in c and same_url(str(c["url"]), url)]
    right = len(fits) == 1 and name in ("", fits[0].get("name"))
    return verdict(right, f"bookmarks in {list(folder)}", seen=_told(children), wanted=[name, url])


@check
def bookmarks(
    item: Item,
    *,
    expected: list[Any],
    folder: Folder = ("bookmark_bar",),
    order: bool = True,
) -> Verdict:
    """The folder holds exactly these: ``[name, url]``, or ``[name, [...]]`` for a folder in it.

    ``order`` may be declared to be free. It refuses one more, one less, and another name.
    """
    children = _folder(item, folder)
    try:
        with within("the bookmarks"):
            same = _same_tree(children, expected, order)
    except (TypeError, ValueError) as error:
        raise GradingError(f"expected is a list of [name, url or list]: {error}") from error
    return verdict(same, f"bookmarks in {list(folder)}", seen=_told(children), wanted=expected)


def _folder(item: Item, path: Sequence[str]) -> list[dict[str, Any]]:
    """What is in a folder.

    Raises:
        Fails: no bookmarks, or no one such folder.
    """
    top = parse_json(item.text())
    roots = top.get("roots") if isinstance(top, dict) else None
    here = roots.get(path[0]) if isinstance(roots, dict) else None
    for name in path[1:]:
        inside = [c for c in _children(here) if c.get("name") == name and "url" not in c]
        if len(inside) != 1:
            raise Fails(f"{len(inside)} folders {name!r} instead of one", seen=_told(inside))
        here = inside[0]
    return _children(here)


def _children(node: Any) -> list[dict[str, Any]]:
    children = node.get("children") if isinstance(node, dict) else None
    if not isinstance(children, list) or not all(isinstance(c, dict) for c in children):
        raise Fails("no bookmarks of Chromium", seen=node)
    return children


def _same_tree(children: list[dict[str, Any]], expected: list[Any], order: bool) -> bool:
    if len(children) != len(expected):
        return False

    def same(node: dict[str, Any], wanted: Any) -> bool:
        name, content = wanted
        if node.get("name") != name:
            return False
        if isinstance(content, str):
            return "url" in node and same_url(str(node["url"]), content)
        return "url" not in node and _same_tree(_children(node), content, order)

    if order:
        return all(same(c, w) for c, w in zip(children, expected, strict=True))
    left = list(children)
    for wanted in expected:
        match = next((n for n, node in enumerate(left) if same(node, wanted)), None)
        if match is None:
            return False
        del left[match]
    return True


def _told(children: list[dict[str, Any]]) -> list[Any]:
    return [[c.get("name"), c.get("url", "(folder)")] for c in children[:50]]


@check
def visited(item: Item, *, url: str, visits: int = 1) -> Verdict:
    """The history has this very page, visited at least so often.

    It refuses another page of the same site, and one that was only a part of another page.
    """
    with database(item) as connection:
        rows = found(connection, "SELECT url, visit_count FROM urls WHERE hidden = 0 ORDER BY id")
    count = sum(n for page, n in rows if isinstance(n, int) and same_url(str(page), url))
    return verdict(count >= visits, f"{count} visits", seen=rows[-50:], wanted=f"{url}: {visits}")


@check
def not_visited(item: Item, *, url: Pattern) -> Verdict:
    """The history has no page whose whole URL matches; ``.*`` for a history that is empty.

    It refuses a history that is not there at all.
    """
    with database(item) as connection:
        rows = found(connection, "SELECT url FROM urls ORDER BY id")
    with within("the history"):
        fits = [page for (page,) in rows if re.fullmatch(url, str(page))]
    return verdict(not fits, f"{len(fits)} pages", seen=fits[:50], wanted=f"none like {url}")


@check
def downloaded(item: Item, *, url: str, path: str) -> Verdict:
    """A download from this URL, by whatever it was led to, was finished into this very file.

    It refuses one that was broken off or went elsewhere. Whether the file is there still, and
    what is in it, is a matter of the file.
    """
    query = (
        "SELECT c.url, d.target_path, d.state, d.received_bytes, d.total_bytes "
        "FROM downloads d JOIN downloads_url_chains c ON c.id = d.id ORDER BY d.id, c.chain_index"
    )
    with database(item) as connection:
        rows = found(connection, query)
    fits = [
        row
        for row in rows
        if same_url(str(row[0]), url) and row[1] == path and row[2] == 1 and row[3] == row[4]
    ]
    return verdict(bool(fits), "downloads", seen=rows[-50:], wanted=[url, path])


@check
def tabs(item: Item, *, expected: list[str], order: bool = True, active: str = "") -> Verdict:
    """The open tabs, of all windows in the order they were opened, show exactly these pages.

    ``order`` may be declared to be free; ``active`` is the page shown in some window. The last
    session counts, as it was when it was last written. It refuses a tab more or less.
    """
    windows = read_session(_last_session(item))
    seen = [tab.url for window in windows for tab in window.tabs]
    left, right = [_plain_url(u) for u in seen], [_plain_url(u) for u in expected]
    same = left == right if order else sorted(left) == sorted(right)
    if active:
        same = same and any(w.shown and same_url(w.shown.url, active) for w in windows)
    shown = [w.shown.url for w in windows if w.shown]
    return verdict(same, f"{len(seen)} tabs, in front {shown}", seen=seen, wanted=expected)


def _last_session(item: Item) -> bytes:
    if item.kind != "glob":
        raise GradingError(f"{item.name}: collect sessions as a glob Sessions/Session_*")
    if not item.present:
        raise Fails(f"{item.name}: {item.note or 'absent'} ({item.source})", seen=item.state)
    numbered = [
        (int(match[1]), entry)
        for entry in item.entries
        if (match := re.fullmatch(r"Session_(\d{1,20})", PurePosixPath(entry.guest).name))
    ]
    if not numbered:
        raise Fails("no session of Chromium", seen=[e.guest for e in item.entries[:20]])
    entry = max(numbered, key=lambda pair: pair[0])[1]
    if entry.kind != "file" or entry.size > MAX_SESSION:
        raise Fails(f"{entry.guest} is a {entry.kind} of {entry.size} bytes", seen=entry.kind)
    return item.stored(entry).read_bytes()
