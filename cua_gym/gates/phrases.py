"""Whether a text says something, however it is written: case, whitespace, punctuation, numbers.

A text becomes a row of words and numbers; a phrase is said where its row is part of that row, so
``7`` is not said by ``17``, and ``r1a2`` not by ``r1a2b3``.
"""

from __future__ import annotations

import datetime
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation

__all__ = ["Said", "row"]

_RUN = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_NUMBER = re.compile(r"\d+(?:[,.'\u2019\u00a0\u202f ]\d{3}(?!\d))*(?:[.,]\d+)?")
_PLACE = re.compile(r"[A-Z]{1,3}[0-9]{1,5}")
_PARTS = re.compile(r"[\n\t,;|=/\\]+|: +| +[-\u2013] +")
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T00:00:00)?")
_DAY_FORMS = (
    "{d} {month} {y}", "{month} {d} {y}", "{d} {mon} {y}", "{mon} {d} {y}", "{d} {m} {y}",
    "{m} {d} {y}", "{dd} {mm} {y}", "{mm} {dd} {y}", "{y} {mm} {dd}", "{d} {month}", "{month} {d}",
    "{d} {nth} {month}", "{month} {d} {nth}", "{d} {nth} of {month}",
)  # fmt: skip


def row(text: str) -> str:
    """Its words and numbers, case folded, each with one space on either side.

    ``120ms`` and ``Q4`` are a word and a number; what changes more often, as ``r1a2b3``, is one.
    """
    words: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        parts = _WORD.findall(run)
        words += parts if len(parts) <= 2 else [run]
    return f" {' '.join(words)} "


class Said:
    """What some texts say, to be asked for phrases and numbers."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._raw = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
        # No phrase runs over from one text to the next.
        self._rows = " \n ".join(row(text) for text in self._raw)
        self._numbers: set[Decimal] | None = None

    def has(self, value: str | int | float) -> bool:
        """Whether it is said, as a phrase or as a number; a long one line by line."""
        if not isinstance(value, str):
            return _decimal(str(value)) in self._all_numbers()
        return self._phrase(value) or self._number(value) or self._day(value) or self._parts(value)

    def _phrase(self, text: str) -> bool:
        wanted = row(text)
        if wanted.strip():
            return wanted in self._rows
        plain = unicodedata.normalize("NFKC", text).casefold().strip()
        return any(plain in raw for raw in self._raw)

    def _number(self, text: str) -> bool:
        match = _NUMBER.fullmatch(text.strip().lstrip("+-\N{MINUS SIGN}"))
        return match is not None and bool(set(_meanings(match[0])) & self._all_numbers())

    def _day(self, text: str) -> bool:
        match = _DAY.fullmatch(text.strip())
        try:
            day = datetime.date(*map(int, match.groups())) if match else None
        except ValueError:
            return False
        return day is not None and any(self._phrase(form) for form in _forms(day))

    def _parts(self, text: str) -> bool:
        """A text of several parts, such as lines, fields or folders; a cell by column and row."""
        if _PLACE.fullmatch(text):
            return all(self._phrase(part) for part in _WORD.findall(text))
        parts = [part for part in _PARTS.split(text) if part.strip()]
        if len(parts) < 2:
            return ":" in text and all(map(self._cell, text.split(":")))
        return all(self.has(part) for part in parts)

    def _cell(self, text: str) -> bool:
        return _PLACE.fullmatch(text.strip()) is not None and self.has(text.strip())

    def _all_numbers(self) -> set[Decimal]:
        if self._numbers is None:
            found = itertools.chain.from_iterable(map(_NUMBER.finditer, self._raw))
            self._numbers = {n for match in found for n in _readings(match[0])}
        return self._numbers


def _readings(text: str) -> Iterator[Decimal]:
    """Every number that may be read in a text."""
    yield from _meanings(text)
    # Digits that only stand beside each other, as in a list.
    for digits in re.findall(r"\d+", text):
        yield from filter(None, [_decimal(digits)])


def _meanings(text: str) -> Iterator[Decimal]:
    """Every number that all of a text may mean: ``1,234`` is 1234 here, 1.234 elsewhere."""
    for group, mark in ((",", "."), (".", ","), ("", "."), ("", ",")):
        plain = re.sub(rf"['\u2019\u00a0\u202f {re.escape(group)}]", "", text).replace(mark, ".")
        yield from filter(None, [_decimal(plain)])


def _decimal(text: str) -> Decimal | None:
    try:
        number = abs(Decimal(text))
    except InvalidOperation:
        return None
    return number.normalize() if number.is_finite() else None


def _forms(day: datetime.date) -> Iterator[str]:
    nth = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day not in (11, 12, 13) else 0, "th")
    # strftime would ask the host's language.
    month = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
             "October", "November", "December")[day.month - 1]  # fmt: skip
    for form in _DAY_FORMS:
        yield form.format(
            d=day.day, dd=f"{day.day:02}", m=day.month, mm=f"{day.month:02}", y=day.year, nth=nth,
            month=month, mon=month[:3],
        )  # fmt: skip
