"""OpenDocument text and styles, for what odt and odp have in common.

Source: OpenDocument 1.3 part 3, chapters 5, 6, 16, 19 and 20.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from cua_gym.grading.check import Fails

from .office_text import PAGE_COUNT, PAGE_NUMBER, Look, Run
from .packages import Package, number

Element = ElementTree.Element

_NS = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
OFFICE, STYLE, TEXT, TABLE, DRAW, PRESENTATION = (
    _NS % name for name in ("office", "style", "text", "table", "drawing", "presentation")
)
FO = _NS % "xsl-fo-compatible"
SVG = _NS % "svg-compatible"
XLINK = "{http://www.w3.org/1999/xlink}"

_UNSEEN = {
    f"{TEXT}note",
    f"{TEXT}tracked-changes",
    f"{TEXT}ruby-text",
    f"{OFFICE}annotation",
    f"{OFFICE}annotation-end",
    f"{OFFICE}forms",
}
_MM = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72, "pc": 25.4 / 6, "px": 25.4 / 96}
MAX_SPACES = 1000


class Styles:
    """The styles of a document: what a name stands for, by family."""

    def __init__(self, package: Package, content: Element) -> None:
        empty = Element("none")
        self.sheet = package.xml("styles.xml") if "styles.xml" in package.names else empty
        self._made = {
            (style.get(f"{STYLE}family", ""), style.get(f"{STYLE}name", "")): style
            for part in (self.sheet, content)
            for group in part.findall(f"{OFFICE}automatic-styles")
            for style in group
            if style.tag == f"{STYLE}style"
        }
        self._named = {
            (style.get(f"{STYLE}family", ""), style.get(f"{STYLE}name", "")): style
            for style in self.sheet.iterfind(f"{OFFICE}styles/{STYLE}style")
        }
        self._default = {
            style.get(f"{STYLE}family", ""): style
            for style in self.sheet.iterfind(f"{OFFICE}styles/{STYLE}default-style")
        }
        self._fonts = {
            face.get(f"{STYLE}name", ""): face.get(f"{SVG}font-family", "").strip("'\"")
            for part in (self.sheet, content)
            for face in part.iter(f"{STYLE}font-face")
        }
        self.lists = {
            style.get(f"{STYLE}name", ""): style
            for part in (self.sheet, content)
            for style in part.iter(f"{TEXT}list-style")
        }

    def chain(self, family: str, name: str) -> list[Element]:
        """A style and what it is derived from, nearest first."""
        found: list[Element] = []
        key = (family, name)
        while (style := self._made.get(key, self._named.get(key))) is not None:
            if style in found:
                break
            found.append(style)
            key = (family, style.get(f"{STYLE}parent-style-name", ""))
        return found

    def name(self, family: str, name: str) -> str:
        """What a person sees as the style's name: that of the first one not set by hand."""
        for style in self.chain(family, name):
            own = style.get(f"{STYLE}name", "")
            if (family, own) not in self._made:
                return style.get(f"{STYLE}display-name") or _decoded(own)
        return ""

    def attribute(self, family: str, name: str, attribute: str) -> str:
        """The nearest value of an attribute of the style itself, empty when there is none."""
        chain = self.chain(family, name)
        return next((v for s in chain if (v := s.get(attribute)) is not None), "")

    def look(self, family: str, name: str, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """How characters of a style look, on top of ``base`` or of the family's default."""
        chain = self.chain(family, name)
        if base is None:
            base = {}
            chain = [*chain, *([self._default[family]] if family in self._default else [])]
        look = dict(base)
        for style in reversed(chain):
            for properties in style.findall(f"{STYLE}text-properties"):
                self._apply(properties, look)
        return look

    def align(self, name: str) -> str:
        """Of a paragraph."""
        chain = self.chain("paragraph", name)
        for style in [
            *chain,
            *([self._default["paragraph"]] if "paragraph" in self._default else []),
        ]:
            for properties in style.findall(f"{STYLE}paragraph-properties"):
                value = properties.get(f"{FO}text-align")
                if value is not None:
                    return {"start": "left", "end": "right"}.get(value, value)
        return "left"

    def _apply(self, properties: Element, look: dict[str, Any]) -> None:
        for name, value in properties.attrib.items():
            if name == f"{FO}font-weight":
                look["bold"] = value == "bold" or (value.isdecimal() and int(value[:4]) >= 600)
            elif name == f"{FO}font-style":
                look["italic"] = value in ("italic", "oblique")
            elif name == f"{STYLE}text-underline-style":
                look["underline"] = value != "none"
            elif name == f"{STYLE}text-line-through-style":
                look["strike"] = value != "none"
            elif name == f"{FO}font-size":
                look["size"] = _size(value, look.get("size"))
            elif name == f"{STYLE}font-name":
                look["font"] = self._fonts.get(value) or value
            elif name == f"{FO}font-family":
                look["font"] = value.strip("'\"")
            elif name == f"{FO}color":
                look["color"] = value.removeprefix("#").upper()
        if properties.get(f"{STYLE}use-window-font-color") == "true":
            look["color"] = "000000"


def _decoded(name: str) -> str:
    """``Heading_20_1`` is ``Heading 1``."""
    return re.sub(r"_([0-9a-f]{2})_", lambda match: chr(int(match[1], 16)), name)


def _size(text: str, base: float | None) -> float | None:
    match = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,6})?)(pt|%)", text)
    if match is None:
        raise Fails(f"a font's size is {text!r:.40}")
    size = float(match[1])
    return size if match[2] == "pt" else None if base is None else base * size / 100


def millimetres(text: str | None) -> float:
    """A length; none is 0.

    Raises:
        Fails: it is no length.
    """
    match = re.fullmatch(r"(-?[0-9]{1,6}(?:\.[0-9]{1,9})?)(mm|cm|in|pt|pc|px)", text or "0mm")
    if match is None:
        raise Fails(f"a length is {text!r:.40}")
    return float(match[1]) * _MM[match[2]]


def runs(paragraph: Element, styles: Styles, look: dict[str, Any]) -> tuple[Run, ...]:
    """A paragraph's characters, white space as it is shown, and their looks."""
    found: list[tuple[str, dict[str, Any]]] = []
    for text, its in _pieces(paragraph, styles, look):
        if found and found[-1][1] == its:
            found[-1] = (found[-1][0] + text, its)
        elif text:
            found.append((text, its))
    return tuple(Run(text, Look(**its)) for text, its in found)


def _pieces(
    node: Element, styles: Styles, look: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    yield _collapsed(node.text), look
    for child in node:
        if child.tag == f"{TEXT}s":
            spaces = number(child.get(f"{TEXT}c", "1"), "a number of spaces")
            if spaces > MAX_SPACES:
                raise Fails(f"{spaces} spaces in a row: no document of a task")
            yield " " * spaces, look
        elif child.tag == f"{TEXT}tab":
            yield "\t", look
        elif child.tag == f"{TEXT}line-break":
            yield "\n", look
        elif child.tag == f"{TEXT}page-number":
            yield PAGE_NUMBER, look
        elif child.tag == f"{TEXT}page-count":
            yield PAGE_COUNT, look
        elif child.tag == f"{TEXT}span":
            its = styles.look("text", child.get(f"{TEXT}style-name", ""), look)
            yield from _pieces(child, styles, its)
        elif child.tag not in _UNSEEN and not child.tag.startswith(DRAW):
            yield from _pieces(child, styles, look)
        yield _collapsed(child.tail), look


def _collapsed(text: str | None) -> str:
    return re.sub(r"[ \t\r\n]+", " ", text or "")
