"""Variants of text, line by line: settings files (``key = value``) are lines too."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, spread

__all__ = ["Edit", "broken", "edits", "kept", "partly", "text_of"]

_MOST_COMPARED = 4_000_000
"""Pairs of lines; more are one change of all that differs, for comparing them takes minutes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Edit:
    """One line (or row, or paragraph) that differs.

    Attributes:
        before: its place in the old list, None when it is new.
        after: its place in the new list, None when it is gone.
        at: where in the new list it stands, or would.
    """

    before: int | None
    after: int | None
    at: int


def edits(before: Sequence[T], after: Sequence[T]) -> list[Edit]:
    """What differs from one list to the other, item by item, in order."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-tail - 1] == after[-tail - 1]:
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    blocks = [("replace", 0, len(old), 0, len(new))]
    if len(old) * len(new) <= _MOST_COMPARED:
        # Not the items themselves, which need not be hashable.
        keys = {repr(item): n for n, item in enumerate([*old, *new])}
        one, two = [keys[repr(i)] for i in old], [keys[repr(i)] for i in new]
        blocks = list(difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes())
    found = []
    for kind, a, b, c, d in blocks:
        if kind == "equal":
            continue
        for offset in range(max(b - a, d - c)):
            at = head + min(c + offset, d)
            old_place = head + a + offset if a + offset < b else None
            found.append(Edit(old_place, at if c + offset < d else None, at))
    return found


def partly(
    before: Sequence[T], after: Sequence[T], every: Sequence[Edit], undone: Collection[Edit]
) -> list[T]:
    """The list after its edits, without those that are undone."""
    result: list[T] = []
    done = 0
    for edit in every:
        result += after[done : edit.at]
        done = edit.at + (edit.after is not None)
        if edit in undone:
            result += [] if edit.before is None else [before[edit.before]]
        else:
            result += after[edit.at : done]
    return result + list(after[done:])


def text_of(data: bytes) -> str | None:
    """The text that a file is, or None."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def broken(start: str | None, solved: str) -> list[Content]:
    """Half of the changed lines undone, each on its own, and each altered.

    Lines that differ in white space alone are no changes.
    """
    before, after = (start or "").split("\n"), solved.split("\n")
    every = edits(before, after)

    def content(undone: Collection[Edit]) -> bytes:
        return "\n".join(partly(before, after, every, undone)).encode()

    def text(at: int | None, lines: Sequence[str]) -> str:
        return "" if at is None else lines[at].strip()

    real = [e for e in every if text(e.before, before) != text(e.after, after)]
    found: list[Content] = halves(real, lambda undone: content(set(undone)))
    parts: list[Content] = []
    for edit in spread(real):
        if edit.after is None:
            name = f"gone-line-{edit.before + 1 if edit.before is not None else 0}"
            parts.append(Variant("reverted", name, partial(content, {edit})))
            continue
        name = f"line-{edit.after + 1}"
        if len(real) > 1:  # else it is the whole file that is reverted
            parts.append(Variant("reverted", name, partial(content, {edit})))
        for how, line in wrong_lines(after[edit.after]):
            parts.append(
                Variant("altered", f"{name}:{how}", partial(_with, after, edit.after, line))
            )
    return found + spread(parts, MOST - len(found))


def _with(lines: Sequence[str], at: int, line: str) -> bytes:
    return "\n".join([*lines[:at], line, *lines[at + 1 :]]).encode()


_KEY = re.compile(r"""\s*["']?\w[\w ."'/-]{0,60}?["']?\s*(?:=|:(?=\s))\s*""")
_QUOTED = re.compile(r"""(["'])(.*)(\1[,;]?)""")


def wrong_lines(line: str) -> Iterator[tuple[str, str]]:
    """Wrong lines beside a right one; of ``key = value`` the value is wrong."""
    key = _KEY.match(line)
    head = key[0] if key else line[: len(line) - len(line.lstrip())]
    value = line[len(head) :].rstrip()
    tail = line[len(head) + len(value) :]
    if not value:
        return
    if quoted := _QUOTED.fullmatch(value):
        head, value, tail = head + quoted[1], quoted[2], quoted[3] + tail
    for how, wrong in altered(value):
        yield how, f"{head}{wrong}{tail}"


def kept(solved: str) -> Iterator[Content]:
    """Another newline style, and a final newline more or less."""
    lines = solved.replace("\r\n", "\n")
    if "\n" in lines.removesuffix("\n"):
        other = lines if "\r\n" in solved else lines.replace("\n", "\r\n")
        yield Variant("newlines", "", other.encode)
    if solved.strip():
        newline = "\r\n" if "\r\n" in solved else "\n"
        bare = solved.removesuffix(newline)
        yield Variant("final-newline", "", (bare if bare != solved else solved + newline).encode)
