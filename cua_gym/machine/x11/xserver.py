"""Two connections to one X server: one that hears of changes, one that looks and acts.

Responsible for the X protocol alone: damage and pointer shape as events, pixels by shared memory,
XTEST. What they mean for a screen or a hand is `screen.py`'s and `input.py`'s. Wanted by nobody but
them, and every fault of a connection is a `MachineLost`.
"""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xcffib
import xcffib.damage
import xcffib.shm
import xcffib.xfixes
import xcffib.xproto as x
import xcffib.xtest

from cua_gym.errors import MachineLost

__all__ = ["Cursor", "Eye", "Watcher"]

_GROUPS = 0x6000  # X's bits for the keyboard's layout group
_MORE = 0x80  # in a damage event's level: another follows at once
_NO_ROWS = (1 << 15, 0)
_NO_OPERATION = b"\x7f\x00\x02\x00"
_ZPIXMAP = 2
_ALL_PLANES = 0xFFFFFFFF
_MOTION, _BUTTON_PRESS, _KEY_PRESS = 6, 4, 2

Bgrx = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Cursor:
    """The pointer's shape: premultiplied ``(height, width, 4)`` BGRA, and its hot spot."""

    pixels: Bgrx
    hot: tuple[int, int]


@contextmanager
def _typed() -> Iterator[None]:
    try:
        yield
    except (xcffib.XcffibException, xcffib.Error, OSError) as error:
        raise MachineLost(f"the X server is gone: {type(error).__name__} {error}") from error


class _Connection(xcffib.Connection):  # type: ignore[misc]  # xcffib has no types
    """A connection that, once it is quick, is asked for its health where it is in doubt only.

    xcffib asks around each call, and each question gives Python's lock away: with eight desktops a
    click may then wait 27 times for the other seven.
    """

    quick = False

    def __init__(self, sock: socket.socket) -> None:
        """Take a connected socket over, which is closed also if this fails."""
        try:
            super().__init__(fd=sock.detach())
        except BaseException:
            self.disconnect()
            raise

    @property
    def lost(self) -> bool:
        """Whether it is of no use any more."""
        return self._conn is None or self.has_error() > 0

    def invalid(self) -> None:
        """Raise if it is lost; xcffib calls it around each call."""
        if self._conn is None if self.quick else self.lost:
            raise xcffib.ConnectionException(xcffib.XCB_CONN_ERROR)


class Watcher:
    """Tells of every change of the screen, in a thread of its own, until the server is gone.

    Args:
        changed: called after something was drawn, with the rows from and to which.
        reshaped: called after the pointer got another shape.
        lost: called once, at the end.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        changed: Callable[[int, int], None],
        reshaped: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self._calls = (changed, reshaped, lost)
        self._sock = sock.dup()
        with _typed(), ExitStack() as failed:
            failed.callback(self._sock.close)
            self._connection = connection = _Connection(sock)
            failed.callback(connection.disconnect)
            root = connection.setup.roots[0].root
            self._fixes = connection(xcffib.xfixes.key)
            self._fixes.QueryVersion(4, 0).reply()
            self._damage = connection(xcffib.damage.key)
            self._damage.QueryVersion(1, 1).reply()
            # Every rectangle as it is drawn, so that only its rows need be looked at again.
            level = xcffib.damage.ReportLevel.RawRectangles
            number = connection.generate_id()
            self._damage.Create(number, root, level, is_checked=True).check()
            self._fixes.SelectCursorInput(root, 1, is_checked=True).check()
            failed.pop_all()
        self._thread = threading.Thread(target=self._run, name="x11-watcher", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        changed, reshaped, lost = self._calls
        first, last = _NO_ROWS
        try:
            while True:
                event = self._connection.wait_for_event()
                if isinstance(event, xcffib.damage.NotifyEvent):
                    area = event.area
                    first, last = min(first, area.y), max(last, area.y + area.height)
                    if not event.level & _MORE:
                        changed(first, last)
                        first, last = _NO_ROWS
                elif isinstance(event, xcffib.xfixes.CursorNotifyEvent):
                    reshaped()
        except (xcffib.XcffibException, xcffib.Error, OSError):
            lost()
        finally:
            self._connection.disconnect()

    def close(self) -> None:
        """End the thread and the connection. Idempotent."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server closed it first
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._sock.close()


class Eye:
    """Pixels, pointer and XTEST over one connection; its calls take turns."""

    def __init__(self, sock: socket.socket) -> None:
        self._lock = threading.Lock()
        with _typed(), ExitStack() as failed:
            self._connection = connection = _Connection(sock)
            failed.callback(connection.disconnect)
            screen = connection.setup.roots[0]
            self._root = screen.root
            self.size = (screen.width_in_pixels, screen.height_in_pixels)
            self._fixes = connection(xcffib.xfixes.key)
            self._fixes.QueryVersion(4, 0).reply()
            self._test = connection(xcffib.xtest.key)
            self._shm = connection(xcffib.shm.key)
            self._shm.QueryVersion().reply()
            self._attach()
            failed.pop_all()
        self._connection.quick = True  # a lost one answers nothing, which is an error too
        self._atoms: dict[str, int] = {}
        self._mappings = 0

    def _attach(self) -> None:
        """Share memory of ours with the server.

        xcffib sends no descriptors. The server gives a request the next descriptor that came with
        any byte so far, and an idle connection is a plain socket: so the header of a NoOperation
        of two words goes out here, the descriptor with it, and what xcffib sends next, a
        NoOperation of one word, is its second word. Both ends have counted one request.
        """
        width, height = self.size
        fd = os.memfd_create("cua-gym-screen", os.MFD_CLOEXEC)
        try:
            os.ftruncate(fd, width * height * 4)
            self._memory = mmap.mmap(fd, width * height * 4, prot=mmap.PROT_READ)
            self._connection.flush()
            sock = socket.socket(fileno=self._connection.get_file_descriptor())
            try:
                socket.send_fds(sock, [_NO_OPERATION], [fd])
            finally:
                sock.detach()  # it is xcb's
        finally:
            os.close(fd)
        self._connection.core.NoOperation()
        self._segment = self._connection.generate_id()
        self._shm.AttachFd(self._segment, False, is_checked=True).check()
        self._pixels: Bgrx = np.frombuffer(self._memory, np.uint8).reshape(height, width, 4)

    def look(self, first: int, last: int) -> tuple[Bgrx, tuple[int, int]]:
        """The pixels of some rows of now, valid until the next look, and where the pointer is."""
        width = self.size[0]
        with self._lock, _typed():
            pointer = self._connection.core.QueryPointer(self._root)
            if first < last:
                self._shm.GetImage(
                    self._root, 0, first, width, last - first, _ALL_PLANES, _ZPIXMAP,
                    self._segment, first * width * 4,
                ).reply()  # fmt: skip
            at = pointer.reply()
        return self._pixels[first:last], (at.root_x, at.root_y)

    def layout_stamp(self) -> tuple[int, int]:
        """Differs as soon as what the keys give has become something else."""
        with self._lock, _typed():
            mask = self._connection.core.QueryPointer(self._root).reply().mask
            while (event := self._connection.poll_for_event()) is not None:
                self._mappings += isinstance(event, x.MappingNotifyEvent)
        return self._mappings, mask & (x.KeyButMask.Lock | _GROUPS)

    def cursor(self) -> Cursor:
        """The pointer's shape of now."""
        with self._lock, _typed():
            found = self._fixes.GetCursorImage().reply()
        flat = np.array(found.cursor_image.list, np.uint32)
        pixels = flat.view(np.uint8).reshape(found.height, found.width, 4)
        return Cursor(pixels, (found.xhot, found.yhot))

    def window_types(self) -> set[str]:
        """Types (``_NET_WM_WINDOW_TYPE_*``) of the shown windows that the window manager lists."""
        found: set[str] = set()
        for window in self._property(self._root, "_NET_CLIENT_LIST"):
            try:
                attributes = self._ask("GetWindowAttributes", window)
                if attributes.map_state == x.MapState.Viewable:
                    for atom in self._property(window, "_NET_WM_WINDOW_TYPE"):
                        name = self._ask("GetAtomName", atom).name
                        found.add(name.to_string().removeprefix("_NET_WM_WINDOW_TYPE_"))
            except MachineLost:
                if self._connection.lost:
                    raise
                continue  # the window has gone since it was listed
        return found

    def _property(self, window: int, name: str) -> list[int]:
        atom = self._atoms.get(name)
        if atom is None:
            atom = self._ask("InternAtom", False, len(name), name).atom
            self._atoms[name] = atom
        reply = self._ask("GetProperty", False, window, atom, 0, 0, 4096)
        return [int(v) for v in reply.value.to_atoms()] if reply.format == 32 else []

    def _ask(self, request: str, *arguments: Any) -> Any:
        with self._lock, _typed():
            return getattr(self._connection.core, request)(*arguments).reply()

    def pointer_to(self, at: tuple[int, int]) -> None:
        """Move the pointer; `commit` sends it."""
        self._fake(_MOTION, 0, *at)

    def button(self, number: int, down: bool) -> None:
        """Press or release a button; `commit` sends it."""
        self._fake(_BUTTON_PRESS + (not down), number)

    def key(self, code: int, down: bool) -> None:
        """Press or release a keycode; `commit` sends it."""
        self._fake(_KEY_PRESS + (not down), code)

    def commit(self) -> None:
        """Send all that was faked; what is asked later is answered after it."""
        with self._lock, _typed():
            if self._connection.flush() <= 0:
                raise xcffib.ConnectionException(xcffib.XCB_CONN_ERROR)

    def held(self) -> tuple[list[int], list[int], bool]:
        """Keycodes and buttons that are down, and whether Caps Lock is on."""
        with self._lock, _typed():
            keys = self._connection.core.QueryKeymap()
            mask = self._connection.core.QueryPointer(self._root).reply().mask
            bits = list(keys.reply().keys)
        codes = [i * 8 + b for i, byte in enumerate(bits) for b in range(8) if byte >> b & 1]
        buttons = [n for n in range(1, 6) if mask & x.KeyButMask.Button1 << n - 1]
        return codes, buttons, bool(mask & x.KeyButMask.Lock)

    def close(self) -> None:
        """End the connection and give the memory back. Idempotent."""
        with self._lock:
            self._connection.disconnect()
            self._pixels = np.zeros((0, 0, 4), np.uint8)
            try:
                self._memory.close()
            except BufferError:
                pass  # somebody copies from it just now; it goes with him

    def _fake(self, kind: int, detail: int, at_x: int = 0, at_y: int = 0) -> None:
        with self._lock, _typed():
            self._test.FakeInput(kind, detail, 0, 0, at_x, at_y, 0)
