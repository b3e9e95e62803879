"""Reading docx. Source: ECMA-376 part 1, chapter 17 (WordprocessingML), transitional."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from cua_gym.grading.check import Fails

from .office_text import (
    PAGE_COUNT,
    PAGE_NUMBER,
    Look,
    PageSetup,
    Paragraph,
    Run,
    Table,
    TextDocument,
)
from .ooxml import RELATION_ID, main_part, related, relations
from .packages import Package, number

Element = ElementTree.Element

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TWIPS_MM = 25.4 / 1440
_ALIGN = {"both": "justify", "distribute": "justify", "start": "left", "end": "right"}
_THROUGH = {"ins", "moveTo", "hyperlink", "smartTag", "sdt", "sdtContent", "fldSimple", "customXml"}
"""Elements around content; what a tracked change deleted (``del``) is not among them."""
_SIGNS = {"tab": "\t", "cr": "\n", "noBreakHyphen": "\u2011"}


def read_docx(package: Package) -> TextDocument:
    """The document in a package.

    Raises:
        Fails: it is none.
    """
    return _Reader(package).document()


class _Reader:
    """One document and what its parts say about styles and lists."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._main, self._root = main_part(package, "docx")
        styles = self._part("styles")
        self._styles = {s.get(f"{_W}styleId", ""): s for s in styles.iter(f"{_W}style")}
        self._defaults = _look(styles.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr"))
        self._normal = next(
            (
                name
                for name, style in self._styles.items()
                if style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default") == "1"
            ),
            "",
        )
        self._bullets = _bullets(self._part("numbering"))
        self._tables: list[Table] = []

    def _part(self, kind: str) -> Element:
        parts = related(self._package, self._main, kind)
        return self._package.xml(parts[0]) if parts else Element(kind)

    def document(self) -> TextDocument:
        body = self._root.find(f"{_W}body")
        if body is None:
            raise Fails("no whole docx: it has no body", seen=self._root.tag)
        paragraphs = tuple(self._blocks(body))
        # Before the headers are read, which have tables too.
        tables = tuple(self._tables)
        return TextDocument(paragraphs, tables, tuple(self._pages(body)))

    def _blocks(self, parent: Element) -> Iterator[Paragraph]:
        for node in parent:
            name = node.tag.removeprefix(_W)
            if name == "p":
                yield self._paragraph(node)
            elif name == "tbl":
                yield from self._table(node)
            elif name in _THROUGH:
                yield from self._blocks(node)

    def _table(self, table: Element) -> Iterator[Paragraph]:
        place = len(self._tables)
        self._tables.append(())  # one within a cell of this one comes after it
        rows = []
        for row in _children(table, "tr"):
            cells = []
            for cell in _children(row, "tc"):
                inside = list(self._blocks(cell))
                yield from inside
                cells.append("\n".join(p.text for p in inside))
                span = _value(cell.find(f"{_W}tcPr"), "gridSpan")
                cells += [""] * (min(number(span, "a span"), 100) - 1 if span else 0)
            rows.append(tuple(cells))
        self._tables[place] = tuple(rows)

    def _paragraph(self, node: Element) -> Paragraph:
        own = node.find(f"{_W}pPr")
        style = _value(own, "pStyle") or self._normal
        chain = self._chain(style)
        # The style's own properties, nearest first, after those set by hand.
        properties = [own, *(s.find(f"{_W}pPr") for s in chain)]
        look, toggles = self._styled(self._defaults, chain)
        runs = self._runs(node, look, toggles)
        name = _value(chain[0], "name") if chain else style
        outline = _first(properties, "outlineLvl")
        if outline is not None:
            level = number(outline, "an outline level") + 1
        else:
            match = re.fullmatch(r"(?i)heading ([1-9])", name)
            level = int(match[1]) if match else 0
        align = _first(properties, "jc") or "left"
        bullet, depth = self._item(properties)
        return Paragraph(
            tuple(runs),
            name,
            level if 1 <= level <= 9 else 0,
            bullet,
            depth,
            _ALIGN.get(align, align),
        )

    def _item(self, properties: list[Element | None]) -> tuple[str, int]:
        numbering = [p.find(f"{_W}numPr") for p in properties if p is not None]
        which = _first(numbering, "numId")
        depth = number(_first(numbering, "ilvl") or "0", "the level of a list")
        bullet = self._bullets.get((which or "0", depth), "")
        return (bullet, depth + 1) if bullet else ("", 0)

    def _chain(self, style: str) -> list[Element]:
        """A style and what it is based on, nearest first."""
        found: list[Element] = []
        while style in self._styles and self._styles[style] not in found:
            found.append(self._styles[style])
            style = _value(found[-1], "basedOn")
        return found

    def _styled(
        self, look: dict[str, Any], chain: list[Element]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The look with a chain of styles applied, and what they say alone."""
        said: dict[str, Any] = {}
        for style in reversed(chain):
            said |= _look(style.find(f"{_W}rPr"))
        return {**look, **said}, said

    def _runs(
        self, parent: Element, base: dict[str, Any], toggles: dict[str, Any]
    ) -> Iterator[Run]:
        field = _Field()
        for run in _run_nodes(parent, field):
            properties = run.find(f"{_W}rPr")
            look, said = self._styled(base, self._chain(_value(properties, "rStyle")))
            for name in ("bold", "italic", "strike"):
                # A style of characters in bold within one of paragraphs in bold is not bold.
                if said.get(name) and toggles.get(name):
                    look[name] = False
            text = "".join(_run_text(run, field))
            if text:
                yield Run(text, Look(**{**look, **_look(properties)}))

    def _pages(self, body: Element) -> Iterator[PageSetup]:
        links = relations(self._package, self._main)
        # A section without a header of its own has that of the one before.
        shown = {"header": "", "footer": ""}
        for section in body.iter(f"{_W}sectPr"):
            for kind in shown:
                for node in section.findall(f"{_W}{kind}Reference"):
                    part = links.get(node.get(RELATION_ID, ""), ("", ""))[1]
                    if (
                        node.get(f"{_W}type", "default") == "default"
                        and part in self._package.names
                    ):
                        texts = [p.text for p in self._blocks(self._package.xml(part))]
                        shown[kind] = "\n".join(texts)
            size, margin = section.find(f"{_W}pgSz"), section.find(f"{_W}pgMar")
            width, height = _length(size, "w"), _length(size, "h")
            top, right, bottom, left = (
                _length(margin, side) for side in ("top", "right", "bottom", "left")
            )
            yield PageSetup(
                width, height, top, right, bottom, left, shown["header"], shown["footer"]
            )


class _Field:
    """Where in a field (``PAGE``) the text stands that is being read."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.result = False

    def sign(self) -> str | None:
        """What stands for the field's result; None when the result itself does."""
        words = self.open[-1].split() if self.open else []
        return {"PAGE": PAGE_NUMBER, "NUMPAGES": PAGE_COUNT}.get(words[0].upper() if words else "")


def _run_nodes(parent: Element, field: _Field) -> Iterator[Element]:
    for node in parent:
        name = node.tag.removeprefix(_W)
        if name == "r":
            yield node
        elif name == "fldSimple":
            simple = _Field()
            simple.open.append(node.get(f"{_W}instr", ""))
            if simple.sign() is None:
                yield from _run_nodes(node, field)
            else:
                run = Element(f"{_W}r")
                ElementTree.SubElement(run, f"{_W}t").text = simple.sign()
                yield run
        elif name in _THROUGH:
            yield from _run_nodes(node, field)


def _run_text(run: Element, field: _Field) -> Iterator[str]:
    for node in run:
        name = node.tag.removeprefix(_W)
        if name == "fldChar":
            kind = node.get(f"{_W}fldCharType")
            if kind == "begin":
                field.open.append("")
                field.result = False
            elif kind == "separate":
                field.result = True
            elif kind == "end" and field.open:
                if sign := field.sign():
                    yield sign
                field.open.pop()
                field.result = bool(field.open)
        elif name == "instrText" and field.open:
            field.open[-1] += node.text or ""
        elif field.open and (not field.result or field.sign() is not None):
            continue
        elif name == "t":
            yield node.text or ""
        elif name == "br":
            yield "" if node.get(f"{_W}type") in ("page", "column") else "\n"
        else:
            yield _SIGNS.get(name, "")


def _children(parent: Element, wanted: str) -> Iterator[Element]:
    for node in parent:
        name = node.tag.removeprefix(_W)
        if name == wanted:
            yield node
        elif name in _THROUGH:
            yield from _children(node, wanted)


def _value(parent: Element | None, name: str) -> str:
    """The ``val`` of a child, empty when there is none."""
    node = None if parent is None else parent.find(f"{_W}{name}")
    return "" if node is None else node.get(f"{_W}val", "")


def _first(parents: list[Element | None], name: str) -> str | None:
    return next((value for parent in parents if (value := _value(parent, name))), None)


def _look(properties: Element | None) -> dict[str, Any]:
    """What one set of run properties says, and nothing that it does not."""
    found: dict[str, Any] = {}
    for node in () if properties is None else properties:
        value = node.get(f"{_W}val", "")
        match node.tag.removeprefix(_W):
            case "b":
                found["bold"] = value not in ("0", "false", "off")
            case "i":
                found["italic"] = value not in ("0", "false", "off")
            case "strike" | "dstrike":
                found["strike"] = value not in ("0", "false", "off")
            case "u":
                found["underline"] = value != "none"
            case "sz":
                found["size"] = number(value, "a font's size") / 2
            case "rFonts" if f"{_W}ascii" in node.attrib:
                found["font"] = node.get(f"{_W}ascii")
            case "color":
                found["color"] = "000000" if value == "auto" else value.upper()
    return found


def _bullets(numbering: Element) -> dict[tuple[str, int], str]:
    """By list and level: ``bullet``, ``number``, or nothing when it shows nothing."""
    shapes: dict[tuple[str, int], str] = {}
    for shape in numbering.iter(f"{_W}abstractNum"):
        for level in shape.iter(f"{_W}lvl"):
            depth = number(level.get(f"{_W}ilvl"), "the level of a list")
            kind = _value(level, "numFmt")
            shapes[shape.get(f"{_W}abstractNumId", ""), depth] = (
                kind if kind == "bullet" else "" if kind in ("none", "") else "number"
            )
    return {
        (one.get(f"{_W}numId", ""), depth): kind
        for one in numbering.iter(f"{_W}num")
        for (shape, depth), kind in shapes.items()
        if shape == _value(one, "abstractNumId")
    }


def _length(node: Element | None, name: str) -> float:
    """Millimetres."""
    text = "" if node is None else node.get(f"{_W}{name}", "")
    return number(text, "a length") * _TWIPS_MM if text else 0.0
