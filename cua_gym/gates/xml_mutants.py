"""Variants of XML, by the texts of elements and their attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from xml.etree import ElementTree

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from cua_gym.gates.variants import MOST, Content, Variant, altered, halves, place, spread

__all__ = ["broken", "kept", "read"]


def read(data: bytes) -> ElementTree.Element | None:
    """The XML that a file is; None when it is none, or has a document type."""
    if not data.lstrip().startswith(b"<"):
        return None
    try:
        root: ElementTree.Element = defusedxml.ElementTree.fromstring(data, forbid_dtd=True)
    except (ElementTree.ParseError, DefusedXmlException, ValueError, LookupError):
        return None
    return root


def broken(start: ElementTree.Element | None, solved: ElementTree.Element) -> list[Content]:
    """Half of the changed texts and attributes undone, each on its own, and each altered."""
    old = [] if start is None else _texts(start, _local(start.tag))
    before = {text.where: text.value for text in old}
    changed = [
        text for text in _texts(solved, _local(solved.tag)) if before.get(text.where) != text.value
    ]

    def undo(some: Sequence[_Text]) -> bytes:
        return say([(text, before.get(text.where)) for text in some])

    def say(values: Sequence[tuple[_Text, str | None]]) -> bytes:
        for text, value in values:
            text.put(value)
        data: bytes = ElementTree.tostring(solved, "utf-8", xml_declaration=True)
        for text, _ in values:
            text.put(text.value)
        return data

    found: list[Content] = halves(changed, undo)
    parts: list[Content] = []
    for text in spread(changed):
        name = place(text.where)
        if len(changed) > 1:
            parts.append(Variant("reverted", name, partial(undo, [text])))
        for how, wrong in altered(text.value):
            parts.append(Variant("altered", f"{name}:{how}", partial(say, [(text, wrong)])))
    return found + spread(parts, MOST - len(found))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of an element or, when it has a name, one of its attributes."""

    where: str
    value: str
    node: ElementTree.Element
    attribute: str = ""

    def put(self, value: str | None) -> None:
        if not self.attribute:
            self.node.text = value
        elif value is None:
            self.node.attrib.pop(self.attribute, None)
        else:
            self.node.set(self.attribute, value)


def _texts(node: ElementTree.Element, path: str) -> Iterator[_Text]:
    if (node.text or "").strip():
        yield _Text(path, (node.text or "").strip(), node)
    for attribute, value in node.attrib.items():
        if value.strip():
            yield _Text(f"{path}@{_local(attribute)}", value, node, attribute)
    count: dict[str, int] = {}
    for child in node:
        tag = _local(str(child.tag))
        count[tag] = count.get(tag, 0) + 1
        number = "" if count[tag] == 1 else f".{count[tag]}"
        yield from _texts(child, f"{path}/{tag}{number}")


def _local(name: str) -> str:
    """A name without its name space."""
    return name.rpartition("}")[2]


_OUTSIDE = re.compile(rb"(<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>)", re.DOTALL)
_TAG = re.compile(rb"""<([\w:.-]+)((?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))+)(\s*/?>)""")
_ATTRIBUTE = re.compile(rb"""[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*')""")


def kept(data: bytes) -> Iterator[Content]:
    """The attributes of every element in reverse order."""

    def turned(tag: re.Match[bytes]) -> bytes:
        attributes = [m[0] for m in _ATTRIBUTE.finditer(tag[2])]
        return b"<" + tag[1] + b"".join(b" " + a for a in reversed(attributes)) + tag[3]

    parts = _OUTSIDE.split(data)
    parts[::2] = [_TAG.sub(turned, part) for part in parts[::2]]
    other = b"".join(parts)
    if other != data:
        yield Variant("attributes", "", lambda: other)
