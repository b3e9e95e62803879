"""Numbers and dates that people write: units, locales, tolerances; nothing is guessed.

Empty text, ``nan``, ``null``, ``none`` and ``inf`` are no numbers, so they never equal 0. Leading
zeros make an identifier, not a number: ``000170`` is not 170, here and in `evaluators.text`.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

Mark = Literal[".", ","]
Grouping = Literal["", ".", ",", " ", "'"]
Order = Literal["", "dmy", "mdy"]
DEFAULT_RELATIVE = 1e-9
"""Hides binary floats' noise and nothing that a person would write."""
MAX_WRITTEN = 200
"""Characters; a longer number or date is none, and would overflow what counts with it."""


def parse_number(text: str, *, decimal: Mark = ".", grouping: Grouping = "") -> Decimal:
    """The number that all of a text is.

    Args:
        decimal: the decimal mark, ``.`` or ``,``.
        grouping: the mark between thousands, which must stand at every third digit; "" for none.

    Raises:
        Fails: it is no finite number in this locale.
        GradingError: the marks are not possible ones.
    """
    if decimal not in (".", ",") or grouping not in ("", ".", ",", " ", "'") or decimal == grouping:
        raise GradingError(f"decimal {decimal!r} and grouping {grouping!r} do not go together")
    if len(text) > MAX_WRITTEN:
        raise Fails(f"{len(text)} characters are no number", seen=text)
    plain = text.strip().replace("−", "-").replace("\u00a0", " ").replace("\u202f", " ")
    digits = r"(?:0|[1-9][0-9]*)"
    if grouping:
        digits = rf"(?:0|[1-9][0-9]{{0,2}}(?:{re.escape(grouping)}[0-9]{{3}})+|[1-9][0-9]*)"
    pattern = rf"([+-]?{digits})(?:{re.escape(decimal)}([0-9]+))?(?:[eE]([+-]?[0-9]{{1,3}}))?"
    match = re.fullmatch(pattern, plain)
    if match is None:
        raise Fails(f"{text!r:.80} is no number (decimal mark {decimal!r})", seen=text)
    whole = match[1].replace(grouping, "") if grouping else match[1]
    try:
        return Decimal(f"{whole}.{match[2] or '0'}E{match[3] or '0'}")
    except InvalidOperation as error:
        raise Fails(f"{text!r:.80} is no number: {error}", seen=text) from error


def close(
    seen: Decimal | float, wanted: Decimal | float | str, absolute: float, relative: float
) -> bool:
    """Whether two finite numbers are equal within the larger of the two tolerances.

    Raises:
        GradingError: the wanted value or a tolerance is no finite number, so nothing could fail.
    """
    try:
        # A wanted 000170 is an identifier too, and belongs to a check of text.
        target = parse_number(wanted) if isinstance(wanted, str) else Decimal(str(wanted))
        limits = [Decimal(str(absolute)), Decimal(str(relative))]
    except (InvalidOperation, Fails) as error:
        raise GradingError(f"wanted {wanted!r} is no number") from error
    if isinstance(wanted, bool) or not all(n.is_finite() for n in (target, *limits)):
        raise GradingError(f"wanted {wanted!r} and its tolerances must be finite numbers")
    if min(limits) < 0:
        raise GradingError(f"tolerances {absolute}, {relative} must not be negative")
    value = Decimal(str(seen))
    if not value.is_finite():
        return False
    return abs(value - target) <= max(limits[0], limits[1] * abs(target))


@check
def number(
    item: Item,
    *,
    expected: float | str,
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
    decimal: Mark = ".",
    grouping: Grouping = "",
    unit: str = "",
    unit_variants: Sequence[str] = (),
    unit_required: bool = False,
) -> Verdict:
    """All of the text is a number equal to ``expected`` within the larger tolerance.

    A declared ``unit`` (or variant) may follow, or must; one that is a currency's sign may also
    stand before (``$5``, ``-$5``). It refuses any other unit, words around the number, empty text,
    NaN, null, infinities, leading zeros, and digits grouped otherwise.
    """
    text = item.text().strip()
    bare = _without_unit(text, [u for u in (unit, *unit_variants) if u])
    if unit_required and bare == text:
        raise Fails(f"{text!r:.80} lacks the unit {unit!r}", seen=text, wanted=f"{expected} {unit}")
    value = parse_number(bare, decimal=decimal, grouping=grouping)
    same = close(value, expected, absolute, relative)
    return verdict(same, "as numbers", seen=text, wanted=f"{expected} {unit}".strip())


def _without_unit(text: str, units: Sequence[str]) -> str:
    """The text without the longest of the units that it has; case counts: a mW is no MW."""
    for unit in sorted(units, key=len, reverse=True):
        if text.endswith(unit):
            return text.removesuffix(unit).rstrip()
        sign = text[:1] if text[:1] in ("+", "-", "−") else ""
        if unicodedata.category(unit[0]) == "Sc" and text.startswith(unit, len(sign)):
            amount = text[len(sign) + len(unit) :].lstrip()
            # "-$-5" is nothing that anybody writes.
            return text if sign and amount[:1] in ("+", "-", "−") else sign + amount
    return text


_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
]  # fmt: skip
_NAMED = {name: n for n, name in enumerate(_MONTHS, 1)} | {
    name[:3]: n for n, name in enumerate(_MONTHS, 1)
}
_NAMED["sept"] = 9
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY = r"(?:(mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
_DAY = r"([0-9]{1,2})(?:st|nd|rd|th)?"


def parse_date(text: str, order: Order = "") -> tuple[int | None, int, int]:
    """(year or None, month, day) of a date in English or in digits.

    Args:
        order: ``dmy`` or ``mdy`` for digits such as 05/06; without it only those are taken that
            can be read in one way.

    Raises:
        Fails: no date, no such day, another weekday than it names, or it could be read in two
            ways.
    """
    if order not in ("", "dmy", "mdy"):
        raise GradingError(f"order is dmy or mdy, not {order!r}")
    if len(text) > MAX_WRITTEN:
        raise Fails(f"{len(text)} characters are no date", seen=text)
    plain = " ".join(text.strip().casefold().split())
    if match := re.fullmatch(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})", plain):
        return _real(text, int(match[1]), int(match[3]), int(match[4]))
    if match := re.fullmatch(rf"{_WEEKDAY}{_DAY}(?: of)? ([a-z]+)\.?(?:,? ([0-9]{{4}}))?", plain):
        return _real(text, _year(match[4]), _month(text, match[3]), int(match[2]), match[1])
    if match := re.fullmatch(rf"{_WEEKDAY}([a-z]+)\.? {_DAY}(?:,? ([0-9]{{4}}))?", plain):
        return _real(text, _year(match[4]), _month(text, match[2]), int(match[3]), match[1])
    if match := re.fullmatch(r"([0-9]{1,2})([-/.])([0-9]{1,2})(?:\2([0-9]{4}))?\.?", plain):
        first, second, year = int(match[1]), int(match[3]), _year(match[4])
        readings = {(first, second)} if order == "mdy" else {(second, first)}
        if not order:
            readings = {(m, d) for m, d in ((first, second), (second, first)) if m <= 12}
        if len(readings) > 1:
            raise Fails(f"{text!r:.80} can be read as two dates", seen=text)
        for month, day in readings:
            return _real(text, year, month, day)
    raise Fails(f"{text!r:.80} is no date", seen=text)


def _year(text: str | None) -> int | None:
    return None if text is None else int(text)


def _month(text: str, name: str) -> int:
    if name not in _NAMED:
        raise Fails(f"{text!r:.80}: no month is called {name!r}", seen=text)
    return _NAMED[name]


def _real(
    text: str, year: int | None, month: int, day: int, weekday: str | None = None
) -> tuple[int | None, int, int]:
    try:
        # Without a year the 29th of February is possible.
        there = datetime.date(2000 if year is None else year, month, day)
    except ValueError as error:
        raise Fails(f"{text!r:.80} is no date: {error}", seen=text) from error
    if year is not None and weekday is not None and weekday[:3] != _WEEKDAYS[there.weekday()]:
        raise Fails(f"{text!r:.80}: that day is a {there:%A}", seen=text)
    return year, month, day


@check
def date(item: Item, *, expected: str, order: Order = "", year_optional: bool = False) -> Verdict:
    """All of the text is the expected day, written in any way that can be read in one way.

    ``October 21st``, ``Oct 21``, ``21/10`` are equal. Where ``expected`` has a year, the text
    must have it too unless ``year_optional``; where it has none, the text's year is not looked
    at. It refuses 05/06 unless ``order`` is declared, days that do not exist or are another
    weekday, and two-digit years.
    """
    text = item.text()
    try:
        wanted = parse_date(expected, order)
    except Fails as error:
        raise GradingError(f"expected: {error}") from error
    year, month, day = parse_date(text, order)
    if wanted[0] is None or (year is None and year_optional):
        year = wanted[0]
    return verdict((year, month, day) == wanted, "as dates", seen=text.strip(), wanted=expected)
