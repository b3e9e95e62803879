"""The X side of the guest's daemon: keymap, keys, clipboards, wheel, readiness.

One thread owns the X connection. It may be frozen with the desktop or die with X: an overdue job
is answered by `ops.Ops`, which cuts the connection, and the next job makes a new one.
"""

from __future__ import annotations

import os
import pwd
import select
import socket
import stat
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xkb
from selection import Selections
from strike import Striker
from Xlib import X, Xatom
from Xlib import error as xerror
from Xlib.display import Display
from Xlib.ext import xtest

POLL_S = 0.003


class Job:
    """One request for X, answered once: by the desk or by the deadline."""

    def __init__(self, name: str, args: dict[str, Any], deadline: float) -> None:
        self.name = name
        self.args = args
        self.deadline = deadline
        self.done: Callable[[], None] = lambda: None
        self.result: dict[str, Any] | None = None
        self.error = ""
        self.over = False

    def succeed(self, result: dict[str, Any]) -> None:
        """Answer with ``result`` unless the deadline was first."""
        if not self.over:
            self.result, self.over = result, True
            self.done()

    def fail(self, error: str) -> None:
        """Answer with an error unless answered already."""
        if not self.over:
            self.error, self.over = error, True
            self.done()


class Desk:
    """Runs jobs one after the other and serves the selections that it owns in between."""

    def __init__(self, display: str, uid: int) -> None:
        self._name = display
        self._uid = uid
        self._display: Any = None
        self._selections: Selections | None = None
        self._striker: Striker | None = None
        self._jobs: deque[Job] = deque()
        self._current: Job | None = None
        self._wake_read, self._wake = os.pipe()
        os.set_blocking(self._wake_read, False)
        threading.Thread(target=self._run, name="desk", daemon=True).start()

    def submit(self, job: Job) -> None:
        """Queue a job; ``job.done`` is called on the desk's thread."""
        self._jobs.append(job)
        os.write(self._wake, b"x")

    def interrupt(self, job: Job) -> None:
        """Cut the connection on which ``job`` hangs, if it is the running one."""
        display = self._display
        if self._current is job and display is not None:
            try:
                display.display.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed meanwhile

    def _run(self) -> None:
        while True:
            # The boundary of the thread: whatever a broken or hostile X client or server causes,
            # the request gets an answer and the daemon lives.
            try:
                self._serve_until_job()
                job = self._current = self._jobs.popleft()
                if not job.over:
                    job.succeed(JOBS[job.name](self, **job.args))
            except (ValueError, TypeError) as error:
                self._fail(f"{type(error).__name__}: {error}")
            except Exception as error:
                self._fail(f"X display {self._name}: {type(error).__name__}: {error}")
                self._disconnect()
            finally:
                self._current = None

    def _fail(self, error: str) -> None:
        if self._current is not None:
            self._current.fail(error)
        else:
            sys.stderr.write(f"cua-guestd: {error}\n")

    def _serve_until_job(self) -> None:
        while not self._jobs:
            self.pump(None)
        try:
            os.read(self._wake_read, 4096)
        except BlockingIOError:
            pass

    def pump(self, timeout_s: float | None) -> None:
        """Handle X events that are there, or wait for some (or for a new job when idle)."""
        if self._display is not None and self._selections is not None:
            # Xlib reads events while it flushes: only then does an empty queue mean silence.
            self._display.flush()
            if self._display.pending_events():
                while self._display.pending_events():
                    event = self._display.next_event()
                    self._selections.handle(event)
                    self._striker.handle(event)
                return
        watched = [] if self._display is None else [self._display.fileno()]
        if self._current is None:
            watched.append(self._wake_read)
        select.select(watched, [], [], timeout_s)

    def _connect(self) -> Any:
        if self._display is None:
            self._authority()
            display = Display(self._name)
            display.set_error_handler(lambda *_: None)  # a window that vanished meanwhile
            self._selections = Selections(display, self.pump)
            self._striker = Striker(display, self.pump)
            self._display = display
        return self._display

    def _disconnect(self) -> None:
        display, self._display, self._selections = self._display, None, None
        if display is not None:
            try:
                display.display.socket.close()
            except OSError:
                pass

    def _authority(self) -> None:
        """Give Xlib a copy of the account's cookie file: the account could put a FIFO there."""
        home = pwd.getpwuid(self._uid).pw_dir
        folder = os.environ.get("RUNTIME_DIRECTORY", tempfile.gettempdir())
        try:
            source = os.open(f"{home}/.Xauthority", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            os.environ["XAUTHORITY"] = "/dev/null"
            return
        try:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                raise ValueError(f"{home}/.Xauthority is not a regular file")
            cookies = os.read(source, 65536)
        finally:
            os.close(source)
        number, path = tempfile.mkstemp(prefix="xauth-", dir=folder)
        with os.fdopen(number, "wb") as copy:
            copy.write(cookies)
        previous, os.environ["XAUTHORITY"] = os.environ.get("XAUTHORITY", ""), path
        if Path(previous).name.startswith("xauth-"):
            Path(previous).unlink(missing_ok=True)

    # ------------------------------------------------------------------ jobs

    def keymap(self) -> dict[str, Any]:
        """`xkb.keymap` of this display."""
        return xkb.keymap(self._connect())

    def keys(self, down: int | None = None, wait_s: float = 5.0) -> dict[str, Any]:
        """Wait until X has seen keycode ``down`` go down, or, without one, every key up."""
        display = self._connect()
        end = time.monotonic() + float(wait_s)
        while True:
            held = _held(display)
            met = not held if down is None else down in held
            if met or time.monotonic() >= end or self._overdue():
                return {"met": met, "down": held}
            time.sleep(POLL_S)

    def keys_up(self) -> dict[str, Any]:
        """Release what X believes is down; returns what was."""
        display = self._connect()
        held = _held(display)
        for code in held:
            xtest.fake_input(display, X.KeyRelease, code)
        display.sync()
        return {"down": held}

    def scroll(self, dx: int) -> dict[str, Any]:
        """Turn the wheel sideways: X's buttons 6 (left) and 7 (right), one click a notch."""
        if not isinstance(dx, int) or abs(dx) > 1000:
            raise ValueError(f"dx is a number of notches, not {dx!r}")
        display = self._connect()
        for _ in range(abs(dx)):
            xtest.fake_input(display, X.ButtonPress, 7 if dx > 0 else 6)
            xtest.fake_input(display, X.ButtonRelease, 7 if dx > 0 else 6)
        display.sync()
        return {}

    def clipboard_get(self, selection: str = "CLIPBOARD") -> dict[str, Any]:
        """The text of a selection, or null."""
        self._connect()
        assert self._selections is not None
        return {"text": self._selections.text(_selection(selection))}

    def clipboard_set(self, text: str, selection: str = "CLIPBOARD") -> dict[str, Any]:
        """Hold ``text`` as a selection until someone else takes it."""
        if not isinstance(text, str):
            raise TypeError("text is a string")
        display = self._connect()
        assert self._selections is not None
        self._selections.own(_selection(selection), text)
        display.sync()
        return {}

    def strike(self, keys: list[str | list[int]]) -> dict[str, Any]:
        """Strike keys in order, by XTEST: see `strike.Striker`."""
        for item in keys:
            good = isinstance(item, str) and len(item) == 1
            if not good and not (isinstance(item, list) and all(8 <= c <= 255 for c in item)):
                raise ValueError(f"a key is a character or a list of keycodes, not {item!r}")
        display = self._connect()
        assert self._striker is not None
        focus = display.get_input_focus().focus
        self._striker.strike(keys, None if focus in (X.NONE, X.PointerRoot) else focus)
        return {}

    def ready(self, windows: tuple[str, ...] = ("desktop", "dock")) -> dict[str, Any]:
        """Is the desktop up: window manager, and viewable windows of these EWMH types?"""
        display = self._connect()
        root = display.screen().root
        if not root.get_full_property(display.get_atom("_NET_SUPPORTING_WM_CHECK"), Xatom.WINDOW):
            return {"ready": False, "waiting_for": "window manager"}
        listed = root.get_full_property(display.get_atom("_NET_CLIENT_LIST"), Xatom.WINDOW)
        kind = display.get_atom("_NET_WM_WINDOW_TYPE")
        seen = set()
        for number in listed.value if listed else ():
            window = display.create_resource_object("window", number)
            try:
                types = window.get_full_property(kind, Xatom.ATOM)
                if types and window.get_attributes().map_state == X.IsViewable:
                    seen.update(types.value)
            except xerror.XError:
                continue  # gone since it was listed
        for name in windows:
            if display.get_atom(f"_NET_WM_WINDOW_TYPE_{name.upper()}") not in seen:
                return {"ready": False, "waiting_for": name}
        return {"ready": True}

    def _overdue(self) -> bool:
        return self._current is not None and self._current.over


def _held(display: Any) -> list[int]:
    bits = display.query_keymap()
    return [i * 8 + b for i, byte in enumerate(bits) for b in range(8) if byte >> b & 1]


def _selection(name: str) -> str:
    if name not in ("CLIPBOARD", "PRIMARY"):
        raise ValueError(f"a selection is CLIPBOARD or PRIMARY, not {name!r}")
    return name


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "keymap": Desk.keymap,
    "keys": Desk.keys,
    "keys_up": Desk.keys_up,
    "scroll": Desk.scroll,
    "clipboard_get": Desk.clipboard_get,
    "clipboard_set": Desk.clipboard_set,
    "strike": Desk.strike,
    "ready": Desk.ready,
}
