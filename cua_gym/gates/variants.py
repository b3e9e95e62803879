"""Other forms of one evidence: what a `Variant` is, and the ways in which one value can be wrong.

Which values there are, and which of them an attempt changed, is for the modules of each format.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

__all__ = ["MOST", "Content", "Variant", "altered", "halves", "place", "spread"]

MOST = 200
"""Of the variants of one evidence's parts; more say nothing new."""
_TOKENS = 4
"""Words with a digit that get one changed, in one value."""

T = TypeVar("T")
Form = TypeVar("Form", covariant=True)


@dataclass(frozen=True, slots=True)
class Variant(Generic[Form]):
    """Another form of a file's content, or of what a glob found.

    Attributes:
        what: one word: ``altered``, ``reverted``, ``newlines``.
        where: the part that differs and how, such as ``line-3:digit``; empty is all of it.
        make: gives the form; it is asked for only when the variant is used.
    """

    what: str
    where: str
    make: Callable[[], Form]

    @property
    def name(self) -> str:
        """What and where, as in a mutant's name."""
        return f"{self.what}:{self.where}" if self.where else self.what


Content = Variant[bytes]


def halves(every: Sequence[T], undo: Callable[[Sequence[T]], Form]) -> list[Variant[Form]]:
    """Half of several changes undone, and the other half."""
    if len(every) < 2:
        return []
    half = len(every) // 2
    return [
        Variant("half", "first", partial(undo, every[half:])),
        Variant("half", "second", partial(undo, every[:half])),
    ]


def spread(items: Sequence[T], most: int = MOST) -> list[T]:
    """At most ``most`` of the items, spread evenly over all of them, always the same ones.

    One of each stretch is taken, from another place in it than of the stretch before: in a list
    that repeats itself every nine items, not the same ninth each time.
    """
    count = len(items)
    if count <= most:
        return list(items)
    bounds = [number * count // most for number in range(most + 1)]
    return [
        items[low + (7919 * number) % (high - low)]  # a prime, which no stretch is a multiple of
        for number, (low, high) in enumerate(itertools.pairwise(bounds))
    ]


def place(text: str) -> str:
    """A text as part of a mutant's name: one line without blanks and patterns' signs, not long."""
    plain = re.sub(r"[\s*?\[\]:]+", "-", text).strip("-")
    return plain if len(plain) <= 60 else f"{plain[:40]}..{plain[-18:]}"


_NUMBER = re.compile(r"([-+−]?)(\d+(?:[.,]\d+)*)")
_ALONE = re.compile(r"(?<![\w.,:/+−-])([-−]?)(\d+(?:[.,]\d+)*)(?![\w:/−-]|[.,]\d)")


def altered(value: str) -> Iterator[tuple[str, str]]:
    """Wrong values beside a right one: how, and what it is then. Blank values have none.

    None of them is within a tolerance that anybody would allow: of a number with decimals no last
    digit is changed, cut or added.
    """
    value = value.strip()
    if not value:
        return
    seen = {value, ""}
    for how, wrong in _altered(value):
        if wrong not in seen:
            seen.add(wrong)
            yield how, wrong
    yield "empty", ""


def _altered(value: str) -> Iterator[tuple[str, str]]:
    number = _NUMBER.fullmatch(value)
    decimal = number is not None and not number[2].isdigit()
    found = [m for m in re.finditer(r"\S+", value) if re.search(r"[0-9]", m[0])]
    for count, token in enumerate(found[:_TOKENS], 1):
        at = token.start() + re.search(r"[0-9]", token[0]).start()  # type: ignore[union-attr]
        digit = str(int(value[at]) % 9 + 1)
        how = "digit" if count == 1 else f"digit-{count}"
        yield how, value[:at] + digit + value[at + 1 :]
    yield "appended", value + ("7" if number and not decimal else "x")
    yield "extended", f"{value} or so"
    yield "prefixed", f"{number[1]}1{number[2]}" if number else f"x{value}"
    if not decimal:
        yield "cut", value[:-1]
    yield "nan", "nan"
    yield "null", "null"
    if (alone := _ALONE.search(value)) and re.search(r"[1-9]", alone[2]):
        sign = "" if alone[1] else "-"
        yield "sign", value[: alone.start()] + sign + alone[2] + value[alone.end() :]
