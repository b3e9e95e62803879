"""How the parts of an Office Open XML package (docx, pptx) refer to each other."""

from __future__ import annotations

import posixpath
from xml.etree import ElementTree

from cua_gym.grading.check import Fails

from .packages import Package

_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def relations(package: Package, part: str) -> dict[str, tuple[str, str]]:
    """What a part refers to within the package: id to (last word of the type, part).

    Source: ECMA-376 part 2, chapter 9.
    """
    folder, name = posixpath.split(part)
    place = posixpath.join(folder, "_rels", f"{name}.rels")
    if place not in package.names:
        return {}
    found = {}
    for node in package.xml(place).iter(_RELATION):
        if node.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, node.get("Target", "")))
            kind = node.get("Type", "").rpartition("/")[2]
            found[node.get("Id", "")] = (kind, target.removeprefix("/"))
    return found


def related(package: Package, part: str, kind: str) -> list[str]:
    """The parts of one kind that a part refers to and that are there."""
    every = relations(package, part).values()
    return [target for found, target in every if found == kind and target in package.names]


def main_part(package: Package, what: str) -> tuple[str, ElementTree.Element]:
    """The part that everything else hangs on.

    Raises:
        Fails: there is none.
    """
    parts = related(package, "", "officeDocument")
    if not parts:
        raise Fails(f"no whole {what}: it has no main part", seen=sorted(package.names)[:20])
    return parts[0], package.xml(parts[0])
