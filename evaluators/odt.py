"""Reading odt. Source: OpenDocument 1.3 part 3, chapters 3, 5, 9 and 16."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from cua_gym.grading.check import Fails

from .odf import FO, OFFICE, STYLE, SVG, TABLE, TEXT, Styles, millimetres, runs
from .office_text import PageSetup, Paragraph, Table, TextDocument
from .packages import Package, number

Element = ElementTree.Element

MAX_REPEATED = 100
MAX_CELLS = 100_000
_AROUND = {
    f"{TEXT}section",
    f"{TEXT}index-body",
    f"{TEXT}index-title",
    f"{TEXT}table-of-content",
    f"{TEXT}alphabetical-index",
    f"{TEXT}bibliography",
    f"{TEXT}illustration-index",
    f"{TEXT}table-index",
    f"{TEXT}user-index",
    f"{TEXT}object-index",
    f"{TEXT}numbered-paragraph",
}
_ROWS = {f"{TABLE}table-header-rows", f"{TABLE}table-rows", f"{TABLE}table-row-group"}


def read_odt(package: Package) -> TextDocument:
    """The document in a package.

    Raises:
        Fails: it is none.
    """
    root = package.xml("content.xml")
    body = root.find(f"{OFFICE}body/{OFFICE}text")
    if body is None:
        raise Fails("no whole odt: it has no text", seen=root.tag)
    reader = _Reader(Styles(package, root))
    paragraphs = tuple(reader.blocks(body))
    return TextDocument(paragraphs, tuple(reader.tables), tuple(reader.pages()))


class _Reader:
    """One document in the reading."""

    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self.tables: list[Table] = []
        self._masters: list[str] = []
        """Master pages by name in the order of their use; empty is the first one's default."""

    def blocks(self, parent: Element, lists: tuple[str, ...] = ()) -> Iterator[Paragraph]:
        """The paragraphs below an element; ``lists`` are the styles of the lists around it."""
        for node in parent:
            if node.tag in (f"{TEXT}p", f"{TEXT}h"):
                yield self._paragraph(node, lists)
            elif node.tag == f"{TEXT}list":
                style = node.get(f"{TEXT}style-name") or (lists[-1] if lists else "")
                for item in node:
                    inside = (*lists, style) if item.tag == f"{TEXT}list-item" else ()
                    # Only an item's first paragraph has the bullet.
                    for index, paragraph in enumerate(self.blocks(item, inside)):
                        yield (
                            paragraph
                            if index == 0 or paragraph.depth > len(inside)
                            else _plain(paragraph)
                        )
            elif node.tag == f"{TABLE}table":
                yield from self._table(node)
            elif node.tag in _AROUND:
                yield from self.blocks(node, lists)

    def _paragraph(self, node: Element, lists: tuple[str, ...]) -> Paragraph:
        style = node.get(f"{TEXT}style-name", "")
        master = self._styles.attribute("paragraph", style, f"{STYLE}master-page-name")
        if master or not self._masters:
            self._masters.append(master)
        level = 0
        if node.tag == f"{TEXT}h":
            level = number(node.get(f"{TEXT}outline-level", "1"), "an outline level")
        bullet = self._bullet(lists)
        return Paragraph(
            runs(node, self._styles, self._styles.look("paragraph", style)),
            self._styles.name("paragraph", style),
            level if 1 <= level <= 9 else 0,
            bullet,
            len(lists) if bullet else 0,
            self._styles.align(style),
        )

    def _bullet(self, lists: tuple[str, ...]) -> str:
        style = self._styles.lists.get(lists[-1]) if lists else None
        for level in () if style is None else style:
            if level.get(f"{TEXT}level") == str(len(lists)):
                if level.tag == f"{TEXT}list-level-style-number":
                    return "number" if level.get(f"{STYLE}num-format") else ""
                return "bullet"
        return ""

    def _table(self, table: Element) -> Iterator[Paragraph]:
        place = len(self.tables)
        self.tables.append(())  # one within a cell of this one comes after it
        rows: list[tuple[str, ...]] = []
        size = 0
        for row in _rows(table):
            cells: list[str] = []
            for cell in row:
                if cell.tag not in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                    continue
                inside = list(self.blocks(cell))
                yield from inside
                text = "\n".join(p.text for p in inside)
                cells += [text] * _times(cell, "columns")
            times = _times(row, "rows")
            size += times * len(cells)
            if size > MAX_CELLS:
                raise Fails(f"a table of over {MAX_CELLS} cells: no document of a task")
            rows += [tuple(cells)] * times
        self.tables[place] = tuple(rows)

    def pages(self) -> Iterator[PageSetup]:
        """The pages that the paragraphs read so far are on."""
        sheet = self._styles.sheet
        masters = list(sheet.iterfind(f"{OFFICE}master-styles/{STYLE}master-page"))
        if not masters:
            return
        named = {master.get(f"{STYLE}name", ""): master for master in masters}
        layouts = {
            layout.get(f"{STYLE}name", ""): layout for layout in sheet.iter(f"{STYLE}page-layout")
        }
        standard = named.get("Standard", masters[0])
        for name in dict.fromkeys(self._masters or [""]):
            master = named.get(name, standard)
            layout = layouts.get(master.get(f"{STYLE}page-layout-name", ""))
            properties = None if layout is None else layout.find(f"{STYLE}page-layout-properties")
            found = {} if properties is None else properties.attrib

            def length(name: str, found: dict[str, str] = found) -> float:
                return millimetres(found.get(f"{FO}{name}") or found.get(f"{FO}margin"))

            yield PageSetup(
                millimetres(found.get(f"{FO}page-width")),
                millimetres(found.get(f"{FO}page-height")),
                length("margin-top") + _beside_height(layout, master, "header"),
                length("margin-right"),
                length("margin-bottom") + _beside_height(layout, master, "footer"),
                length("margin-left"),
                self._beside(master, "header"),
                self._beside(master, "footer"),
            )

    def _beside(self, master: Element, kind: str) -> str:
        node = _shown(master, kind)
        return "" if node is None else "\n".join(p.text for p in self.blocks(node))


def _shown(master: Element, kind: str) -> Element | None:
    node = master.find(f"{STYLE}{kind}")
    return None if node is None or node.get(f"{STYLE}display") == "false" else node


def _beside_height(layout: Element | None, master: Element, kind: str) -> float:
    """What a header or footer takes between the page's margin and the body."""
    place = f"{STYLE}{kind}-style/{STYLE}header-footer-properties"
    properties = None if layout is None else layout.find(place)
    if properties is None or _shown(master, kind) is None:
        return 0.0
    return millimetres(properties.get(f"{SVG}height") or properties.get(f"{FO}min-height"))


def _plain(paragraph: Paragraph) -> Paragraph:
    return Paragraph(paragraph.runs, paragraph.style, paragraph.level, align=paragraph.align)


def _rows(parent: Element) -> Iterator[Element]:
    for node in parent:
        if node.tag == f"{TABLE}table-row":
            yield node
        elif node.tag in _ROWS:
            yield from _rows(node)


def _times(node: Element, what: str) -> int:
    times = number(node.get(f"{TABLE}number-{what}-repeated", "1"), "a number of repetitions")
    if not 0 < times <= MAX_REPEATED:
        raise Fails(f"a number of repetitions is {times}: no document of a task")
    return times
