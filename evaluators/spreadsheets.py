"""Spreadsheets (xlsx, ods): values, formulas, sheets, what else changed, and how it looks.

What looks at formats, charts or filters of an ods has LibreOffice save it as xlsx first.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .numbers_dates import DEFAULT_RELATIVE, close
from .packages import reading
from .text import Pattern, whole_match
from .workbooks import Cell, Sheets, computed, corners, names_in, read_book, recomputed, styled


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


def _sheet(sheets: Sheets, sheet: str) -> dict[str, Cell]:
    if sheet not in sheets:
        raise Fails(f"there is no sheet {sheet!r}", seen=list(sheets), wanted=sheet)
    return sheets[sheet]


def _short(value: Any) -> str:
    """For a message; a hundred thousand cells may have a text of megabytes each."""
    return repr(value[:80] if isinstance(value, str) else value)[:100]


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
    anew: bool = False,
) -> Verdict:
    """One cell's value, typed or computed; numbers within the larger tolerance.

    ``formula`` is a pattern that the cell's formula must match wholly, for tasks that ask for
    one; it is written as in xlsx, ``=SUM\\(A1:A9\\)``, for an ods too. It refuses a number written
    as text, an error value, an empty cell for 0, and the right value in another cell or sheet. A
    formula whose value is not stored, or is said to be old, is computed by LibreOffice; ``anew``
    has it believe no stored value, for tasks in which one might be forged.
    """
    data = item.bytes()
    name = cell.upper()
    book = read_book(data)
    found = _sheet(book.sheets, sheet).get(name, Cell(None))
    if formula and not whole_match(formula, found.formula or ""):
        raise Fails(f"{sheet}!{cell} has not such a formula", seen=found.formula, wanted=formula)
    if found.formula is not None or book.spread:
        found = (recomputed if anew else computed)(data)[sheet].get(name, Cell(None))
    same = same_value(found.value, expected, absolute, relative)
    return verdict(same, f"{sheet}!{cell}", seen=found.value, wanted=expected)


@check
def values(
    item: Item,
    *,
    sheet: str,
    cells: str,
    expected: list[list[float | str]],
    absolute: float = 0.0,
    relative: float = DEFAULT_RELATIVE,
    formula: Pattern = "",
) -> Verdict:
    """A range's values (``cells = "A1:C9"``), row by row, each as in `cell`; ``""`` is empty.

    ``formula`` is a pattern as in `cell`, for the formulas of all cells that are not wanted empty.
    It refuses a range with one value wrong, moved or missing, and rows in another order.
    """
    names = names_in(cells)
    if [len(row) for row in expected] != [len(row) for row in names]:
        raise GradingError(f"expected has not the rows and columns of {cells}")
    if not any(value != "" for row in expected for value in row):
        raise GradingError("expected is empty everywhere; an untouched sheet would pass")
    seen = _sheet(computed(item.bytes()), sheet)
    wrong = []
    for row, wanted_row in zip(names, expected, strict=True):
        for name, wanted in zip(row, wanted_row, strict=True):
            found = seen.get(name, Cell(None))
            if wanted == "" and found.value is None:
                continue
            if not same_value(found.value, wanted, absolute, relative):
                wrong.append(f"{name}: {_short(found.value)} instead of {_short(wanted)}")
            elif formula and not whole_match(formula, found.formula or ""):
                wrong.append(f"{name}: no such formula: {_short(found.formula)}")
    return verdict(
        not wrong,
        "; ".join(wrong[:10])[:1000] or f"all of {sheet}!{cells}",
        seen=wrong[:10],
        wanted=expected,
    )


@check
def kind(item: Item, *, expected: Literal["xlsx", "ods"]) -> Verdict:
    """A whole workbook of this kind, told by its content. It refuses another kind with its name."""
    seen = read_book(item.bytes()).kind
    return verdict(seen == expected, "its kind", seen=seen, wanted=expected)


@check
def sheets(item: Item, *, expected: list[str], hidden: Sequence[str] = ()) -> Verdict:
    """The sheets have exactly these names in this order, and exactly ``hidden`` are not shown.

    It refuses another spelling or case, and further sheets.
    """
    book = read_book(item.bytes())
    seen = [f"{name} (hidden)" if name in book.hidden else name for name in book.names]
    if not set(hidden) <= set(expected):
        raise GradingError("hidden names a sheet that expected does not have")
    wanted = [f"{name} (hidden)" if name in hidden else name for name in expected]
    return verdict(seen == wanted, "the sheets", seen=seen, wanted=wanted)


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
        wanted = computed(original)
    except Fails as error:
        raise GradingError(f"the original: {error}") from error
    seen = computed(item.bytes())
    if list(seen) != list(wanted):
        return verdict(False, "the sheets", seen=list(seen), wanted=list(wanted))
    free = {(sheet, name.upper()) for sheet, _, name in (c.rpartition("!") for c in except_cells)}
    changed = []
    for sheet, cells in wanted.items():
        for name in sorted(cells.keys() | seen[sheet].keys()):
            before, after = cells.get(name, Cell(None)), seen[sheet].get(name, Cell(None))
            same = before == after or same_value(after.value, before.value, 0.0, relative)
            if (sheet, name) not in free and not same:
                was, became = _short(before.value), _short(after.value)
                changed.append(f"{sheet}!{name}: {was} became {became}")
    return verdict(
        not changed, "; ".join(changed[:10]) or "nothing else changed", seen=changed[:10]
    )


def _styled_sheet(item: Item, sheet: str) -> Any:
    workbook = styled(item.bytes())
    names = [one.title for one in workbook.worksheets]
    if sheet not in names:
        raise Fails(f"there is no sheet {sheet!r}", seen=names, wanted=sheet)
    return workbook[sheet]


@check
def format(  # noqa: A001  what a task's author calls it
    item: Item,
    *,
    sheet: str,
    cells: str,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    size: float | None = None,
    font: str = "",
    color: str = "",
    fill: str = "",
    align: Literal["", "left", "center", "right", "justify", "general"] = "",
    wrap: bool | None = None,
    number_format: Pattern = "",
    only: bool = False,
) -> Verdict:
    """All cells of a range (``cells = "A1:D1"``) have the formats that are named.

    Others are not looked at. Colours are RGB, ``"FF0000"``; a fill is a solid one; a colour of a
    theme equals none. ``number_format`` is a pattern for all of the format's code, ``0\\.0+%``.
    With ``only`` no other cell with a value has all of these formats. It refuses a range with one
    cell that differs.
    """
    asked = {
        "bold": bold,
        "italic": italic,
        "underline": underline,
        "size": size,
        "font": font or None,
        "color": color.upper() or None,
        "fill": fill.upper() or None,
        "align": align or None,
        "wrap": wrap,
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    if not wanted and not number_format:
        raise GradingError("name at least one format; every cell has none of them")
    found = _styled_sheet(item, sheet)

    def differs(cell: Any) -> dict[str, Any]:
        look = _look(cell)
        code = look.pop("number_format")
        off = {name: look[name] for name in wanted if look[name] != wanted[name]}
        if number_format and not whole_match(number_format, code):
            off["number_format"] = code
        return off

    names = {name for row in names_in(cells) for name in row}
    wrong = {name: off for name in sorted(names) if (off := differs(found[name]))}
    message = f"{sheet}!{cells}"
    if only and not wrong:
        others = (c for c in found._cells.values() if c.value is not None)
        wrong = {c.coordinate: {} for c in others if c.coordinate not in names and not differs(c)}
        message = "cells beside these look so too" if wrong else message
    shown = {name: wrong[name] for name in sorted(wrong)[:10]}
    if number_format:
        wanted["number_format"] = number_format
    return verdict(not wrong, message, seen=str(shown), wanted=str(wanted))


def _look(cell: Any) -> dict[str, Any]:
    font, fill, alignment = cell.font, cell.fill, cell.alignment
    return {
        "bold": bool(font.b),
        "italic": bool(font.i),
        "underline": font.u not in (None, "none"),
        "size": font.sz,
        "font": font.name,
        "color": _rgb(font.color, "000000"),
        "fill": _rgb(fill.fgColor, "") if fill.fill_type == "solid" else "",
        "align": alignment.horizontal or "general",
        "wrap": bool(alignment.wrap_text),
        "number_format": cell.number_format,
    }


def _rgb(color: Any, none: str) -> str:
    if color is None:
        return none
    # Of a theme's colour openpyxl's `rgb` is a text that says that it is none.
    return str(color.rgb)[-6:].upper() if color.type == "rgb" else f"{color.type} {color.value}"


@check
def chart(
    item: Item,
    *,
    sheet: str,
    kind: Literal["column", "bar", "line", "pie", "doughnut", "area", "scatter", "radar"],
    series: list[str],
    categories: str = "",
    title: str = "",
) -> Verdict:
    """A chart on this sheet is of this kind and draws exactly these ranges (``Data!B2:B9``).

    They are in this order; ``categories`` is where its labels (of a scatter chart: its x values)
    come from, ``title`` its whole title, when named. 3-D and stacked charts are of their kind. It
    refuses further and missing series, and a range that is off by a row.
    """
    found = _styled_sheet(item, sheet)
    with reading("no whole chart"):
        seen = [_drawn(chart) for chart in found._charts]
    wanted = (kind, [_plain(one) for one in series])
    fits = [
        one
        for one in seen
        if one[:2] == wanted
        and (not categories or one[2] == {_plain(categories)})
        and title in ("", one[3])
    ]
    return verdict(
        bool(fits),
        f"the charts of {sheet}",
        seen=str(seen),
        wanted=str((*wanted, categories, title)),
    )


def _drawn(chart: Any) -> tuple[str, list[str], set[str], str]:
    """A chart's kind, the ranges of its series, of their labels, and its title."""
    parts = getattr(chart, "_charts", None) or [chart]
    kind = type(parts[0]).__name__.removesuffix("3D").removesuffix("Chart").lower()
    if kind == "bar" and parts[0].barDir == "col":
        kind = "column"
    series = [one for part in parts for one in part.ser]
    labels = {_plain(_source(one, "cat", "xVal")) for one in series}
    return kind, [_plain(_source(one, "val", "yVal")) for one in series], labels, _title(chart)


def _source(series: Any, *names: str) -> str:
    """The reference that one of a series' parts draws."""
    for name in names:
        part = getattr(series, name, None)
        for kind in ("numRef", "strRef", "multiLvlStrRef"):
            reference = getattr(part, kind, None)
            if reference is not None:
                return str(reference.f)
    return ""


def _plain(reference: str) -> str:
    """A reference without ``$`` and quotes."""
    sheet, _, cells = reference.rpartition("!")
    name = sheet[1:-1].replace("''", "'") if sheet[:1] == "'" else sheet
    return f"{name.removeprefix('$')}!{cells.replace('$', '').upper()}"


def _title(chart: Any) -> str:
    rich = getattr(getattr(chart.title, "tx", None), "rich", None)
    if rich is None:
        return ""
    return "\n".join("".join(run.t or "" for run in p.r or ()) for p in rich.p)


@check
def filtered(item: Item, *, sheet: str, cells: str, shown: list[int]) -> Verdict:
    """The sheet has a filter on this range, and of its rows below the first exactly these show.

    ``shown`` are row numbers of the sheet. It refuses rows that were deleted or hidden by hand
    without a filter, and a filter on another range.
    """
    _, top, _, bottom = corners(cells)
    if not {*range(top + 1, bottom + 1)} > {*shown}:
        raise GradingError(f"shown must be some and not all of the rows below the first of {cells}")
    found = _styled_sheet(item, sheet)
    with reading("no whole filter"):
        places = {_plain(str(found.auto_filter.ref or ""))}
        places |= {_plain(str(table.autoFilter.ref)) for table in found.tables.values()
               if table.autoFilter is not None}  # fmt: skip
    if _plain(cells) not in places:
        raise Fails(f"no filter on {sheet}!{cells}", seen=sorted(places), wanted=cells)
    rows = [n for n in range(top + 1, bottom + 1) if not _hidden(found, n)]
    return verdict(rows == sorted(shown), "the rows that show", seen=rows, wanted=sorted(shown))


def _hidden(sheet: Any, row: int) -> bool:
    return row in sheet.row_dimensions and bool(sheet.row_dimensions[row].hidden)


Rule = Literal[
    "greaterThan",
    "greaterThanOrEqual",
    "lessThan",
    "lessThanOrEqual",
    "equal",
    "notEqual",
    "between",
    "notBetween",
    "expression",
    "colorScale",
    "dataBar",
    "iconSet",
]


@check
def conditional(
    item: Item,
    *,
    sheet: str,
    cells: str,
    rule: Rule,
    values: Sequence[str] = (),
    bold: bool | None = None,
    color: str = "",
    fill: str = "",
) -> Verdict:
    """A conditional format on exactly this range has this rule with these values, and this look.

    ``values`` are numbers or formulas as texts, white space and the leading ``=`` aside: one, of
    ``between`` two. Only what is named of ``bold``, ``color`` and ``fill`` is looked at. It
    refuses formats set by hand, and a rule on a larger or smaller range.
    """
    found = _styled_sheet(item, sheet)
    with reading("no whole conditional format"):
        seen = [
            (" ".join(sorted(str(formats.sqref).split())), *one)
            for formats in found.conditional_formatting
            for one in _rules(formats)
        ]
    wanted = (" ".join(sorted(cells.upper().split())), rule, [_bare(one) for one in values])
    look = {"bold": bold, "color": color.upper() or None, "fill": fill.upper() or None}
    asked = {name: value for name, value in look.items() if value is not None}
    fits = [
        one
        for one in seen
        if one[:3] == wanted and all(one[3].get(k) == v for k, v in asked.items())
    ]
    return verdict(
        bool(fits),
        f"the conditional formats of {sheet}",
        seen=str(seen),
        wanted=str((*wanted, asked)),
    )


def _rules(formats: Any) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    for rule in formats.rules:
        kind = rule.operator if rule.type == "cellIs" else rule.type
        look: dict[str, Any] = {}
        if rule.dxf is not None and rule.dxf.font is not None:
            look["bold"] = bool(rule.dxf.font.b)
            look["color"] = _rgb(rule.dxf.font.color, "")
        if rule.dxf is not None and rule.dxf.fill is not None:
            # Of a differential format the background is the fill; some write the other one.
            back, front = rule.dxf.fill.bgColor, rule.dxf.fill.fgColor
            look["fill"] = next((c for c in (_rgb(back, ""), _rgb(front, "")) if c != "000000"), "")
        yield str(kind), [_bare(str(one)) for one in rule.formula], look


def _bare(formula: str) -> str:
    return re.sub(r"\s", "", formula).removeprefix("=")
