"""What a Linux desktop says of itself: its windows, accessibility tree and clipboard.

All of it is asked of programs that the desktop account owns, so it is a claim, not a fact, and it
cannot be had while the account is frozen.
"""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cua_gym.errors import ActionError, MachineError
from cua_gym.machine.base import Completed, Shell
from cua_gym.turns import Stop

__all__ = [
    "DesktopSilent",
    "FilteredTree",
    "NotShown",
    "Window",
    "accessibility_tree",
    "clipboard",
    "filter_tree",
    "find",
    "set_clipboard",
    "wait_gone",
    "wait_idle",
    "wait_window",
    "windows",
]

QUERY_S = 60.0
CLIPBOARD_S = 10.0
# xclip goes on in the background as the owner, so its streams must not be the command's. What it
# said is shown by hand, since a stream it still holds would never end.
_SET_CLIPBOARD = """
said=$(mktemp) || exit 1
/usr/bin/xclip -selection clipboard -in -target UTF8_STRING >/dev/null 2>"$said"
code=$?
[ $code = 0 ] || cat "$said" >&2
rm -f "$said"
exit $code
"""


class DesktopSilent(MachineError):
    """The desktop's own programs gave no usable answer."""


class NotShown(MachineError):
    """A window or node did not appear in time; the message lists what there was."""


@dataclass(frozen=True, slots=True)
class FilteredTree:
    """Nodes in the tree's order, each with the name of its ``app``; and how many more fitted."""

    nodes: list[dict[str, Any]]
    left_out: int


@dataclass(frozen=True, slots=True)
class Window:
    """One window; geometry is of its content, in screen pixels.

    Attributes:
        app: the application's half of WM_CLASS.
        type: ``normal``, ``dialog``, ``dock``, ``desktop``, ...
    """

    id: int
    title: str
    app: str
    pid: int | None
    x: int
    y: int
    width: int
    height: int
    active: bool
    minimized: bool
    type: str


def windows(shell: Shell, stop: Stop | None = None) -> list[Window]:
    """All windows, bottom to top.

    Raises:
        DesktopSilent: the X server or window manager did not answer.
    """
    return [Window(**w) for w in _ask(shell, "windows", stop=stop)]


def wait_window(
    shell: Shell, title: str, timeout_s: float = 30.0, *, active: bool = False
) -> Window:
    """The topmost shown window whose title matches the regular expression ``title``.

    Args:
        active: it must have the keyboard too.

    Raises:
        NotShown: none appeared in time.
    """
    reply = _ask(shell, "wait_window", timeout_s, title=title, active=active, timeout_s=timeout_s)
    if "found" in reply:
        return Window(**reply["found"])
    raise NotShown(f"no window with a title like {title!r} in {timeout_s:g} s; {reply['seen']}")


def wait_gone(shell: Shell, title: str, timeout_s: float = 10.0) -> bool:
    """Whether, by the end of the time, no shown window's title matches any more."""
    gone: bool = _ask(shell, "wait_gone", timeout_s, title=title, timeout_s=timeout_s)
    return gone


def wait_idle(shell: Shell, timeout_s: float = 60.0, *, period_s: float = 1.0) -> bool:
    """Whether, by the end of the time, the desktop account's programs came to rest.

    Args:
        period_s: twice in a row they have to do next to nothing for so long.
    """
    idle: bool = _ask(shell, "wait_idle", timeout_s, timeout_s=timeout_s, period_s=period_s)
    return idle


def accessibility_tree(
    shell: Shell, app: str | None = None, stop: Stop | None = None
) -> list[dict[str, Any]]:
    """Shown nodes of all applications, depth first, or of those whose name contains ``app``.

    It takes a second or so per program, and 15 s and more for LibreOffice in an emulated guest.
    Each node has ``role``, ``name``, ``depth``, ``box`` (x, y, width, height in screen pixels),
    ``states`` and, where it has them, ``text`` and ``value``.
    """
    tree: list[dict[str, Any]] = _ask(
        shell, "tree", stop=stop, app=None if app is None else f"(?i){re.escape(app)}"
    )
    return tree


def find(
    shell: Shell,
    role: str | None,
    name: str,
    *,
    app: str | None = None,
    nth: int = 0,
    timeout_s: float = 60.0,
) -> dict[str, Any]:
    """A shown node, by exact role (None: any) and a regular expression for its name.

    Raises:
        NotShown: none appeared in time.
    """
    reply = _ask(
        shell, "find", timeout_s, role=role, name=name, app=app, nth=nth, timeout_s=timeout_s
    )
    if "found" in reply:
        node: dict[str, Any] = reply["found"]
        return node
    raise NotShown(f"no {role or 'node'} named like {name!r} in {timeout_s:g} s; {reply['seen']}")


def filter_tree(
    nodes: Sequence[Mapping[str, Any]],
    *,
    role: str | None = None,
    name: str | None = None,
    app: str | None = None,
    screen: tuple[int, int] | None = None,
    limit: int = 400,
    max_text: int = 300,
) -> FilteredTree:
    """The part of an `accessibility_tree` that was asked for, of a size that a model can read.

    Args:
        role: exactly this role.
        name: nodes whose name or text contains this, whatever the case. It is no regular
            expression: one from outside could take for ever.
        app: the same of the application's name.
        screen: (width, height); only nodes with a pixel on it, which leaves out the applications
            themselves and what was scrolled away.
        limit: at most so many nodes.
        max_text: names and texts are cut to so many characters, the last an ellipsis.
    """
    kept: list[dict[str, Any]] = []
    fitting = 0
    owner = ""
    for node in nodes:
        if node["depth"] == 0:
            owner = node["name"]
        if role is not None and node["role"] != role:
            continue
        if not _contains(owner, app) or not (
            _contains(node["name"], name) or _contains(node.get("text", ""), name)
        ):
            continue
        if screen is not None and not _on_screen(node.get("box"), screen):
            continue
        fitting += 1
        if len(kept) < limit:
            cut = {k: _cut(node[k], max_text) for k in ("name", "text") if k in node}
            kept.append({**node, **cut, "app": _cut(owner, max_text)})
    return FilteredTree(kept, fitting - len(kept))


def _contains(whole: str, part: str | None) -> bool:
    return part is None or part.casefold() in whole.casefold()


def _on_screen(box: Sequence[int] | None, screen: tuple[int, int]) -> bool:
    if box is None or min(box[2:]) <= 0:
        return False
    x, y, width, height = box
    return x < screen[0] and y < screen[1] and x + width > 0 and y + height > 0


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def clipboard(shell: Shell, stop: Stop | None = None) -> str | None:
    """Text of the clipboard, None when it is empty or holds no text.

    Raises:
        DesktopSilent: its owner did not hand it over in time, or it is too long to be read whole.
    """
    argv = ["/usr/bin/xclip", "-selection", "clipboard", "-o", "-t", "UTF8_STRING"]
    done = shell.run(argv, timeout_s=CLIPBOARD_S, stop=stop)
    if done.timed_out:
        raise DesktopSilent(f"the clipboard's owner gave no answer in {CLIPBOARD_S:g} s")
    if done.dropped:
        raise DesktopSilent(f"the clipboard holds more than {len(done.stdout)} bytes")
    if done.exit == 0:
        return done.text
    if b"not available" in done.stderr or b"no owner" in done.stderr.lower():
        return None
    raise _silent("clipboard", done)


def set_clipboard(shell: Shell, text: str, stop: Stop | None = None) -> None:
    """Put any Unicode on the clipboard, for every program of the desktop account to paste.

    Raises:
        ActionError: lone surrogates, which no program could take; the clipboard is as it was.
        DesktopSilent: the X server did not take it in time.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ActionError(f"text for the clipboard is no Unicode: {error}") from error
    argv = ["/bin/sh", "-c", _SET_CLIPBOARD]
    done = shell.run(argv, stdin=data, timeout_s=CLIPBOARD_S, stop=stop)
    if done.timed_out:
        raise DesktopSilent(f"the clipboard was not set in {CLIPBOARD_S:g} s")
    if done.exit != 0:
        raise _silent("clipboard", done)


def _ask(
    shell: Shell,
    operation: str,
    extra_s: float = 0.0,
    stop: Stop | None = None,
    **arguments: Any,
) -> Any:
    script = importlib.resources.files(__package__).joinpath("desktop_guest.py").read_bytes()
    argv = ["/usr/bin/python3", "-I", "-", operation, json.dumps(arguments)]
    done = shell.run(argv, stdin=script, timeout_s=QUERY_S + extra_s, stop=stop)
    if done.timed_out:
        raise DesktopSilent(f"the desktop gave no {operation} in {QUERY_S + extra_s:g} s")
    if done.exit != 0:
        raise _silent(operation, done)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise DesktopSilent(f"{operation} answered {done.stdout[:200]!r}: {error}") from error


def _silent(what: str, done: Completed) -> MachineError:
    error = done.stderr.decode(errors="replace").strip()[-500:]
    # What only root can install is the image's affair; all else the desktop account could cause.
    if done.exit in (126, 127) or "ModuleNotFoundError" in error:
        return MachineError(f"this image cannot tell its {what}: {error}")
    return DesktopSilent(f"the desktop gave no {what}: {error}")
