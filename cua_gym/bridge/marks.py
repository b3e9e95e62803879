"""Set-of-marks: a numbered box on everything on the screen that can be acted on.

From what the accessibility tree and the window manager say (`cua_gym.machine.desktop`), so what
says nothing of itself has no mark: the icons of Xfce's desktop and file manager, for one. Pure;
whom to ask, and when, is the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cua_gym.bridge.labels import numbered
from cua_gym.machine.desktop import Window

__all__ = ["Mark", "mark"]

Rgb = npt.NDArray[np.uint8]
Box = tuple[int, int, int, int]
Node = Mapping[str, Any]

LIMIT = 150
MAX_NAME = 80
# Smaller than this nobody can hit, and a label would hide it.
_LEAST = 6
# Places in a list stand for the cells and icons within them; one without a name is an empty one.
# On a web page they, and headers, are mostly plain text.
_PLACES = frozenset({"table cell", "list item", "tree item"})
_PARTS = frozenset({"table cell", "icon"})
_HEADERS = frozenset({"table column header", "column header", "table row header"})
_ROLES = frozenset(
    {"button", "push button", "toggle button", "check box", "radio button", "switch", "link"}
    | {"menu", "menu item", "check menu item", "radio menu item", "combo box", "page tab"}
    | {"entry", "text", "password text", "spin button", "slider", "icon", *_PLACES, *_HEADERS}
)
# What lies outside these is not seen, although toolkits call it shown.
_CLIPS = frozenset({"scroll pane", "viewport", "menu bar", "document web", "document frame"})
_WINDOWS = frozenset({"frame", "dialog", "alert", "file chooser", "color chooser", "font chooser"})


@dataclass(frozen=True, slots=True)
class Mark:
    """One numbered target.

    Attributes:
        number: from 1, in reading order.
        name: its name, else its text or that within it, else the name of what closely encloses
            it; as the program claims it.
        box: (x, y, width, height) of what is seen of it, in native pixels; its middle is free.
    """

    number: int
    role: str
    name: str
    box: Box


def mark(
    rgb: Rgb, nodes: Sequence[Node], windows: Iterable[Window] = (), *, limit: int = LIMIT
) -> tuple[Rgb, list[Mark]]:
    """A copy of ``rgb`` with numbered boxes, and what the numbers stand for.

    Args:
        rgb: ``(height, width, 3)`` uint8, the whole screen.
        nodes: `cua_gym.machine.desktop.accessibility_tree`, of the same moment.
        windows: `cua_gym.machine.desktop.windows`; with them nothing is marked that another
            window covers.
        limit: at most so many; topmost windows first.

    Returns:
        Marks from top to bottom, left to right.
    """
    height, width, _ = rgb.shape
    targets = _targets(nodes, list(windows), (0, 0, width, height))
    # Stable sorts: nodes of one surface stay in the tree's order, which is the program's own.
    chosen = sorted(targets, key=lambda t: -t.surface)[:limit]
    marks = [
        Mark(number, target.role, target.name, target.box)
        for number, target in enumerate(_in_reading_order(chosen), 1)
    ]
    return numbered(rgb, [m.box for m in marks]), marks


@dataclass(slots=True)
class _Target:
    role: str
    name: str
    box: Box
    surface: int
    ancestors: tuple[int, ...]
    index: int


def _targets(nodes: Sequence[Node], windows: list[Window], screen: Box) -> list[_Target]:
    """What can be acted on and is seen, without what others stand for."""
    parents = _parents(nodes)
    surfaces, surface_of = _surfaces(nodes, parents, windows)
    seen: list[Box | None] = []  # the part of the screen in which a node's children can be seen
    found: list[_Target] = []
    inner = _inner_names(nodes, parents)
    for index, node in enumerate(nodes):
        parent = parents[index]
        around = screen if parent is None or nodes[parent]["role"] == "menu" else seen[parent]
        box = _box(node)
        visible = None if box is None or around is None else _common(box, around)
        seen.append(visible if node["role"] in _CLIPS and box is not None else around)
        surface = surface_of[index]
        if visible is None or surface is None:
            continue
        if min(visible[2:]) < _LEAST or _covered(visible, surfaces[surface + 1 :]):
            continue
        ancestors = tuple(_ancestors(index, parents))
        if not _actionable(node, {nodes[a]["role"] for a in ancestors}):
            continue
        name = _name(node, inner.get(index, ""), box, [nodes[a] for a in ancestors])
        if name or node["role"] not in _PLACES | _PARTS:
            found.append(_Target(node["role"], name, visible, surface, ancestors, index))
    return _without_containers(found)


def _actionable(node: Node, within: set[str]) -> bool:
    role, states = node["role"], set(node["states"])
    # LibreOffice calls its cells editable and not sensitive.
    if role not in _ROLES or not states & {"sensitive", "editable"}:
        return False
    if role == "text":
        return "editable" in states
    if (role in _PARTS and within & _PLACES) or (role == "menu" and "combo box" in within):
        return False
    if role in _PLACES | _HEADERS and "document web" in within:
        return bool(states & {"selectable", "selected", "editable"})
    return True


def _without_containers(found: list[_Target]) -> list[_Target]:
    """Leave out a target that other targets inside it cover by half: they stand for it."""
    inside: dict[int, int] = {}
    at = {target.index: target for target in found}
    for target in found:
        for ancestor in target.ancestors:
            if outer := at.get(ancestor):
                common = _common(target.box, outer.box)
                inside[ancestor] = inside.get(ancestor, 0) + (_area(common) if common else 0)
    kept: dict[Box, _Target] = {}
    for target in found:
        if 2 * inside.get(target.index, 0) < _area(target.box):
            kept.setdefault(target.box, target)  # the same place twice: the first has it
    return list(kept.values())


def _in_reading_order(targets: list[_Target]) -> list[_Target]:
    """Rows by their middles, since the parts of one bar differ by a few pixels."""
    rows: list[tuple[float, list[_Target]]] = []
    for target in sorted(targets, key=lambda t: (t.box[1] + t.box[3] / 2, t.box[0], t.index)):
        middle = target.box[1] + target.box[3] / 2
        if not rows or middle - rows[-1][0] > 8:
            rows.append((middle, []))
        rows[-1][1].append(target)
    return [t for _, row in rows for t in sorted(row, key=lambda t: (t.box[0], t.index))]


def _surfaces(
    nodes: Sequence[Node], parents: list[int | None], windows: list[Window]
) -> tuple[list[Box], list[int | None]]:
    """Rectangles that cover each other, bottom to top, and on which of them each node lies.

    Windows, then open menus and other popups, which no window manager lists. None for nodes of a
    window that is not shown.
    """
    boxes: list[Box] = [(w.x, w.y, w.width, w.height) for w in windows if not w.minimized]
    titles = [w.title for w in windows if not w.minimized]
    if not windows:
        boxes, titles = [(0, 0, 0, 0)], [""]
    of: list[int | None] = []
    menus: dict[int, int] = {}
    for index, node in enumerate(nodes):
        parent = parents[index]
        box = _box(node)
        if parent is None:
            of.append(None)
        elif parents[parent] is None:
            if not windows:
                of.append(0)
            elif node["role"] in _WINDOWS:
                number = None if box is None else _window(node["name"], box, boxes, titles)
                of.append(number)
                if number is not None and box is not None:
                    boxes[number] = box  # with the window manager's frame around it
            else:
                of.append(_window(node["name"], box, boxes, titles) if box else None)
                if of[-1] is None and box is not None:
                    of[-1] = len(boxes)
                    boxes.append(box)
        elif nodes[parent]["role"] == "menu" and box is not None:
            if parent not in menus:
                menus[parent] = len(boxes)
                boxes.append(box)
            number = menus[parent]
            boxes[number] = _around(boxes[number], box)
            of.append(number)
        else:
            of.append(of[parent])
    return boxes, of


def _window(name: str, box: Box, boxes: list[Box], titles: list[str]) -> int | None:
    """Which window a frame is: by its place, and of several there by its title."""
    best: tuple[bool, float] | None = None
    found = None
    for number, (other, title) in enumerate(zip(boxes, titles, strict=False)):
        common = _common(box, other)
        share = (
            0.0 if common is None else _area(common) / (_area(box) + _area(other) - _area(common))
        )
        if share > 0.5 and (best is None or (title == name, share) > best):
            best, found = (title == name, share), number
    return found


def _covered(box: Box, above: list[Box]) -> bool:
    x, y = box[0] + box[2] // 2, box[1] + box[3] // 2
    return any(bx <= x < bx + w and by <= y < by + h for bx, by, w, h in above)


def _inner_names(nodes: Sequence[Node], parents: list[int | None]) -> dict[int, str]:
    """By node, the first words within it; a button's or row's label is a node of its own."""
    inner: dict[int, str] = {}
    for index, node in enumerate(nodes):
        words = _plain(node.get("text") or node["name"])
        if not words.strip() or node["role"] == "icon":
            continue
        for above in _ancestors(index, parents):
            if above in inner:
                break
            inner[above] = words
    return inner


def _name(node: Node, inner: str, box: Box | None, ancestors: list[Node]) -> str:
    own = _plain(node["name"]) or _plain(node.get("text")) or inner
    if not own and box is not None:
        for near in ancestors[:8]:
            around = _box(near)
            if around is not None and _area(around) > 8 * _area(box):
                break
            if own := _plain(near["name"]):
                break
    return own


def _plain(words: str | None) -> str:
    """On one line and bounded; U+FFFC stands for a part that is a node of its own."""
    line = " ".join((words or "")[: 4 * MAX_NAME].replace("\ufffc", " ").split())
    return line if len(line) <= MAX_NAME else line[: MAX_NAME - 1] + "…"


def _parents(nodes: Sequence[Node]) -> list[int | None]:
    path: list[int] = []
    parents: list[int | None] = []
    for index, node in enumerate(nodes):
        del path[node["depth"] :]
        parents.append(path[-1] if path else None)
        path.append(index)
    return parents


def _ancestors(index: int, parents: list[int | None]) -> Iterable[int]:
    above = parents[index]
    while above is not None:
        yield above
        above = parents[above]


def _box(node: Node) -> Box | None:
    """None where it has no place; toolkits say so with negative sizes."""
    box = node.get("box")
    if box is None or box[2] < 0 or box[3] < 0:
        return None
    return box[0], box[1], box[2], box[3]


def _common(a: Box, b: Box) -> Box | None:
    x, y = max(a[0], b[0]), max(a[1], b[1])
    w, h = min(a[0] + a[2], b[0] + b[2]) - x, min(a[1] + a[3], b[1] + b[3]) - y
    return (x, y, w, h) if w > 0 and h > 0 else None


def _around(a: Box, b: Box) -> Box:
    x, y = min(a[0], b[0]), min(a[1], b[1])
    return x, y, max(a[0] + a[2], b[0] + b[2]) - x, max(a[1] + a[3], b[1] + b[3]) - y


def _area(box: Box) -> int:
    return box[2] * box[3]
