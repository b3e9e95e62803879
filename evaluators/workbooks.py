"""Reading workbooks (xlsx, ods): sheets, cells, formulas and what they come to.

Values are what a spreadsheet program shows. A formula's stored value is taken where there is one
to trust: a spreadsheet program wrote it and did not ask for it to be computed anew. Most
libraries store none, or 0 everywhere; LibreOffice then computes them (`computed`).
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import re
import warnings
import zipfile
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import openpyxl

from cua_gym.grading.check import Fails, GradingError

from .packages import Package, number, once, reading
from .recalculation import Kind, as_xlsx, recalculated

MAX_CELLS = 100_000
MAX_COLUMNS = 16_384
MAX_SPACES = 1000


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell that is not empty.

    Attributes:
        value: a number, text, boolean, or ``datetime``'s kinds; None is not computed yet.
        formula: as xlsx has it, ``=SUM(A1:A9,B2)``, in an ods too.
    """

    value: Any
    formula: str | None = None


Sheets = dict[str, dict[str, Cell]]
"""Sheet name to cell name (``B7``) to cell."""


@dataclass(frozen=True, slots=True)
class Book:
    """A workbook.

    Attributes:
        names: of all sheets in order, those of a chart alone too.
        hidden: the names of sheets that are not shown.
        stale: whether the formulas' values are missing or not to be trusted.
        spread: whether formulas fill further cells, which then may look empty here.
    """

    kind: Kind
    names: tuple[str, ...]
    hidden: frozenset[str]
    sheets: Sheets
    stale: bool
    spread: bool


@once
def read_book(data: bytes) -> Book:
    """All non-empty cells of a workbook, as stored.

    Raises:
        Fails: no workbook, broken, or larger than any workbook of a task.
    """
    package = Package(data, "workbook")
    if "xl/workbook.xml" in package.names:
        return _read_xlsx(data, package)
    if "content.xml" in package.names and b"spreadsheet" in package.read("mimetype"):
        return _read_ods(package)
    raise Fails("neither xlsx nor ods", seen=sorted(package.names)[:20])


def computed(data: bytes) -> Sheets:
    """All non-empty cells, formulas computed anew (`recomputed`) where that is needed.

    Raises:
        Fails: no such workbook, or it cannot be computed.
        GradingError: LibreOffice is needed, and not there or not working.
    """
    book = read_book(data)
    return recomputed(data) if book.stale else book.sheets


@once
def recomputed(data: bytes) -> Sheets:
    """All non-empty cells, what is stored for formulas not believed: LibreOffice computes them.

    What changes by itself (``NOW``, ``RAND``) or reaches outside the workbook is ``#N/A``, and
    so is what depends on it: the same workbook always has the same values.

    Raises:
        As `computed`.
    """
    book = read_book(data)
    plain = _plain_xlsx(data) if book.kind == "xlsx" else _plain_ods(Package(data, "workbook"))
    values = read_book(recalculated(plain, book.kind)).sheets
    return {
        sheet: {
            # Cells that only the result has are filled by an array formula.
            name: cells[name]
            if name in cells and cells[name].formula is None
            else dataclasses.replace(cells.get(name, Cell(None)), value=_value(values, sheet, name))
            for name in {**cells, **values.get(sheet, {})}
        }
        for sheet, cells in book.sheets.items()
    }


def _value(sheets: Sheets, sheet: str, name: str) -> Any:
    return sheets.get(sheet, {}).get(name, Cell(None)).value


@once
def styled(data: bytes) -> Any:
    """An openpyxl workbook with formats, charts and filters; an ods as LibreOffice saves it.

    Raises:
        As `computed`.
    """
    if read_book(data).kind == "ods":
        data = as_xlsx(data)
        read_book(data)
    return _load(data)


def _load(data: bytes, values: bool = False) -> Any:
    with reading("no whole xlsx workbook"), warnings.catch_warnings():
        # openpyxl tells what it leaves out, and none of it is looked at here.
        warnings.simplefilter("ignore")
        return openpyxl.load_workbook(io.BytesIO(data), data_only=values, keep_links=False)


def _read_xlsx(data: bytes, package: Package) -> Book:
    workbook = _load(data)
    shown = _load(data, values=True)
    sheets: Sheets = {}
    blank = formulas = spread = False
    for sheet in workbook.worksheets:
        if len(sheet._cells) > MAX_CELLS:
            raise Fails(f"sheet {sheet.title!r} has over {MAX_CELLS} cells")
        cells: dict[str, Cell] = {}
        # Not iter_rows(): it makes every cell between A1 and a stray one far away.
        for place, cell in sorted(sheet._cells.items()):
            if cell.value is None:
                continue
            stored = shown[sheet.title]._cells[place]
            value, formula = stored.value, None
            if cell.data_type == "f":
                formulas = True
                formula = re.sub(r"_xlfn\.(_xlws\.)?", "", _formula(cell.value))
                if value is None and stored.data_type == "str":
                    value = ""  # a formula's text may be empty
                blank = blank or value is None
                spread = spread or ":" in (getattr(cell.value, "ref", None) or "")
            cells[cell.coordinate] = Cell(value, formula)
        sheets[sheet.title] = cells
    hidden = frozenset(n for n in workbook.sheetnames if workbook[n].sheet_state != "visible")
    # Not openpyxl's word: it says so of every workbook that does not.
    anew = any(
        node.tag.endswith("}calcPr") and node.get("fullCalcOnLoad") in ("1", "true")
        for node in package.xml("xl/workbook.xml").iter()
    )
    stale = blank or (formulas and anew)
    return Book("xlsx", tuple(workbook.sheetnames), hidden, sheets, stale, spread)


def _formula(value: Any) -> str:
    """Its text; that of an array is in an object."""
    return str(getattr(value, "text", value) or "")


_UNSTEADY = re.compile(
    r"(?<![\w.])(NOW|TODAY|RAND|RANDBETWEEN|RANDARRAY|INFO|CELL|WEBSERVICE|DDE|RTD)\s*\(|file:",
    re.IGNORECASE,
)
"""What differs from one computation to the next, or asks for something outside."""


def _plain_xlsx(data: bytes) -> bytes:
    """The workbook without macros, links, pictures and what makes it differ from time to time."""
    workbook = _load(data)
    for sheet in workbook.worksheets:
        sheet._images, sheet._charts = [], []
        for cell in sheet._cells.values():
            if cell.data_type == "f" and _UNSTEADY.search(_formula(cell.value)):
                cell.value = "=NA()"
    saved = io.BytesIO()
    with reading("a workbook that cannot be saved again"):
        workbook.save(saved)
    return saved.getvalue()


_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_MIME = "application/vnd.oasis.opendocument.spreadsheet"


def _plain_ods(package: Package) -> bytes:
    """As `_plain_xlsx`: the cells and their styles, and no other part."""
    root = package.xml("content.xml")
    for node in list(root):
        if node.tag == f"{_OFFICE}scripts":
            root.remove(node)
    for node in root.iter(f"{_TABLE}table-cell"):
        formula = node.get(f"{_TABLE}formula")
        if formula is not None and _UNSTEADY.search(formula):
            node.set(f"{_TABLE}formula", "of:=NA()")
    # The prefix in a formula's text is a name space that the serializer sees no use of.
    content = ElementTree.tostring(root).replace(
        b":document-content ",
        b':document-content xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" ',
        1,
    )
    files = {"content.xml": content}
    if "styles.xml" in package.names:
        files["styles.xml"] = package.read("styles.xml")
    entries = "".join(
        f'<m:file-entry m:full-path="{name}" m:media-type="text/xml"/>' for name in files
    )
    manifest = (
        '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0" m:version="1.3">'
        f'<m:file-entry m:full-path="/" m:version="1.3" m:media-type="{_MIME}"/>{entries}'
        "</m:manifest>"
    )
    saved = io.BytesIO()
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("mimetype", _MIME)
        for name, part in {**files, "META-INF/manifest.xml": manifest.encode()}.items():
            archive.writestr(name, part)
    return saved.getvalue()


def _read_ods(package: Package) -> Book:
    """Source: OpenDocument 1.3 part 3, chapters 6.1, 9 and 19.385."""
    root = package.xml("content.xml")
    unseen = {
        style.get(f"{_STYLE}name")
        for style in root.iter(f"{_STYLE}style")
        for properties in style.iter(f"{_STYLE}table-properties")
        if properties.get(f"{_TABLE}display") == "false"
    }
    sheets: Sheets = {}
    hidden = set()
    for table in root.iterfind(f"{_OFFICE}body/{_OFFICE}spreadsheet/{_TABLE}table"):
        cells: dict[str, Cell] = {}
        row_number = 0
        for row in table.iter(f"{_TABLE}table-row"):
            rows = _repeated(row, "rows")
            found = _ods_row(row)
            if found and rows * len(found) + len(cells) > MAX_CELLS:
                raise Fails(f"a sheet has over {MAX_CELLS} cells")
            for index in range(rows if found else 0):
                for column, cell in found.items():
                    letter = openpyxl.utils.get_column_letter(column)
                    cells[f"{letter}{row_number + index + 1}"] = cell
            row_number += rows
        name = table.get(f"{_TABLE}name", "")
        sheets[name] = cells
        if table.get(f"{_TABLE}style-name") in unseen:
            hidden.add(name)
    stale = any(c.value is None for cells in sheets.values() for c in cells.values())
    spread = any(f"{_TABLE}number-matrix-rows-spanned" in node.attrib for node in root.iter())
    return Book("ods", tuple(sheets), frozenset(hidden), sheets, stale, spread)


def _ods_row(row: ElementTree.Element) -> dict[int, Cell]:
    found: dict[int, Cell] = {}
    column = 0
    for node in row:
        if node.tag not in (f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            continue
        times = _repeated(node, "columns")
        formula = node.get(f"{_TABLE}formula")
        value = _ods_value(node)
        if value is not None or formula is not None:
            if column + times > MAX_COLUMNS:
                raise Fails("a row has more cells than a sheet has columns")
            cell = Cell(value, None if formula is None else _excel_form(formula))
            for index in range(times):
                found[column + index + 1] = cell
        column += times
    return found


_QUOTED = re.compile(r'("(?:[^"]|"")*")')


def _excel_form(formula: str) -> str:
    """An OpenFormula formula as xlsx writes it: ``of:=SUM([.A1:.A9];2)`` is ``=SUM(A1:A9,2)``."""
    parts = _QUOTED.split(re.sub(r"\A\w+:(?==)", "", formula))
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"\[([^\]]*)\]", _excel_reference, parts[index]).replace(";", ",")
    return "".join(parts)


def _excel_reference(match: re.Match[str]) -> str:
    ends = []
    for end in match[1].split(":"):
        sheet, _, place = end.rpartition(".")
        ends.append(f"{sheet.removeprefix('$')}!{place}" if sheet else place)
    return ":".join(ends)


def _repeated(node: ElementTree.Element, what: str) -> int:
    times = number(node.get(f"{_TABLE}number-{what}-repeated", "1"), "a number of repetitions")
    if times < 0:
        raise Fails(f"a number of repetitions is {times}")
    return times


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
    paragraphs = node.findall(f"{_TEXT}p")
    text = "\n".join(_ods_text(p) for p in paragraphs)
    if kind == "string":
        return text if paragraphs else node.get(f"{_OFFICE}string-value", "")
    # LibreOffice writes a formula's empty text without a type.
    if node.get(f"{_TABLE}formula") is not None and paragraphs and not text:
        return ""
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
                spaces = number(child.get(f"{_TEXT}c", "1"), "a number of spaces")
                if spaces > MAX_SPACES:
                    raise Fails(f"{spaces} spaces in a row: no workbook of a task")
                parts.append(" " * spaces)
            case "tab":
                parts.append("\t")
            case "line-break":
                parts.append("\n")
            case _:
                parts.append(_ods_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def corners(cells: str) -> tuple[int, int, int, int]:
    """First column, first row, last column, last row of a range that a task's author wrote.

    Raises:
        GradingError: it is none, or of more than 10000 cells.
    """
    try:
        left, top, right, bottom = openpyxl.utils.range_boundaries(cells)
        if (right - left + 1) * (bottom - top + 1) > 10_000:
            raise ValueError("over 10000 cells")
    except (ValueError, TypeError) as error:
        raise GradingError(f"cells is a range such as B2:D9, not {cells!r}: {error}") from error
    return left, top, right, bottom


def names_in(cells: str) -> list[list[str]]:
    """The names of a range's cells, row by row."""
    left, top, right, bottom = corners(cells)
    return [
        [f"{openpyxl.utils.get_column_letter(column)}{row}" for column in range(left, right + 1)]
        for row in range(top, bottom + 1)
    ]
