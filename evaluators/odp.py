"""Reading odp. Source: OpenDocument 1.3 part 3, chapters 3.6, 10 and 16."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from cua_gym.grading.check import Fails

from .odf import DRAW, OFFICE, PRESENTATION, STYLE, TABLE, TEXT, XLINK, Styles, runs
from .office_text import Table
from .packages import Package
from .slide_show import Slide

Element = ElementTree.Element

_PLACES = {
    "title": "title",
    "subtitle": "subtitle",
    "outline": "content",
    "text": "content",
    "object": "content",
    "graphic": "picture",
    "chart": "chart",
    "table": "table",
}
_ASIDE = {"date-time", "footer", "page-number", "header", "page", "notes"}
_OBJECTS = {f"{DRAW}object", f"{DRAW}object-ole", f"{TABLE}table"}
"""What has a picture of itself beside it, for programs that cannot show it."""


def read_odp(package: Package) -> tuple[Slide, ...]:
    """The slides in a package.

    Raises:
        Fails: it is no presentation.
    """
    root = package.xml("content.xml")
    body = root.find(f"{OFFICE}body/{OFFICE}presentation")
    if body is None:
        raise Fails("no whole odp: it has no presentation", seen=root.tag)
    styles = Styles(package, root)
    return tuple(_read_slide(package, styles, page) for page in body.iterfind(f"{DRAW}page"))


def _read_slide(package: Package, styles: Styles, page: Element) -> Slide:
    slide = Slide(hidden=_hidden(styles, page.get(f"{DRAW}style-name", "")))
    for shape in _shapes(page):
        kind = shape.get(f"{PRESENTATION}class", "")
        if kind in _ASIDE:
            continue
        if kind in _PLACES:
            slide.places.append(_PLACES[kind])
        text = _texts(shape, styles)
        if kind == "title":
            slide.title = "\n".join(text)
        else:
            slide.texts += text
        slide.tables += [_table(table, styles) for table in shape.iterfind(f"{TABLE}table")]
        if not any(node.tag in _OBJECTS for node in shape):
            # Of several forms of one picture the first.
            files = [n.get(f"{XLINK}href", "") for n in shape.iterfind(f"{DRAW}image")]
            there = [name for name in files if name in package.names]
            slide.pictures += [package.read(name) for name in there[:1]]
    for notes in page.iterfind(f"{PRESENTATION}notes"):
        lines: list[str] = []
        for shape in _shapes(notes):
            if shape.get(f"{PRESENTATION}class") == "notes":
                lines += _texts(shape, styles)
        slide.notes = "\n".join(lines)
    return slide


def _hidden(styles: Styles, style: str) -> bool:
    return any(
        properties.get(f"{PRESENTATION}visibility") == "hidden"
        for one in styles.chain("drawing-page", style)
        for properties in one.iterfind(f"{STYLE}drawing-page-properties")
    )


def _shapes(parent: Element) -> Iterator[Element]:
    """All shapes in order, out of their groups."""
    for node in parent:
        if node.tag in (f"{DRAW}g", f"{DRAW}a"):
            yield from _shapes(node)
        elif node.tag.startswith(DRAW):
            yield node


def _texts(node: Element, styles: Styles) -> list[str]:
    """The paragraphs in a shape, those of lists too, not those of tables.

    A place that was not filled has the words that ask to fill it, or none.
    """
    found: list[str] = []
    if node.get(f"{PRESENTATION}placeholder") == "true":
        return found
    for child in node:
        if child.tag in (f"{TEXT}p", f"{TEXT}h"):
            found.append("".join(run.text for run in runs(child, styles, {})))
        elif child.tag.startswith(TEXT) or child.tag == f"{DRAW}text-box":
            found += _texts(child, styles)
    return found


def _table(table: Element, styles: Styles) -> Table:
    return tuple(
        tuple(
            "\n".join(_texts(cell, styles))
            for cell in row
            if cell.tag in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell")
        )
        for row in table.iter(f"{TABLE}table-row")
    )
