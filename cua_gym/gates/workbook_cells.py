"""The cells of a workbook (xlsx, ods) as its file has them, and files with other cells in them.

The file's own XML is edited: all other cells keep the values that their formulas came to, so that
nothing has to be computed to grade a mutant. A library that saves a workbook throws them away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol
from xml.etree import ElementTree

import defusedxml.ElementTree

from cua_gym.gates.zip_mutants import pack

__all__ = ["Book", "Cell", "Put", "read"]

Element = ElementTree.Element


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell holds.

    Attributes:
        kind: ``number``, ``text``, or another word of the format for what is neither.
        text: the value as the file has it; of a formula what it came to, empty when not stored.
        formula: as the file has it, None for a value that was typed.
    """

    kind: str
    text: str
    formula: str | None = None

    def same(self, other: Cell | None) -> bool:
        """Whether a person who looks at both sees no difference."""
        if other is None or (self.kind != other.kind and self.formula is None):
            return False
        if (self.formula is None) != (other.formula is None):
            return False
        if self.formula and self.formula == other.formula:
            return True
        try:
            return math.isclose(float(self.text), float(other.text), rel_tol=1e-9)
        except ValueError:
            return self.text == other.text


Place = tuple[str, str]
"""Sheet and cell: ``("Orders", "F2")``."""
Put = tuple[Place, Cell | None]


class Book(Protocol):
    """A workbook's cells by place, and files made of it."""

    names: list[str]
    cells: dict[Place, Cell]

    def saved(self, puts: Sequence[Put]) -> bytes:
        """The file with other values in some cells that it has; None empties one."""

    def movable(self, at: Place) -> bool:
        """Whether the place to the right of a cell is empty."""

    def moved(self, at: Place) -> bytes:
        """The file with one `movable` cell moved to the right."""

    def renamed(self, sheet: str, name: str) -> bytes:
        """The file with another name on a sheet."""


def read(members: Mapping[str, bytes]) -> Book | None:
    """The workbook that these members of a zip are, or None."""
    if "xl/workbook.xml" in members:
        return _Xlsx(members)
    if b"opendocument.spreadsheet" in members.get("mimetype", b""):
        return _Ods(members)
    return None


def _parsed(data: bytes) -> Element:
    root: Element = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    return root


def _put_back(nodes: Sequence[Element]) -> Callable[[], None]:
    """Remember elements; what is returned makes them what they were."""
    saved = [(n, dict(n.attrib), list(n), n.text) for n in nodes]

    def back() -> None:
        for node, attributes, children, text in saved:
            node.attrib.clear()
            node.attrib.update(attributes)
            node[:], node.text = children, text

    return back


_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


class _Xlsx:
    """Source: ECMA-376 part 1, chapter 18.3."""

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self._members = members
        self._book = _parsed(members["xl/workbook.xml"])
        links = _parsed(members["xl/_rels/workbook.xml.rels"])
        target = {link.get("Id"): link.get("Target", "") for link in links}
        strings: list[str] = []
        if "xl/sharedStrings.xml" in members:
            entries = _parsed(members["xl/sharedStrings.xml"]).findall(f"{_MAIN}si")
            strings = ["".join(t.text or "" for t in e.iter(f"{_MAIN}t")) for e in entries]
        self._sheets = {
            node.get("name", ""): node
            for node in self._book.iterfind(f"{_MAIN}sheets/{_MAIN}sheet")
        }
        self.names = list(self._sheets)
        self.cells: dict[Place, Cell] = {}
        self._nodes: dict[Place, Element] = {}
        self._rows: dict[Place, Element] = {}
        self._roots: dict[str, tuple[str, Element]] = {}
        for name, node in self._sheets.items():
            path = target[node.get(_ID)].lstrip("/")
            member = path if path in members else f"xl/{path}"
            if not PurePosixPath(member).name.startswith("sheet"):
                continue  # a sheet of one chart
            root = _parsed(members[member])
            self._roots[name] = member, root
            for row in root.iterfind(f"{_MAIN}sheetData/{_MAIN}row"):
                for cell in row:
                    at = name, cell.get("r", "")
                    self._nodes[at], self._rows[at] = cell, row
                    if (value := _xlsx_cell(cell, strings)) is not None:
                        self.cells[at] = value

    def saved(self, puts: Sequence[Put]) -> bytes:
        back = _put_back([self._nodes[at] for at, _ in puts])
        for at, cell in puts:
            node = self._nodes[at]
            node[:] = []
            node.attrib.pop("t", None)
            if cell is not None:
                _xlsx_fill(node, cell)
        data = self._packed({at[0] for at, _ in puts})
        back()
        return data

    def movable(self, at: Place) -> bool:
        return _right_of(at) not in self.cells

    def moved(self, at: Place) -> bytes:
        beside = _right_of(at)
        row, node = self._rows[at], self._nodes[at]
        back = _put_back([row, node])
        node.set("r", beside[1])
        if beside in self._nodes:
            row.remove(self._nodes[beside])
        data = self._packed({at[0]})
        back()
        return data

    def renamed(self, sheet: str, name: str) -> bytes:
        node = self._sheets[sheet]
        node.set("name", name)
        book = {"xl/workbook.xml": ElementTree.tostring(self._book)}
        node.set("name", sheet)
        return pack({**self._members, **book})

    def _packed(self, sheets: set[str]) -> bytes:
        roots = (self._roots[name] for name in sorted(sheets))
        changed = {member: ElementTree.tostring(root) for member, root in roots}
        return pack({**self._members, **changed})


def _right_of(at: Place) -> Place:
    letters = at[1].rstrip("0123456789")
    return at[0], _next_column(letters) + at[1][len(letters) :]


def _next_column(letters: str) -> str:
    head, last = letters[:-1], letters[-1]
    if last != "Z":
        return head + chr(ord(last) + 1)
    return (_next_column(head) if head else "A") + "A"


def _xlsx_cell(node: Element, strings: Sequence[str]) -> Cell | None:
    kind = node.get("t", "n")
    formula = node.find(f"{_MAIN}f")
    value = node.findtext(f"{_MAIN}v") or ""
    if kind == "s" and value:
        value = strings[int(value)]
    elif kind == "inlineStr":
        value = "".join(t.text or "" for t in node.iter(f"{_MAIN}t"))
    if formula is None and not value:
        return None
    word = {"n": "number", "s": "text", "str": "text", "inlineStr": "text"}.get(kind, kind)
    return Cell(word, value, None if formula is None else formula.text or "")


def _xlsx_fill(node: Element, cell: Cell) -> None:
    if cell.formula:
        ElementTree.SubElement(node, f"{_MAIN}f").text = cell.formula
    if cell.kind == "text" and cell.formula is None:
        node.set("t", "inlineStr")
        inline = ElementTree.SubElement(node, f"{_MAIN}is")
        ElementTree.SubElement(inline, f"{_MAIN}t").text = cell.text
        return
    if cell.kind != "number":
        node.set("t", "str" if cell.kind == "text" else cell.kind)
    if cell.text:
        ElementTree.SubElement(node, f"{_MAIN}v").text = cell.text


_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


class _Ods:
    """Cells that the file has once; a run of equal ones is left alone.

    Source: OpenDocument 1.3 part 3, chapter 9.
    """

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self._members = members
        self._root = _parsed(members["content.xml"])
        body = self._root.find(f"{_OFFICE}body/{_OFFICE}spreadsheet")
        tables = [] if body is None else body.findall(f"{_TABLE}table")
        self._tables = {table.get(f"{_TABLE}name", ""): table for table in tables}
        self.names = list(self._tables)
        self.cells: dict[Place, Cell] = {}
        self._nodes: dict[Place, tuple[Element, Element]] = {}
        for name, table in self._tables.items():
            for place, row, node in _ods_cells(table):
                if (value := _ods_cell(node)) is not None:
                    self.cells[name, place] = value
                    self._nodes[name, place] = row, node

    def saved(self, puts: Sequence[Put]) -> bytes:
        nodes = [self._nodes[at][1] for at, _ in puts]
        back = _put_back(nodes)
        for (_, cell), node in zip(puts, nodes, strict=True):
            _ods_empty(node)
            if cell is not None:
                _ods_fill(node, cell)
        data = self._packed()
        back()
        return data

    def movable(self, at: Place) -> bool:
        following = self._following(at)
        return following is None or _ods_cell(following) is None

    def moved(self, at: Place) -> bytes:
        row, node = self._nodes[at]
        place = list(row).index(node)
        following = self._following(at)
        times = f"{_TABLE}number-columns-repeated"
        back = _put_back([row] if following is None else [row, following])
        row.insert(place, ElementTree.Element(f"{_TABLE}table-cell"))
        if following is not None:
            left = int(following.get(times, "1")) - 1
            if left:
                following.set(times, str(left))
            else:
                row.remove(following)
        data = self._packed()
        back()
        return data

    def renamed(self, sheet: str, name: str) -> bytes:
        table = self._tables[sheet]
        table.set(f"{_TABLE}name", name)
        data = self._packed()
        table.set(f"{_TABLE}name", sheet)
        return data

    def _following(self, at: Place) -> Element | None:
        row, node = self._nodes[at]
        place = list(row).index(node) + 1
        return row[place] if place < len(row) else None

    def _packed(self) -> bytes:
        return pack({**self._members, "content.xml": ElementTree.tostring(self._root)})


def _ods_cells(table: Element) -> Iterator[tuple[str, Element, Element]]:
    """Name, row and element of every cell that stands alone."""
    at_row = 0
    for row in table.iter(f"{_TABLE}table-row"):
        rows = int(row.get(f"{_TABLE}number-rows-repeated", "1"))
        letters = "A"
        for node in row if rows == 1 else ():
            columns = int(node.get(f"{_TABLE}number-columns-repeated", "1"))
            if columns == 1:
                yield f"{letters}{at_row + 1}", row, node
            for _ in range(columns if node is not row[-1] else 0):
                letters = _next_column(letters)
        at_row += rows


def _ods_cell(node: Element) -> Cell | None:
    kind, formula = node.get(f"{_OFFICE}value-type"), node.get(f"{_TABLE}formula")
    if kind is None and formula is None:
        return None
    text = "\n".join("".join(p.itertext()) for p in node.findall(f"{_TEXT}p"))
    if kind in ("float", "percentage", "currency"):
        return Cell("number", node.get(f"{_OFFICE}value", ""), formula)
    return Cell("text" if kind in ("string", None) else kind, text, formula)


def _ods_empty(node: Element) -> None:
    for key in list(node.attrib):
        if key.startswith(_OFFICE) or key == f"{_TABLE}formula" or key.endswith("}value-type"):
            del node.attrib[key]
    node[:] = []


def _ods_fill(node: Element, cell: Cell) -> None:
    if cell.formula:
        node.set(f"{_TABLE}formula", cell.formula)
    number = cell.kind == "number"
    node.set(f"{_OFFICE}value-type", "float" if number else "string")
    if number:
        node.set(f"{_OFFICE}value", cell.text)
    ElementTree.SubElement(node, f"{_TEXT}p").text = cell.text
