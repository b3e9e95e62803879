"""Finding files in a guest that its agent has filled as it liked.

No link is followed, and there is a bound to all that is looked at. What cannot be looked at is a
finding, not a fault: an account can mount a file system that not even root may enter.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from cua_gym.machine.base import FileStat, Shell

__all__ = ["MAX_VISITED", "TooMuch", "Unreadable", "look", "matches"]

MAX_VISITED = 50_000
MAX_DEPTH = 64
MAX_PATH = 4000
"""Bytes; Linux takes no path of 4096."""
MAX_FOLDER = 4 << 20
"""Bytes that a folder itself takes on its disk: some hundred thousand entries, minutes to list."""


class TooMuch(Exception):
    """More folders or files than anybody's work has."""


class Unreadable(Exception):
    """Something is there, and even root may not look at it."""


def look(shell: Shell, path: str) -> tuple[FileStat | None, str]:
    """The entry at ``path``, or why there is none; a link on the way counts as a link.

    Raises:
        Unreadable: what is there could not be looked at.
    """
    parts = PurePosixPath(path).parts
    stat = None
    for depth in range(2, len(parts) + 1):
        here = str(PurePosixPath(*parts[:depth]))
        try:
            stat = shell.stat(here)
        except (FileNotFoundError, NotADirectoryError):
            return None, f"{here} does not exist"
        except OSError as error:
            raise Unreadable(f"{here} cannot be looked at: {error.strerror}") from error
        if stat.kind == "link":
            return stat, f"{here} is a link, and links are not followed"
        if depth < len(parts) and stat.kind != "dir":
            return None, f"{here} is no folder"
    return stat, ""


def matches(shell: Shell, pattern: str) -> Iterator[tuple[str, FileStat]]:
    """Entries that match a glob, each once, in order of name; ``**`` is any number of folders.

    Raises:
        TooMuch: there is too much to look at.
        Unreadable: a folder could not be looked at.
    """
    parts = PurePosixPath(pattern).parts
    fixed = 1
    while fixed < len(parts) and not any(c in parts[fixed] for c in "*?["):
        fixed += 1
    base = PurePosixPath(*parts[: min(fixed, len(parts) - 1)])
    size = 0
    if base != PurePosixPath("/"):
        stat, _ = look(shell, str(base))
        if stat is None or stat.kind != "dir":
            return
        size = stat.size
    wanted = parts[len(base.parts) :]
    visited = 0
    # A stack of our own: an agent makes a thousand nested folders in one line.
    stack = [_entries(shell, str(base), size, _open({0}, wanted))]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        path, stat, places = entry
        visited += 1
        if visited > MAX_VISITED:
            raise TooMuch(f"more than {MAX_VISITED} entries to look at")
        hits = {p for p in places if wanted[p] == "**" or fnmatch.fnmatchcase(stat.name, wanted[p])}
        if len(wanted) - 1 in hits:
            yield path, stat
        below = _open({p if wanted[p] == "**" else p + 1 for p in hits}, wanted)
        if stat.kind == "dir" and below:
            if len(stack) > MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH:
                raise TooMuch(f"folders deeper than {MAX_DEPTH}, or a path over {MAX_PATH} bytes")
            stack.append(_entries(shell, path, stat.size, below))


def _open(places: set[int], wanted: Sequence[str]) -> frozenset[int]:
    """The parts of a pattern that the next name may match: ``**`` may also be no folder at all."""
    found = set(places)
    for place in sorted(places):
        while place < len(wanted) and wanted[place] == "**":
            place += 1
            found.add(place)
    return frozenset(p for p in found if p < len(wanted))


def _entries(
    shell: Shell, folder: str, size: int, places: frozenset[int]
) -> Iterator[tuple[str, FileStat, frozenset[int]]]:
    if size > MAX_FOLDER:
        raise TooMuch(f"{folder} has more entries than can be listed")
    try:
        stats = shell.list(folder)
    except (FileNotFoundError, NotADirectoryError):
        return  # it has gone meanwhile
    except OSError as error:
        raise Unreadable(f"{folder} cannot be looked at: {error.strerror}") from error
    for stat in sorted(stats, key=lambda s: s.name):
        yield str(PurePosixPath(folder) / stat.name), stat, places
