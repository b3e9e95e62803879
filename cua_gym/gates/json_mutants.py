"""Variants of JSON, by leaves: each value that is no list and no object, by its path."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, place, spread

__all__ = ["broken", "kept", "read"]

Path = tuple[str | int, ...]


def read(text: str) -> Any:
    """The object or list that a text is in JSON, else None; a bare number is just text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def broken(start: Any, solved: Any) -> list[Content]:
    """Each changed leaf undone and altered, and half of them undone."""
    before, after = dict(_leaves(start, ())), dict(_leaves(solved, ()))
    changed = [p for p, v in after.items() if p not in before or not _same(before[p], v)]
    heads = {path[:length] for path in after for length in range(len(path))}
    gone = [p for p in before if p not in after and p not in heads and _holder(solved, p)]

    plain = json.dumps(solved)

    def undo(paths: Sequence[Path]) -> bytes:
        value = json.loads(plain)
        for path in reversed(paths):  # the last of a list first, so that places stay
            _put(value, path, before.get(path, _GONE))
        return _dumped(value)

    def alter(path: Path, leaf: Any) -> bytes:
        _put(solved, path, leaf)
        data = _dumped(solved)
        _put(solved, path, after[path])
        return data

    every = changed + gone
    found: list[Content] = halves(every, undo)
    parts: list[Content] = []
    for path in spread(every):
        name = place(".".join(map(str, path)))
        if len(every) > 1:
            parts.append(Variant("reverted", name, partial(undo, [path])))
        for how, leaf in _wrong_leaves(after[path]) if path in after else ():
            parts.append(Variant("altered", f"{name}:{how}", partial(alter, path, leaf)))
    return found + spread(parts, MOST - len(found))


_GONE = object()


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every value without parts, by its path; an empty list or object is one too."""
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    if path and not items:
        yield path, value
    for key, item in items:
        yield from _leaves(item, (*path, key))


def _same(one: Any, two: Any) -> bool:
    return type(one) is type(two) and bool(one == two)


def _holder(value: Any, path: Path) -> bool:
    """Whether the object that held the end of the path is still there."""
    for step in path[:-1]:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    return isinstance(value, dict)


def _put(value: Any, path: Path, leaf: Any) -> None:
    """Set, or with `_GONE` remove, what stands at a path."""
    for step in path[:-1]:
        value = value[step]
    if leaf is not _GONE:
        value[path[-1]] = leaf
    else:
        del value[path[-1]]


def _wrong_leaves(leaf: Any) -> Iterator[tuple[str, Any]]:
    if leaf is None:
        yield "zero", 0
        yield "empty", ""
    elif isinstance(leaf, bool):
        yield "turned", not leaf
        yield "null", None
    elif isinstance(leaf, str):
        yield from altered(leaf)
        yield "null-value", None
    elif isinstance(leaf, int | float):
        for how, text in altered(json.dumps(leaf)):
            yield how, _number(text)
    else:  # an empty list or object
        yield "null", None


def _number(text: str) -> Any:
    if text == "null":
        return None
    if text == "nan":
        return math.nan
    try:
        return json.loads(text)
    except ValueError:
        return text


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def kept(text: str, value: Any) -> Iterator[Content]:
    """The same value with its keys in another order and other white space."""

    def turned(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: turned(item) for key, item in reversed(part.items())}
        return [turned(item) for item in part] if isinstance(part, list) else part

    other = json.dumps(turned(value), indent=None if "\n" in text.strip() else 4)
    yield Variant("reformatted", "", other.encode)
