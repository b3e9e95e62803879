"""Spreadsheets (xlsx, ods): cell values, formulas, and what else changed.

Values are what a spreadsheet program would show: a formula's cached value, and where a file has
none (every spreadsheet program writes it, most libraries do not), that is an error, never a blank.
"""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import openpyxl

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .numbers_dates import DEFAULT_RELATIVE, close
from .text import Pattern

MAX_UNPACKED = 100 * 1024 * 1024
MAX_MEMBERS = 2000
MAX_CELLS = 100_000
MAX_TAGS = 6 * MAX_CELLS
"""Counting them takes no time; reading them takes a minute for each few million."""
MAX_COLUMNS = 16_384


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell that is not empty: a number, text, boolean, or ``datetime``'s kinds."""

    value: Any
    formula: str | None = None


Sheets = dict[str, dict[str, Cell]]
"""Sheet name to cell name (``B7``) to cell."""


def read_book(data: bytes) -> Sheets:
    """All non-empty cells of a workbook.

    Raises:
        Fails: no workbook, broken, or larger than any workbook of a task.
        GradingError: a formula has no value, and what it would be cannot be told here.
    """
    kind = _kind(data)
    if kind == "ods":
        return _read_ods(data)
    sheets, blank = _read_xlsx(data)
    if blank:
        raise GradingError(
            f"no stored value of the formulas in {blank[:5]}: what wrote this workbook computes "
            "nothing, and neither do checks"
        )
    return sheets


def _kind(data: bytes) -> str:
    """``xlsx`` or ``ods``, by content, after looking at how much it would unpack to."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = set(archive.namelist())
            unpacked = sum(m.file_size for m in members)
            if len(members) > MAX_MEMBERS or unpacked > MAX_UNPACKED:
                raise Fails(f"{len(members)} members of {unpacked} bytes: no workbook of a task")
            tags = sum(archive.read(m).count(b"<") for m in members if m.filename.endswith(".xml"))
            if tags > MAX_TAGS:
                raise Fails(f"{tags} tags: no workbook of a task")
            if "xl/workbook.xml" in names:
                return "xlsx"
            if "content.xml" in names and b"spreadsheet" in archive.read("mimetype"):
                return "ods"
    except Fails:
        raise
    # A parser given an agent's bytes raises what it likes (zlib.error, EOFError, KeyError, ...):
    # whatever it is, the file is at fault.
    except Exception as error:
        raise Fails(f"no whole workbook: {error}", seen=data[:40]) from error
    raise Fails("neither xlsx nor ods", seen=sorted(names)[:20])


def _read_xlsx(data: bytes) -> tuple[Sheets, list[str]]:
    """Cells, and where formulas without a cached value are."""
    try:
        formulas = openpyxl.load_workbook(io.BytesIO(data), data_only=False, keep_links=False)
        cached = openpyxl.load_workbook(io.BytesIO(data), data_only=True, keep_links=False)
    except Exception as error:  # as in `_kind`
        raise Fails(f"no whole xlsx workbook: {type(error).__name__}: {error}") from error
    sheets: Sheets = {}
    blank = []
    for sheet in formulas.worksheets:
        if len(sheet._cells) > MAX_CELLS:
            raise Fails(f"sheet {sheet.title!r} has over {MAX_CELLS} cells")
        cells: dict[str, Cell] = {}
        # Not iter_rows(): it makes every cell between A1 and a stray one far away.
        for place, cell in sorted(sheet._cells.items()):
            if cell.value is None:
                continue
            shown = cached[sheet.title]._cells[place]
            value, formula = shown.value, None
            if cell.data_type == "f":
                formula = str(getattr(cell.value, "text", cell.value))
                if value is None and shown.data_type == "str":
                    value = ""  # a formula's text may be empty
                elif value is None:
                    blank.append(f"{sheet.title}!{cell.coordinate}")
            cells[cell.coordinate] = Cell(value, formula)
        sheets[sheet.title] = cells
    return sheets, blank


_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


def _read_ods(data: bytes) -> Sheets:
    """Source: OpenDocument 1.3 part 3, chapters 6.1, 9 and 19.385."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            root = ElementTree.fromstring(archive.read("content.xml"))
    except Exception as error:  # as in `_kind`
        raise Fails(f"no whole ods workbook: {error}") from error
    sheets: Sheets = {}
    for table in root.iter(f"{_TABLE}table"):
        cells: dict[str, Cell] = {}
        number = 0
        for row in table.iter(f"{_TABLE}table-row"):
            rows = _repeated(row, "rows")
            found = _ods_row(row)
            if found and rows * len(found) + len(cells) > MAX_CELLS:
                raise Fails(f"a sheet has over {MAX_CELLS} cells")
            for index in range(rows if found else 0):
                for column, cell in found.items():
                    letter = openpyxl.utils.get_column_letter(column)
                    cells[f"{letter}{number + index + 1}"] = cell
            number += rows
        sheets[table.get(f"{_TABLE}name", "")] = cells
    return sheets


def _ods_row(row: ElementTree.Element) -> dict[int, Cell]:
    found: dict[int, Cell] = {}
    column = 0
    for node in row:
        if node.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            continue
        times = _repeated(node, "columns")
        value = _ods_value(node)
        if value is not None:
            if column + times > MAX_COLUMNS:
                raise Fails("a row has more cells than a sheet has columns")
            for index in range(times):
                found[column + index + 1] = Cell(value, node.get(f"{_TABLE}formula"))
        column += times
    return found


def _repeated(node: ElementTree.Element, what: str) -> int:
    return _count(node.get(f"{_TABLE}number-{what}-repeated", "1"))


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise Fails(f"a number of repetitions is {text!r:.40}")
    return int(text)


def _ods_value(node: ElementTree.Element) -> Any:
    kind = node.get(f"{_OFFICE}value-type")
    try:
        if kind in ("float", "percentage", "currency"):
            return float(node.attrib[f"{_OFFICE}value"])
        if kind == "boolean":
            return node.get(f"{_OFFICE}boolean-value") == "true"
        if kind == "date":
            return datetime.datetime.fromisoformat(node.attrib[f"{_OFFICE}date-value"][:19])
        if kind == "time":
            return _duration(node.attrib[f"{_OFFICE}time-value"])
    except (KeyError, ValueError, OverflowError) as error:
        raise Fails(f"a cell of type {kind} has no such value: {error}") from error
    if kind == "string":
        return "\n".join(_ods_text(p) for p in node.findall(f"{_TEXT}p"))
    return None


def _duration(text: str) -> datetime.timedelta:
    match = re.fullmatch(r"(-?)PT([0-9]+)H([0-9]+)M([0-9]+(?:[.,][0-9]+)?)S", text)
    if match is None:
        raise ValueError(f"{text!r:.40} is no duration")
    seconds = float(match[4].replace(",", "."))
    length = datetime.timedelta(hours=int(match[2]), minutes=int(match[3]), seconds=seconds)
    return -length if match[1] else length


def _ods_text(node: ElementTree.Element) -> str:
    """A paragraph's text; spaces in a row, tabs and line breaks are elements."""
    parts = [node.text or ""]
    for child in node:
        match child.tag.removeprefix(_TEXT):
            case "s":
                number = _count(child.get(f"{_TEXT}c", "1"))
                if number > MAX_UNPACKED:
                    raise Fails(f"{number} spaces in a row: no workbook of a task")
                parts.append(" " * number)
            case "tab":
                parts.append("\t")
            case "line-break":
                parts.append("\n")
            case _:
                parts.append(_ods_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def same_value(seen: Any, wanted: Any, absolute: float, relative: float) -> bool:
    """A number as a number, text as text, a date by its ISO form; nothing else is nothing."""
    if isinstance(wanted, bool) or isinstance(seen, bool):
        return seen is wanted
    if isinstance(wanted, int | float):
        return isinstance(seen, int | float) and close(seen, wanted, absolute, relative)
    if isinstance(wanted, str):
        return wanted in (_iso(seen) if isinstance(seen, _MOMENTS) else (seen,))
    if isinstance(wanted, _MOMENTS) and isinstance(seen, _MOMENTS):
        return bool(set(_iso(seen)) & set(_iso(wanted)))
    return False


_MOMENTS = datetime.datetime | datetime.time | datetime.timedelta


def _iso(moment: datetime.datetime | datetime.time | datetime.timedelta) -> tuple[str, ...]:
    """How a date or a time may be written, to the second: formats keep no more than noise below."""
    if isinstance(moment, datetime.time):
        moment = datetime.datetime.combine(datetime.date.min, moment) - datetime.datetime.min
    if isinstance(moment, datetime.timedelta):
        seconds = round(moment.total_seconds())
        minutes = abs(seconds) // 60
        return (
            f"{'-' * (seconds < 0)}{minutes // 60:02}:{minutes % 60:02}:{abs(seconds) % 60:02}",
        )
    half = datetime.timedelta(milliseconds=500)
    rounded = (min(moment, datetime.datetime.max - half) + half).replace(microsecond=0)
    day = rounded.date().isoformat()
    return (
        (rounded.isoformat(), day) if rounded.time() == datetime.time() else (rounded.isoformat(),)
    )


@check
def cell(
    item: Item,
    *,
    sheet: str,
    cell: str,
    expected: float | str,
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
    formula: Pattern = "",
) -> Verdict:
    """One cell's value, typed or computed; numbers within the larger tolerance.

    ``formula`` is a pattern that the cell's formula must match wholly, for tasks that ask for
    one. It refuses a number written as text, an error value, an empty cell for 0, and the right
    value in another cell or sheet.
    """
    sheets = read_book(item.bytes())
    if sheet not in sheets:
        raise Fails(f"there is no sheet {sheet!r}", seen=list(sheets), wanted=sheet)
    found = sheets[sheet].get(cell.upper(), Cell(None))
    if formula and not re.fullmatch(formula, found.formula or ""):
        raise Fails(f"{sheet}!{cell} has not such a formula", seen=found.formula, wanted=formula)
    same = same_value(found.value, expected, absolute, relative)
    return verdict(same, f"{sheet}!{cell}", seen=found.value, wanted=expected)


@check
def unchanged(
    item: Item,
    *,
    original: bytes,
    except_cells: Sequence[str] = (),
    relative: float = DEFAULT_RELATIVE,
) -> Verdict:
    """Every sheet and cell has its original value, but for those named (``Sheet!B7``).

    Formats are not looked at, nor is the file's own format. It refuses further and missing
    sheets and cells.
    """
    try:
        wanted = read_book(original)
    except Fails as error:
        raise GradingError(f"the original: {error}") from error
    seen = read_book(item.bytes())
    if list(seen) != list(wanted):
        return verdict(False, "the sheets", seen=list(seen), wanted=list(wanted))
    free = {(sheet, name.upper()) for sheet, _, name in (c.rpartition("!") for c in except_cells)}
    changed = []
    for sheet, cells in wanted.items():
        for name in sorted(cells.keys() | seen[sheet].keys()):
            before, after = cells.get(name, Cell(None)), seen[sheet].get(name, Cell(None))
            same = before == after or same_value(after.value, before.value, 0.0, relative)
            if (sheet, name) not in free and not same:
                changed.append(f"{sheet}!{name}: {before.value!r} became {after.value!r}")
    return verdict(
        not changed, "; ".join(changed[:10]) or "nothing else changed", seen=changed[:10]
    )
