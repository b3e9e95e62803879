"""Data files: values in JSON, TOML, INI, XML and CSV, parsed by their own rules."""

from __future__ import annotations

import configparser
import csv
import datetime
import io
import json
import tomllib
from typing import Annotated, Any, NoReturn
from xml.etree import ElementTree

import defusedxml.ElementTree

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .bounds import within
from .numbers_dates import DEFAULT_RELATIVE, Grouping, Mark, close, parse_number
from .text import Encoding

csv.field_size_limit(1024 * 1024)
MAX_SIZE = 16 * 1024 * 1024
"""Bytes of JSON, XML or CSV, which take a second for it."""
MAX_SMALL = 1024 * 1024
"""Characters of TOML or INI, whose parsers are written in Python."""


def one_character(text: str) -> None:
    """What a delimiter or quote is.

    Raises:
        TypeError: it is not.
    """
    csv.reader((), delimiter=text)


def element_path(text: str) -> None:
    """What a path to an element is, as `xml.etree` has it.

    Raises:
        SyntaxError: it is not.
    """
    ElementTree.Element("top").find(text)


Character = Annotated[str, one_character]
ElementPath = Annotated[str, element_path]


def parse_json(text: str) -> Any:
    """JSON as the standard has it: no NaN, no infinities, no key twice.

    Raises:
        Fails: it is not.
    """

    def refuse(name: str) -> NoReturn:
        raise Fails(f"{name} is no JSON value", seen=text)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise Fails(f"a key stands twice in one object: {[k for k, _ in pairs]}", seen=text)
        return result

    _bounded(text, MAX_SIZE)
    try:
        with within("JSON"):
            return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except ValueError as error:
        raise Fails(f"no JSON: {error}", seen=text) from error


def _bounded(content: str | bytes, limit: int) -> None:
    if len(content) > limit:
        raise Fails(f"{len(content)} are over {limit} characters: no data of a task")


def same_value(seen: Any, wanted: Any, absolute: float, relative: float) -> bool:
    """Deep equality: numbers within tolerance, true is not 1, null is nothing but null."""
    if isinstance(wanted, bool) or isinstance(seen, bool) or wanted is None or seen is None:
        return seen is wanted
    if isinstance(wanted, int | float):
        return isinstance(seen, int | float) and close(seen, wanted, absolute, relative)
    if isinstance(wanted, list):
        return (
            isinstance(seen, list)
            and len(seen) == len(wanted)
            and all(same_value(a, b, absolute, relative) for a, b in zip(seen, wanted, strict=True))
        )
    if isinstance(wanted, dict):
        return (
            isinstance(seen, dict)
            and seen.keys() == wanted.keys()
            and all(same_value(seen[k], wanted[k], absolute, relative) for k in wanted)
        )
    if isinstance(seen, datetime.date | datetime.time):  # TOML has them; a wanted one is text
        seen = seen.isoformat()
    return type(seen) is type(wanted) and bool(seen == wanted)


def _same_at(
    value: Any, path: list[str | int], expected: Any, default: Any, absolute: float, relative: float
) -> Verdict:
    for step in path:
        if isinstance(value, dict) and isinstance(step, str) and step not in value:
            if default is None:
                raise Fails(f"there is no {step!r} on the path {path}", seen=value, wanted=expected)
            value = default
            break
        inside = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not inside and not (isinstance(value, dict) and isinstance(step, str)):
            raise Fails(f"there is no {step!r} on the path {path}", seen=value, wanted=expected)
        value = value[step]
    same = same_value(value, expected, absolute, relative)
    return verdict(same, f"the value at {path or 'the top'}", seen=value, wanted=expected)


@check
def json_value(
    item: Item,
    *,
    expected: Any,
    path: list[str | int] | None = None,
    default: Any = None,
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
) -> Verdict:
    """The value at ``path`` (keys and indexes; [] is the whole) equals the expected one.

    Numbers are equal within the larger tolerance, the order of keys is free. ``default`` is what
    a program means by a key that it left out (Chromium's ``Preferences``). It refuses another
    type (``"5"`` for 5, 1 for true, null for 0), further keys, NaN, a key that stands twice, and,
    without ``default``, a missing key.
    """
    value = parse_json(item.text())
    return _same_at(value, path or [], expected, default, absolute, relative)


@check
def toml_value(
    item: Item,
    *,
    expected: Any,
    path: list[str | int] | None = None,
    default: Any = None,
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
) -> Verdict:
    """As `json_value`, of a TOML file; a date or time is its ISO text (``2025-10-21``)."""
    text = item.text()
    _bounded(text, MAX_SMALL)
    try:
        with within("TOML"):
            value = tomllib.loads(text)
    except ValueError as error:
        raise Fails(f"no TOML: {error}", seen=text) from error
    return _same_at(value, path or [], expected, default, absolute, relative)


@check
def xml_value(
    item: Item,
    *,
    path: ElementPath,
    expected: float | str,
    attribute: str = "",
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
) -> Verdict:
    """The text, or an ``attribute``, of the one element at ``path`` (``xml.etree``'s subset).

    White space around text is no difference; a wanted number is compared as one. It refuses no
    and several such elements, an attribute that is not there, and any document type.
    """
    data = item.bytes()
    _bounded(data, MAX_SIZE)
    try:
        with within("XML"):
            top = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
            found = top.findall(path)
    # An encoding that does not exist is a LookupError.
    except (SyntaxError, ValueError, LookupError) as error:
        raise Fails(f"no XML: {error}", seen=data[:200]) from error
    if len(found) != 1:
        raise Fails(f"{len(found)} elements at {path!r} instead of one", wanted=expected)
    seen = found[0].get(attribute) if attribute else (found[0].text or "").strip()
    if seen is None:
        raise Fails(f"no {attribute!r} at {path!r}", seen=sorted(found[0].keys()), wanted=expected)
    same = same_cell(seen, expected, ".", "", absolute, relative)
    return verdict(same, f"{path} {attribute}".strip(), seen=seen, wanted=expected)


def read_csv(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """Rows of cells, blank rows left out.

    Raises:
        Fails: no CSV.
    """
    _bounded(text, MAX_SIZE)
    lines = io.StringIO(text, newline="")
    try:
        with within("CSV"):
            rows = csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True)
            return [row for row in rows if row]
    except csv.Error as error:
        raise Fails(f"no CSV: {error}", seen=text) from error


def same_cell(
    seen: str, wanted: Any, decimal: Mark, grouping: Grouping, absolute: float, relative: float
) -> bool:
    """A number is compared as one, in the declared locale; text as text."""
    if isinstance(wanted, bool) or not isinstance(wanted, int | float | str):
        raise GradingError(f"a cell is wanted as text or a number, not {wanted!r}")
    if isinstance(wanted, str):
        return seen == wanted
    try:
        value = parse_number(seen, decimal=decimal, grouping=grouping)
    except Fails:
        return False
    return close(value, wanted, absolute, relative)


@check
def csv_rows(
    item: Item,
    *,
    expected: list[list[Any]],
    delimiter: Character = ",",
    quote: Character = '"',
    decimal: Mark = ".",
    grouping: Grouping = "",
    order: bool = True,
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
    encoding: Encoding = "utf-8-sig",
) -> Verdict:
    """All rows, a header included, are the expected ones; numbers in the declared locale.

    With ``decimal = ","`` and ``delimiter = ";"`` the text ``1,5`` is 1.5, never 15. It refuses
    missing, further and reordered rows (unless ``order`` is false) and an empty cell for 0.
    """
    rows = read_csv(item.text(encoding), delimiter, quote)

    def same(row: list[str], wanted: list[Any]) -> bool:
        return len(row) == len(wanted) and all(
            same_cell(a, b, decimal, grouping, absolute, relative)
            for a, b in zip(row, wanted, strict=True)
        )

    if len(rows) != len(expected):
        message = f"{len(rows)} rows instead of {len(expected)}"
        return verdict(False, message, seen=rows[:50], wanted=expected[:50])
    if order:
        wrong = [
            n for n, (r, w) in enumerate(zip(rows, expected, strict=True), 1) if not same(r, w)
        ]
        message = f"rows {wrong[:10]} differ" if wrong else f"all {len(rows)} rows"
        return verdict(not wrong, message, seen=rows[:50], wanted=expected[:50])
    left = list(rows)
    for wanted in expected:
        found = next((row for row in left if same(row, wanted)), None)
        if found is None:
            return verdict(False, f"no row {wanted}", seen=rows[:50], wanted=expected[:50])
        left.remove(found)
    return verdict(
        True, f"all {len(rows)} rows, in any order", seen=rows[:50], wanted=expected[:50]
    )


@check
def csv_cell(
    item: Item,
    *,
    row: int,
    column: str | int,
    expected: float | str,
    delimiter: Character = ",",
    quote: Character = '"',
    decimal: Mark = ".",
    grouping: Grouping = "",
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
    encoding: Encoding = "utf-8-sig",
) -> Verdict:
    """One cell: ``row`` counts from 1 with a header as row 1, ``column`` is a header or from 1.

    A number is compared in the declared locale, text as text. It refuses an empty cell for 0.
    """
    rows = read_csv(item.text(encoding), delimiter, quote)
    if isinstance(column, str):
        if not rows or rows[0].count(column) != 1:
            header = rows[0] if rows else None
            raise Fails(f"no one column is headed {column!r}", seen=header, wanted=column)
        column = rows[0].index(column) + 1
    if not 1 <= row <= len(rows) or not 1 <= column <= len(rows[row - 1]):
        raise Fails(
            f"there is no cell in row {row}, column {column}", seen=rows[:50], wanted=expected
        )
    cell = rows[row - 1][column - 1]
    same = same_cell(cell, expected, decimal, grouping, absolute, relative)
    return verdict(same, f"row {row}, column {column}", seen=cell, wanted=expected)


@check
def ini_value(item: Item, *, section: str, key: str, expected: str) -> Verdict:
    """The value of a key in a section of an INI file, as text; names are case-sensitive.

    The section "" is what stands before the first one. It refuses a file in which a section or
    key stands twice.
    """
    text = item.text()
    value = read_ini(text).get(section, {}).get(key)
    if value is None:
        raise Fails(f"there is no {key!r} in [{section}]", seen=text, wanted=expected)
    return verdict(value == expected, f"[{section}] {key}", seen=value, wanted=expected)


def read_ini(text: str) -> dict[str, dict[str, str]]:
    """Section to key to value, all as text; "" is what stands before the first section.

    Raises:
        Fails: no INI file, or one with a section or key twice.
    """
    _bounded(text, MAX_SMALL)
    first = "\0"  # no name that a file could have, so that it is there once
    if first in text:
        raise Fails("no INI file: it has a NUL", seen=text)
    parser = configparser.ConfigParser(interpolation=None, strict=True, default_section=first * 2)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        with within("INI"):
            parser.read_string(f"[{first}]\n{text}")
    except configparser.Error as error:
        raise Fails(f"no INI file: {error}", seen=text) from error
    return {n.removeprefix(first): dict(parser.items(n)) for n in parser.sections()}
