"""Runs inside a guest, as the desktop account: what the desktop says of itself, as JSON.

It is sent by standard input to the guest's own ``python3 -I`` and imports nothing of cua_gym.
Arguments: an operation and its JSON arguments. One line of JSON comes back. Operations that wait
poll in here, because starting an interpreter in an emulated guest costs more than the wait.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

MAX_NODES = 4000
MAX_CHILDREN = 300
MAX_DEPTH = 40
POLL_S = 0.2


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
        except error.BadWindow:
            continue
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


def wait_window(title: str, timeout_s: float) -> dict[str, Any]:
    """The topmost shown window whose title matches; or what there was instead."""
    end = time.monotonic() + timeout_s
    while True:
        seen = windows()
        for window in reversed(seen):
            if not window["minimized"] and re.search(title, window["title"]):
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


def _showing(node: Any) -> bool:
    from gi.repository import Atspi

    return bool(node.get_state_set().contains(Atspi.StateType.SHOWING))


def _children(node: Any) -> Iterator[Any]:
    for index in range(min(node.get_child_count(), MAX_CHILDREN)):
        child = node.get_child_at_index(index)
        if child is not None:
            yield child


def _applications() -> Iterator[Any]:
    import gi

    gi.require_version("Atspi", "2.0")
    from gi.repository import Atspi

    Atspi.init()
    # A program that hangs must not take the reader with it.
    Atspi.set_timeout(2000, 5000)
    yield from _children(Atspi.get_desktop(0))


def _walk(app: Any) -> Iterator[tuple[Any, int]]:
    """Shown nodes of one application, depth first, with their depth."""
    from gi.repository import GLib

    stack = [(app, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if depth >= MAX_DEPTH:
            continue
        try:
            below = [(c, depth + 1) for c in _children(node) if depth == 0 or _showing(c)]
        except GLib.Error:
            continue  # it went away while it was being read
        stack.extend(reversed(below))


def _described(node: Any, depth: int) -> dict[str, Any]:
    from gi.repository import Atspi, GLib

    record: dict[str, Any] = {
        "role": node.get_role_name(),
        "name": node.get_name() or "",
        "depth": depth,
    }
    try:
        box = node.get_extents(Atspi.CoordType.SCREEN)
        record["box"] = [box.x, box.y, box.width, box.height]
    except GLib.Error:
        record["box"] = None
    wanted = ("focused", "checked", "selected", "editable", "sensitive", "expanded")
    states = node.get_state_set()
    record["states"] = [s for s in wanted if states.contains(getattr(Atspi.StateType, s.upper()))]
    try:
        if node.is_text() and node.get_character_count() <= 10_000:
            record["text"] = Atspi.Text.get_text(node, 0, -1)
        if node.is_value():
            record["value"] = Atspi.Value.get_current_value(node)
    except GLib.Error:
        pass  # a node without text is still a node
    return record


def tree() -> list[dict[str, Any]]:
    """All shown nodes of all applications, depth first; ``depth`` gives the nesting."""
    from gi.repository import GLib

    result: list[dict[str, Any]] = []
    for app in _applications():
        try:
            for node, depth in _walk(app):
                result.append(_described(node, depth))
                if len(result) == MAX_NODES:
                    return result
        except GLib.Error:
            continue
    return result


def find(
    role: str | None, name: str, app: str | None, nth: int, timeout_s: float
) -> dict[str, Any]:
    """The nth shown node whose role equals and whose name matches; or what names there were."""
    from gi.repository import GLib

    end = time.monotonic() + timeout_s
    while True:
        seen: list[str] = []
        left = nth
        for root in _applications():
            try:
                if app is not None and not re.search(app, root.get_name() or ""):
                    continue
                for node, depth in _walk(root):
                    if role is not None and node.get_role_name() != role:
                        continue
                    label = node.get_name() or ""
                    seen.append(f"{node.get_role_name()} {label!r}")
                    if not re.search(name, label):
                        continue
                    record = _described(node, depth)
                    box = record["box"]
                    if box is None or box[2] <= 0 or box[3] <= 0:
                        continue
                    if left == 0:
                        return {"found": record}
                    left -= 1
            except GLib.Error:
                continue
        if time.monotonic() >= end:
            return {"seen": [s for s in seen if s.strip()][:60]}
        time.sleep(POLL_S)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "windows": windows,
    "wait_window": wait_window,
    "wait_gone": wait_gone,
    "tree": tree,
    "find": find,
}

if __name__ == "__main__":
    print(json.dumps(OPERATIONS[sys.argv[1]](**json.loads(sys.argv[2]))))
