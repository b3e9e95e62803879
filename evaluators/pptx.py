"""Reading pptx. Source: ECMA-376 part 1, chapters 19 (PresentationML) and 21 (DrawingML)."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from cua_gym.grading.check import Fails

from .office_text import PAGE_NUMBER, Table
from .ooxml import RELATION_ID, main_part, related, relations
from .packages import Package
from .slide_show import Slide

Element = ElementTree.Element

_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_EMBED = RELATION_ID.replace("}id", "}embed")
_PLACES = {
    "title": "title",
    "ctrTitle": "title",
    "subTitle": "subtitle",
    "body": "content",
    "obj": "content",
    "pic": "picture",
    "chart": "chart",
    "tbl": "table",
}
_ASIDE = {"dt", "ftr", "sldNum", "hdr"}


def read_pptx(package: Package) -> tuple[Slide, ...]:
    """The slides in a package.

    Raises:
        Fails: it is no presentation.
    """
    main, root = main_part(package, "pptx")
    if root.tag != f"{_P}presentation":
        raise Fails("no whole pptx: its main part is no presentation", seen=root.tag)
    links = relations(package, main)
    return tuple(
        _read_slide(package, links.get(node.get(RELATION_ID, ""), ("", ""))[1])
        for node in root.iterfind(f"{_P}sldIdLst/{_P}sldId")
    )


def _read_slide(package: Package, part: str) -> Slide:
    root = package.xml(part)
    links = relations(package, part)
    slide = Slide(hidden=root.get("show") in ("0", "false"))
    for shape in _shapes(root.find(f"{_P}cSld/{_P}spTree")):
        place = shape.find(f"*/{_P}nvPr/{_P}ph")
        kind = "" if place is None else place.get("type", "obj")
        if kind in _ASIDE:
            continue
        if kind in _PLACES:
            slide.places.append(_PLACES[kind])
        text = [_text(p) for p in shape.iterfind(f"{_P}txBody/{_A}p")]
        if _PLACES.get(kind) == "title":
            slide.title = "\n".join(text)
        else:
            slide.texts += text
        slide.tables += [_table(table) for table in shape.iter(f"{_A}tbl")]
        if shape.tag == f"{_P}pic":
            for blip in shape.iterfind(f"{_P}blipFill/{_A}blip"):
                target = links.get(blip.get(_EMBED, ""), ("", ""))[1]
                if target in package.names:
                    slide.pictures.append(package.read(target))
    for notes in related(package, part, "notesSlide"):
        slide.notes = _notes(package.xml(notes))
    return slide


def _notes(root: Element) -> str:
    lines = []
    for shape in _shapes(root.find(f"{_P}cSld/{_P}spTree")):
        place = shape.find(f"*/{_P}nvPr/{_P}ph")
        if place is not None and place.get("type") == "body":
            lines += [_text(p) for p in shape.iterfind(f"{_P}txBody/{_A}p")]
    return "\n".join(lines)


def _shapes(tree: Element | None) -> Iterator[Element]:
    """All shapes in order, out of their groups; of alternatives the first."""
    for node in () if tree is None else tree:
        if node.tag == f"{_P}grpSp":
            yield from _shapes(node)
        elif node.tag == f"{_MC}AlternateContent":
            yield from _shapes(node.find(f"{_MC}Choice"))
        else:
            yield node


def _text(paragraph: Element) -> str:
    parts = []
    for node in paragraph:
        if node.tag == f"{_A}br":
            parts.append("\n")
        elif node.tag == f"{_A}fld" and node.get("type") == "slidenum":
            parts.append(PAGE_NUMBER)
        else:
            parts += [t.text or "" for t in node.findall(f"{_A}t")]
    return "".join(parts)


def _table(table: Element) -> Table:
    return tuple(
        tuple(
            "\n".join(_text(p) for p in cell.iterfind(f"{_A}txBody/{_A}p"))
            for cell in row.iterfind(f"{_A}tc")
        )
        for row in table.iterfind(f"{_A}tr")
    )
