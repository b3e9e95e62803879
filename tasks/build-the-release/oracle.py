"""Do the steps of RELEASING.txt, one after the other, each in the program that is for it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Generator
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from cua_gym.actions import Action, Click, Key, Type
from cua_gym.agent.moves import rename
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.desktop import NotShown

_HEADS = [("breaking", "Breaking"), ("new", "New"), ("fix", "Fixed")]

Moves = Generator[Action, Any, None]

_TABS = ["RELEASING.txt", "CHANGES.txt", "version.txt", "package.conf", "", "history.csv"]
"""Of the text editor, once the new notes stand behind package.conf, where they are begun."""
_PLACES = {
    "Mousepad": (200, 25),
    "galculator": (900, 25),
    "Thunar": (900, 506),
    "Terminal": (900, 545),
}
"""Where each window can be clicked on its frame or status bar, as the setup lays them out."""


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """An oracle knows the number; an agent has to find it in the entries."""
    folder, name, version = f"/home/user/{params['folder']}", params["name"], params["version"]
    archive = f"{name}-{version}.zip"
    desk.focused("Mousepad")
    yield from _tab(desk, "RELEASING.txt")
    yield Key("ctrl+end")
    yield from _tab(desk, "CHANGES.txt")
    yield from _line(desk, 3, f"Version {version}")
    yield from _save(desk, f"{folder}/CHANGES.txt", f"Version {version}")
    yield from _tab(desk, "version.txt")
    yield Key("ctrl+a")
    yield Type(f"{version}\n")
    yield from _save(desk, f"{folder}/version.txt", version)
    yield from _tab(desk, "package.conf")
    yield from _line(desk, 4, f"version = {version}")
    yield from _save(desk, f"{folder}/package.conf", f"version = {version}")
    yield Key("ctrl+n")
    desk.focused("Untitled")
    kept = params["kept"]
    notes = [f"{head}: {text}" for kind, head in _HEADS for mark, text in kept if mark == kind]
    yield Type("\n".join([f"{params['title']} {version}", *notes, ""]))
    yield from _save_as(desk, f"{folder}/notes/{version}.txt")

    yield from _front(desk, "Terminal")
    yield Type("./build.sh\n")
    desk.until(f"unzip -tqq {folder}/build/release.zip 2>/dev/null", timeout_s=120.0)
    # What the terminal says is not in the accessibility tree; an oracle knows it.
    files, size, last = (params[key] for key in ("packed_files", "packed_bytes", "last_bytes"))

    yield from _front(desk, "Mousepad")
    yield from _tab(desk, "history.csv")
    yield from _front(desk, "galculator")
    yield Click(*desk.find("text", "", app="galculator"))
    yield Type(f"({size}-{last})/{last}*100")
    yield Key("enter")
    row = desk.node("table cell", r"^[0-9]+(\.[0-9]+)?$", app="galculator")
    grown = Decimal(row["name"]).quantize(Decimal("0.1"), ROUND_HALF_UP)
    yield from _front(desk, "Mousepad")
    yield Key("ctrl+end")
    line = f"{version},{files},{size},{grown}"
    yield Type(f"{line}\n")
    yield from _save(desk, f"{folder}/history.csv", line)

    yield from _front(desk, "Thunar")
    for _ in range(3):
        yield from _go(desk, f"{folder}/build")
        before = desk.look()
        yield Click(*desk.find("table cell", "^release.zip$", app="[Tt]hunar"))
        # What is selected stands in the status bar; before that, nothing is cut out.
        desk.changed(before, (830, 496, 400, 20))
        yield Key("ctrl+x")
        yield from _go(desk, f"{folder}/releases")
        yield Key("ctrl+v")
        with contextlib.suppress(NotShown):
            desk.until(f"test -s {folder}/releases/release.zip", timeout_s=30.0)
            break
    yield from rename(desk, f"{folder}/releases", "release.zip", archive)

    yield from _front(desk, "Terminal")
    yield Type(f"cd releases; sha256sum {archive} > {name}-{version}.sha256\n")
    desk.until(f"grep -q {archive} {folder}/releases/{name}-{version}.sha256")
    return None


def _tab(desk: Desk, name: str) -> Moves:
    """Show a tab of the text editor."""
    yield Key(f"alt+{_TABS.index(name) + 1}")
    desk.focused(f"/{name}")


def _line(desk: Desk, number: int, text: str) -> Moves:
    """Write a line anew."""
    yield Key("ctrl+l")
    desk.focused("Go To")
    yield Type(str(number))
    yield Key("enter")
    while True:
        try:
            desk.focused("Mousepad", timeout_s=20.0)
            break
        except NotShown:
            yield Key("enter")
    yield Key("shift+end")
    yield Type(text)


def _save(desk: Desk, path: str, line: str) -> Moves:
    """Save under its own name; it is in the file when that has the line."""
    there = f"grep -qFx -- {shlex.quote(line)} {shlex.quote(path)}"
    while True:
        yield Key("ctrl+s")
        with contextlib.suppress(NotShown):
            desk.until(there, timeout_s=30.0)
            return


def _save_as(desk: Desk, path: str) -> Moves:
    """Save a new text. While the dialog looks into the folder that was typed, it takes no Enter."""
    yield Key("ctrl+s")
    desk.focused("Save As")
    yield Key("ctrl+a")
    yield Type(path)
    while True:
        yield Key("enter")
        with contextlib.suppress(NotShown):
            desk.until(f"test -s {shlex.quote(path)}", timeout_s=15.0)
            break
    desk.focused("Mousepad")


def _go(desk: Desk, folder: str) -> Moves:
    """Show a folder in the file manager."""
    yield Key("ctrl+l")
    yield Type(folder)
    yield Key("enter")
    desk.focused(f"{folder.rpartition('/')[2]} - Thunar")


def _front(desk: Desk, title: str) -> Moves:
    yield Click(*_PLACES[title])
    desk.focused(title)
