"""Applications open with one plain window: no first-run dialog, no tip, no offer to recover."""

from __future__ import annotations

import time

from cua_gym.image.clause import Broken, Clause, Subject
from cua_gym.machine.desktop import Window, windows

__all__ = ["APPS"]

# Cold starts take up to half a minute under TCG, and several times that on a busy host.
OPEN_S = 240.0
CLOSE_S = 60.0
STILL_S = 3.0
POLL_S = 0.5


def _opens_clean(app: str, process: str, *, kind: str = "normal", killed: bool = False) -> Clause:
    """Start an application on the bare desktop; with ``killed``, once more after `kill -9`.

    Args:
        kind: the type that its one window has.
    """

    def look(subject: Subject) -> str:
        before = {window.id for window in windows(subject.machine.shell)}
        try:
            shown = _open(subject, app, before)
            if killed and len(shown) == 1:
                _kill(subject, process, before)
                shown = _open(subject, app, before)
        finally:
            _kill(subject, process, before)
        titles = ", ".join(f"{window.title!r} ({window.type})" for window in shown)
        if len(shown) != 1 or shown[0].type != kind:
            raise Broken(f"shows {titles}")
        return titles

    what = "even after it was killed" if killed else "one window, no dialog"
    return Clause(f"opens-clean/{app}", f"opens clean, {what}", look)


def _open(subject: Subject, app: str, before: set[int]) -> list[Window]:
    """Its windows once they are there and the screen has come to rest."""
    subject.run(f"setsid -f {app} > /dev/null 2>&1 < /dev/null", user=None)
    deadline = time.monotonic() + OPEN_S
    still_since = time.monotonic()
    frame = subject.machine.screen.grab().rgb
    while True:
        if time.monotonic() > deadline:
            raise Broken(f"no window at rest within {OPEN_S:g} s")
        time.sleep(POLL_S)
        now = subject.machine.screen.grab().rgb
        if (now != frame).any():
            frame, still_since = now, time.monotonic()
        elif time.monotonic() - still_since > STILL_S:
            shown = [w for w in windows(subject.machine.shell) if w.id not in before]
            if shown:
                return shown


def _kill(subject: Subject, process: str, before: set[int]) -> None:
    """End it the hard way, and wait until its windows are gone."""
    subject.run(f"pkill -KILL '{process}' || true", user=None)
    deadline = time.monotonic() + CLOSE_S
    while {window.id for window in windows(subject.machine.shell)} - before:
        if time.monotonic() > deadline:
            raise Broken(f"its windows stay after `pkill -KILL {process}`")
        time.sleep(POLL_S)


APPS = (
    _opens_clean("xfce4-terminal", "xfce4-terminal"),
    _opens_clean("mousepad", "mousepad"),
    _opens_clean("galculator", "galculator"),
    _opens_clean("ristretto", "ristretto"),
    _opens_clean("xfce4-settings-manager", "xfce4-settings", kind="dialog"),
    _opens_clean("chromium", "chromium", killed=True),
    _opens_clean("localc", "soffice|oosplash", killed=True),
    _opens_clean("lowriter", "soffice|oosplash"),
)
