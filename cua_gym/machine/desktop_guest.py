"""Runs inside a guest, as the desktop account: what the desktop says of itself, as JSON.

It is sent by standard input to the guest's own ``python3 -I`` and imports nothing of cua_gym.
Arguments: an operation and its JSON arguments. One line of JSON comes back. Operations that wait
poll in here, because starting an interpreter in an emulated guest costs more than the wait.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any

MAX_NODES = 4000
MAX_CHILDREN = 300
MAX_DEPTH = 40
MAX_TEXT = 10_000
POLL_S = 0.2
IDLE_SHARE = 0.1


def windows() -> list[dict[str, Any]]:
    """Windows that the window manager lists, bottom to top; geometry is of the content."""
    from Xlib import X, Xatom, display, error

    shown = display.Display()
    root = shown.screen().root

    def prop(window: Any, name: str, kind: int = X.AnyPropertyType) -> Any:
        found = window.get_full_property(shown.intern_atom(name), kind)
        return None if found is None else found.value

    active = prop(root, "_NET_ACTIVE_WINDOW")
    result = []
    ids = prop(root, "_NET_CLIENT_LIST_STACKING")
    for number in () if ids is None else ids:
        window = shown.create_resource_object("window", int(number))
        try:
            size = window.get_geometry()
            at = root.translate_coords(window, 0, 0)
            title = prop(window, "_NET_WM_NAME") or prop(window, "WM_NAME") or b""
            kind = window.get_wm_class() or ("", "")
            states = prop(window, "_NET_WM_STATE", Xatom.ATOM)
            names = [shown.get_atom_name(s) for s in (() if states is None else states)]
            types = prop(window, "_NET_WM_WINDOW_TYPE", Xatom.ATOM)
            type_names = [shown.get_atom_name(t) for t in (() if types is None else types)]
            pid = prop(window, "_NET_WM_PID")
        except error.XError:
            continue  # it was closed while it was being read
        result.append(
            {
                "id": int(number),
                "title": title.decode("utf-8", "replace") if isinstance(title, bytes) else title,
                "app": kind[1],
                "pid": int(pid[0]) if pid is not None and len(pid) else None,
                "x": at.x,
                "y": at.y,
                "width": size.width,
                "height": size.height,
                "active": active is not None and len(active) > 0 and active[0] == number,
                "minimized": "_NET_WM_STATE_HIDDEN" in names,
                "type": type_names[0].rsplit("_", 1)[-1].lower() if type_names else "normal",
            }
        )
    shown.close()
    return result


def wait_window(title: str, active: bool, timeout_s: float) -> dict[str, Any]:
    """The topmost shown window whose title matches, with the focus if ``active``; or what is."""
    end = time.monotonic() + timeout_s
    while True:
        seen = windows()
        for window in reversed(seen):
            fits = not window["minimized"] and re.search(title, window["title"])
            if fits and (window["active"] or not active):
                return {"found": window}
        if time.monotonic() >= end:
            return {"seen": [w["title"] for w in seen]}
        time.sleep(POLL_S)


def wait_gone(title: str, timeout_s: float) -> bool:
    """Whether no shown window has such a title any more, by the end of the time."""
    end = time.monotonic() + timeout_s
    while any(re.search(title, w["title"]) and not w["minimized"] for w in windows()):
        if time.monotonic() >= end:
            return False
        time.sleep(POLL_S)
    return True


def _busy_ticks() -> tuple[int, bool]:
    """Processor time of this account's processes; whether one waits for the disk or its turn."""
    ticks, waiting = 0, False
    own = os.getpid()
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal() or int(entry.name) == own:
            continue
        try:
            if entry.stat().st_uid != os.getuid():
                continue
            with open(f"/proc/{entry.name}/stat") as file:  # noqa: PTH123 - a guest's plain script
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # it ended
        ticks += int(fields[11]) + int(fields[12])
        waiting = waiting or fields[0] in "DR"
    return ticks, waiting


def wait_idle(timeout_s: float, period_s: float) -> bool:
    """Whether this account's programs came to rest: two periods in a row with next to no work.

    A window is mapped, and stands still, long before a big program on a slow machine is ready.
    """
    end = time.monotonic() + timeout_s
    quiet = 0
    before, _ = _busy_ticks()
    while quiet < 2:
        if time.monotonic() >= end:
            return False
        time.sleep(period_s)
        after, waiting = _busy_ticks()
        allowed = IDLE_SHARE * period_s * os.sysconf("SC_CLK_TCK")
        quiet = quiet + 1 if after - before <= allowed and not waiting else 0
        before = after
    return True


# Bits of AT-SPI's state sets (atspi-constants.h).
_STATES = {
    "checked": 4,
    "editable": 7,
    "expanded": 10,
    "focused": 12,
    "selectable": 22,
    "selected": 23,
    "sensitive": 24,
}
_SHOWING = 25
_A11Y = "org.a11y.atspi."
_PROPERTIES = "org.freedesktop.DBus.Properties"

Reference = tuple[str, str]


class Bus:
    """The accessibility bus, spoken to directly and in batches.

    libatspi asks for one thing at a time: 25 s for 130 nodes in an emulated guest, three times
    as long as this.
    """

    def __init__(self) -> None:
        import gi

        gi.require_version("Gio", "2.0")
        from gi.repository import Gio, GLib

        self._glib = GLib
        self._gio = Gio
        session = Gio.bus_get_sync(Gio.BusType.SESSION)
        name = ("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress")
        address = session.call_sync(*name, None, None, 0, 5000, None).unpack()[0]
        kind = Gio.DBusConnectionFlags
        flags = kind.AUTHENTICATION_CLIENT | kind.MESSAGE_BUS_CONNECTION
        self._bus = Gio.DBusConnection.new_for_address_sync(address, flags, None, None)

    def ask(
        self,
        calls: list[tuple[Reference, str, str, str, tuple[Any, ...]]],
        patience_ms: int = 30_000,
    ) -> list[Any]:
        """Replies to many calls (node, interface, method, signature, arguments), made at once.

        None stands for a node that went away or whose program hangs. A busy one gets a long time:
        the calls of a whole level wait in its queue, and LibreOffice takes 15 s for all.
        """
        replies: list[Any] = [None] * len(calls)
        left = len(calls)

        def done(bus: Any, result: Any, number: int) -> None:
            nonlocal left
            left -= 1
            try:
                replies[number] = bus.call_finish(result).unpack()
            except self._glib.Error:
                pass  # it stays None

        for number, ((name, path), interface, method, signature, arguments) in enumerate(calls):
            body = self._glib.Variant(signature, arguments) if signature else None
            self._bus.call(
                name, path, interface, method, body, None, 0, patience_ms, None, done, number
            )  # fmt: skip
        context = self._glib.MainContext.default()
        while left:
            context.iteration(True)
        return replies

    def applications(self) -> list[Reference]:
        """Roots of all applications."""
        registry = (_A11Y + "Registry", "/org/a11y/atspi/accessible/root")
        reply = self.ask([(registry, _A11Y + "Accessible", "GetChildren", "", ())])[0]
        return [] if reply is None else list(reply[0])


def _walk(bus: Bus, app: str | None) -> list[dict[str, Any]]:
    """Shown nodes of the applications whose name matches, depth first."""
    accessible = _A11Y + "Accessible"
    roots: list[dict[str, Any]] = []
    level: list[tuple[Reference, dict[str, Any] | None]] = [
        (reference, None) for reference in bus.applications()
    ]
    count = 0
    while level and count < MAX_NODES:
        # At its root a program that hangs is told from a busy one.
        patience_ms = 5000 if level[0][1] is None else 30_000
        states = bus.ask([(r, accessible, "GetState", "", ()) for r, _ in level], patience_ms)
        showing = []
        asked: list[Any] = []
        for (reference, parent), state in zip(level, states, strict=True):
            bits = 0 if state is None else sum(word << (32 * n) for n, word in enumerate(state[0]))
            if state is not None and (parent is None or bits >> _SHOWING & 1):
                showing.append((reference, parent, bits))
                asked.append((reference, _PROPERTIES, "GetAll", "(s)", (accessible,)))
                asked.append((reference, accessible, "GetRoleName", "", ()))
        replies = bus.ask(asked, patience_ms)
        shown = []
        for number, (reference, parent, bits) in enumerate(showing):
            depth = 0 if parent is None else parent["depth"] + 1
            properties, role = replies[2 * number : 2 * number + 2]
            if properties is None or role is None:
                continue
            name = str(properties[0].get("Name", ""))
            if depth == 0 and app is not None and not re.search(app, name):
                continue
            node = {
                "role": role[0],
                "name": name,
                "depth": depth,
                "states": [s for s, bit in _STATES.items() if bits >> bit & 1],
                "reference": reference,
                "parent": parent,
                "children": [],
            }
            (roots if parent is None else parent["children"]).append(node)
            count += 1
            if depth < MAX_DEPTH:
                shown.append((node, int(properties[0].get("ChildCount", 0))))
        level = _below(bus, shown)
    flat: list[dict[str, Any]] = []
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        flat.append(node)
        stack.extend(reversed(node.pop("children")))
    return flat[:MAX_NODES]


def _below(
    bus: Bus, shown: list[tuple[dict[str, Any], int]]
) -> list[tuple[Reference, dict[str, Any] | None]]:
    """The next level; of a spreadsheet's billion cells only the first few hundred."""
    asked: list[Any] = []
    owners = []
    for node, children in shown:
        if 0 < children <= MAX_CHILDREN:
            asked.append((node["reference"], _A11Y + "Accessible", "GetChildren", "", ()))
            owners.append(node)
        elif children > MAX_CHILDREN:
            for index in range(MAX_CHILDREN):
                arguments = (node["reference"], _A11Y + "Accessible", "GetChildAtIndex", "(i)")
                asked.append((*arguments, (index,)))
                owners.append(node)
    level: list[tuple[Reference, dict[str, Any] | None]] = []
    for node, reply in zip(owners, bus.ask(asked), strict=True):
        if reply is None:
            continue
        references = reply[0] if isinstance(reply[0], list) else [reply[0]]
        level += [((r[0], r[1]), node) for r in references]
    return level


def _add_boxes(bus: Bus, nodes: list[dict[str, Any]]) -> None:
    """Where each is, in screen pixels."""
    extents = (_A11Y + "Component", "GetExtents", "(u)", (0,))
    needed: dict[int, dict[str, Any]] = {}
    for node in nodes:
        above: dict[str, Any] | None = node
        while above is not None and id(above) not in needed:
            needed[id(above)] = above
            above = above["parent"]
    lineage = sorted(needed.values(), key=lambda n: n["depth"])
    asked = [(n["reference"], *extents) for n in lineage]
    for node, reply in zip(lineage, bus.ask(asked), strict=True):
        node["box"] = None if reply is None else list(reply[0])
    straighten(lineage)


def straighten(nodes: list[dict[str, Any]]) -> None:
    """Put right the boxes of LibreOffice's own widgets, in place; parents come before children.

    They come in a root pane that forgets the menu bar above it (27 pixels): it has its parent's
    size and another place. GTK widgets within are right again, and show it the same way.
    """
    shifts: dict[int, tuple[int, int]] = {}
    true: list[tuple[dict[str, Any], list[int]]] = []
    for node in nodes:
        parent, box = node["parent"], node["box"]
        dx, dy = shifts.get(id(parent), (0, 0))
        around = None if parent is None else parent["box"]
        if box and around and box[2:] == around[2:]:
            off = (box[0] - around[0], box[1] - around[1])
            if node["role"] == "root pane":
                dx, dy = dx - off[0], dy - off[1]
            elif off == (dx, dy):
                dx, dy = 0, 0
        shifts[id(node)] = (dx, dy)
        if box and (dx or dy) and min(box[2:]) >= 0:
            true.append((node, [box[0] + dx, box[1] + dy, *box[2:]]))
    for node, box in true:  # only now, since children are compared with what was said
        node["box"] = box


def _add_contents(bus: Bus, nodes: list[dict[str, Any]]) -> None:
    """Text and value, of those that have them."""
    asked = [(n["reference"], _A11Y + "Accessible", "GetInterfaces", "", ()) for n in nodes]
    replies = bus.ask(asked)
    for interface, key, call in (
        ("Text", "text", (_A11Y + "Text", "GetText", "(ii)", (0, MAX_TEXT))),
        ("Value", "value", (_PROPERTIES, "Get", "(ss)", (_A11Y + "Value", "CurrentValue"))),
    ):
        have = [
            node
            for node, reply in zip(nodes, replies, strict=True)
            if reply is not None and _A11Y + interface in reply[0]
        ]
        for node, reply in zip(have, bus.ask([(n["reference"], *call) for n in have]), strict=True):
            if reply is not None:
                node[key] = reply[0]


def tree(app: str | None) -> list[dict[str, Any]]:
    """Shown nodes of the applications whose name matches, depth first; ``depth`` nests them."""
    bus = Bus()
    nodes = _walk(bus, app)
    _add_boxes(bus, nodes)
    _add_contents(bus, nodes)
    return [_said(node) for node in nodes]


def _said(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in ("reference", "parent")}


def find(
    role: str | None, name: str, app: str | None, nth: int, timeout_s: float
) -> dict[str, Any]:
    """The nth shown node whose role equals and whose name matches; or what names there were."""
    bus = Bus()
    end = time.monotonic() + timeout_s
    while True:
        nodes = [n for n in _walk(bus, app) if role is None or n["role"] == role]
        fits = [n for n in nodes if re.search(name, n["name"])]
        _add_boxes(bus, fits)
        fits = [n for n in fits if n["box"] is not None and min(n["box"][2:]) > 0]
        if nth < len(fits):
            return {"found": _said(fits[nth])}
        if time.monotonic() >= end:
            return {"seen": [f"{n['role']} {n['name']!r}" for n in nodes if n["name"]][:60]}
        time.sleep(POLL_S)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "windows": windows,
    "wait_window": wait_window,
    "wait_gone": wait_gone,
    "wait_idle": wait_idle,
    "tree": tree,
    "find": find,
}

if __name__ == "__main__":
    print(json.dumps(OPERATIONS[sys.argv[1]](**json.loads(sys.argv[2]))))
