"""Variants of XML, by the texts of elements and their attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from xml.etree import ElementTree

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from cua_gym.gates.variants import Content, Variant, altered, place, spread

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
    """Each changed text and attribute undone and altered."""
    before = (
        {} if start is None else {where: v for where, v, _, _ in _texts(start, _local(start.tag))}
    )
    parts: list[Content] = []
    every = list(_texts(solved, _local(solved.tag)))
    changed = [one for one in every if before.get(one[0]) != one[1]]

    def alter(node: ElementTree.Element, attribute: str, value: str | None) -> bytes:
        was = node.get(attribute) if attribute else node.text
        _set(node, attribute, value)
        data: bytes = ElementTree.tostring(solved, "utf-8", xml_declaration=True)
        _set(node, attribute, was)
        return data

    for where, value, node, attribute in spread(changed):
        name = place(where)
        if len(changed) > 1:
            old = before.get(where)
            parts.append(Variant("reverted", name, partial(alter, node, attribute, old)))
        for how, wrong in altered(value):
            parts.append(
                Variant("altered", f"{name}-{how}", partial(alter, node, attribute, wrong))
            )
    return spread(parts)


Text = tuple[str, str, ElementTree.Element, str]
"""Path, value, element and, when it is one of its attributes, that."""


def _texts(node: ElementTree.Element, path: str) -> Iterator[Text]:
    if (node.text or "").strip():
        yield path, (node.text or "").strip(), node, ""
    for attribute, value in node.attrib.items():
        if value.strip():
            yield f"{path}@{_local(attribute)}", value, node, attribute
    count: dict[str, int] = {}
    for child in node:
        tag = _local(str(child.tag))
        count[tag] = count.get(tag, 0) + 1
        number = "" if count[tag] == 1 else f".{count[tag]}"
        yield from _texts(child, f"{path}/{tag}{number}")


def _local(name: str) -> str:
    """A name without its name space."""
    return name.rpartition("}")[2]


def _set(node: ElementTree.Element, attribute: str, value: str | None) -> None:
    if not attribute:
        node.text = value
    elif value is None:
        node.attrib.pop(attribute, None)
    else:
        node.set(attribute, value)


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
