"""What a Linux desktop says of itself: its windows, accessibility tree and clipboard.

All of it is asked of programs that the desktop account owns, so it is a claim, not a fact, and it
cannot be had while the account is frozen.
"""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import dataclass
from typing import Any

from cua_gym.errors import MachineError
from cua_gym.machine.base import Completed, Shell

__all__ = [
    "DesktopSilent",
    "NotShown",
    "Window",
    "accessibility_tree",
    "clipboard",
    "find",
    "wait_gone",
    "wait_idle",
    "wait_window",
    "windows",
]

QUERY_S = 60.0
CLIPBOARD_S = 10.0


class DesktopSilent(MachineError):
    """The desktop's own programs gave no usable answer."""


class NotShown(MachineError):
    """A window or node did not appear in time; the message lists what there was."""


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


def windows(shell: Shell) -> list[Window]:
    """All windows, bottom to top.

    Raises:
        DesktopSilent: the X server or window manager did not answer.
    """
    return [Window(**w) for w in _ask(shell, "windows")]


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


def wait_idle(shell: Shell, timeout_s: float = 60.0) -> bool:
    """Whether, by the end of the time, the desktop account's programs came to rest."""
    idle: bool = _ask(shell, "wait_idle", timeout_s, timeout_s=timeout_s)
    return idle


def accessibility_tree(shell: Shell) -> list[dict[str, Any]]:
    """Shown nodes of all applications, depth first.

    Each has ``role``, ``name``, ``depth``, ``box`` (x, y, width, height in screen pixels),
    ``states`` and, where it has them, ``text`` and ``value``.
    """
    tree: list[dict[str, Any]] = _ask(shell, "tree")
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


def clipboard(shell: Shell) -> str | None:
    """Text of the clipboard, None when it is empty or holds no text.

    Raises:
        DesktopSilent: its owner did not hand it over in time.
    """
    argv = ["/usr/bin/xclip", "-selection", "clipboard", "-o", "-t", "UTF8_STRING"]
    done = shell.run(argv, timeout_s=CLIPBOARD_S)
    if done.timed_out:
        raise DesktopSilent(f"the clipboard's owner gave no answer in {CLIPBOARD_S:g} s")
    if done.exit == 0:
        return done.text
    if b"not available" in done.stderr or b"no owner" in done.stderr.lower():
        return None
    raise _silent("clipboard", done)


def _ask(shell: Shell, operation: str, extra_s: float = 0.0, **arguments: Any) -> Any:
    script = importlib.resources.files(__package__).joinpath("desktop_guest.py").read_bytes()
    argv = ["/usr/bin/python3", "-I", "-", operation, json.dumps(arguments)]
    done = shell.run(argv, stdin=script, timeout_s=QUERY_S + extra_s)
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
