"""A computer in memory, for tests of everything that stands on machines.

It is a toy desktop: a text area that shows what was typed, a red button that turns green when
clicked, a pointer, Ctrl+S that saves the text to ``note.txt`` in the home folder, and a shell over
a private host folder. It passes the same contract as a real machine and is never a benchmark.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Self

from cua_gym.errors import ActionError, MachineLost, StateMismatch
from cua_gym.forked import finalizer
from cua_gym.machine.admission import Room, take_room
from cua_gym.machine.base import Button, Frame, MachineSpec, Rgb, State, room
from cua_gym.machine.keyboard import canonical
from cua_gym.machine.local_shell import LocalShell, copy_folder
from cua_gym.machine.settle import Settle
from cua_gym.machine.tree import remove_tree

__all__ = ["BUTTON_BOX", "FAKE_MB", "FakeMachine"]

BUTTON_BOX = (100, 100, 200, 140)
"""The button: x0, y0, x1, y1 in pixels, ends excluded."""

FAKE_MB = 16
"""What one takes of the host's memory: a few pictures."""


class FakeMachine:
    """Screen, Input and Machine in one; ``screen`` and ``input`` are itself."""

    kept: Path | None = None
    settle = Settle()
    saves_programs = True
    press_s = 0.02

    def __init__(self, spec: MachineSpec) -> None:
        self.spec = spec
        room = take_room(FAKE_MB)
        self.size = spec.screen
        self.position = (0, 0)
        self.serial = 1
        self.typed = ""
        self.green = False
        self.events: list[str] = []
        self.fault: Exception | None = None
        self._buttons = Button.NONE
        self._down: set[str] = set()
        self._changed = threading.Condition()
        self._time = time.monotonic()
        self._root = Path(tempfile.mkdtemp(prefix="cua-gym-fake-"))
        self.shell = LocalShell(self._root)
        self._saved: list[Path] = []
        self.resting = False
        self.closed = False
        # For whoever forgets to close: nothing of it outlives the program.
        self._finalizer = finalizer(self, _end, self.shell, self._root, self._saved, room)

    @property
    def screen(self) -> Self:
        """Itself."""
        return self

    @property
    def input(self) -> Self:
        """Itself."""
        return self

    # Screen

    def grab(self, out: Rgb | None = None) -> Frame:
        """Draw the toy desktop."""
        self.check()
        rgb = room(out, self.size)
        rgb[:] = 200
        x0, y0, x1, y1 = BUTTON_BOX
        rgb[y0:y1, x0:x1] = (0, 160, 0) if self.green else (200, 0, 0)
        for i, character in enumerate(self.typed[-100:]):
            x, y = 10 + 12 * (i % 50), 200 + 20 * (i // 50)
            code = zlib.crc32(character.encode())
            rgb[y : y + 16, x : x + 10] = (code & 255, code >> 8 & 255, code >> 16 & 255)
        px, py = self.position
        rgb[py : py + 4, px : px + 4] = 0
        return Frame(rgb, self.position, self._time, self.serial)

    def wait_change(self, after: int, timeout_s: float) -> bool:
        """Wait on a condition that every change notifies."""
        self.check()
        with self._changed:
            return self._changed.wait_for(lambda: self.serial > after, timeout_s)

    def _change(self) -> None:
        with self._changed:
            self.serial += 1
            self._time = time.monotonic()
            self._changed.notify_all()

    # Input

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        """Move; a left press on the button toggles its colour."""
        self.check()
        if not (0 <= x < self.size[0] and 0 <= y < self.size[1]):
            raise ActionError(f"({x}, {y}) is off the {self.size[0]}x{self.size[1]} screen")
        pressed = buttons & ~self._buttons
        moved = (x, y) != self.position
        self.position, self._buttons = (x, y), buttons
        self.events.append(f"pointer {x} {y} {buttons.value}")
        x0, y0, x1, y1 = BUTTON_BOX
        if pressed & Button.LEFT and x0 <= x < x1 and y0 <= y < y1:
            self.green = not self.green
            self._change()
        elif moved:
            self._change()

    def key(self, key: str, down: bool) -> None:
        """Hold or release; Ctrl+S saves, Backspace erases."""
        self.check()
        name = canonical(key)
        self.events.append(f"key {name} {'down' if down else 'up'}")
        (self._down.add if down else self._down.discard)(name)
        if not down:
            return
        if name == "s" and "ctrl" in self._down:
            self.shell.write("/home/user/note.txt", self.typed.encode())
            self._change()
        elif name == "backspace" and self.typed:
            self.typed = self.typed[:-1]
            self._change()
        elif len(name) == 1 and not self._down & {"ctrl", "alt", "super"}:
            self.typed += name.upper() if "shift" in self._down else name
            self._change()

    def keymap(self) -> None:
        """No layout: characters are places."""

    def text(self, text: str) -> None:
        """Append to the text area."""
        self.check()
        self.typed += text
        if text:
            self._change()

    def release_all(self) -> None:
        """Forget what is down."""
        self._down.clear()
        self._buttons = Button.NONE

    @property
    def held(self) -> tuple[frozenset[str], Button]:
        """Keys and buttons that are down."""
        return frozenset(self._down), self._buttons

    # Machine

    def snapshot(self, key: str) -> State:
        """Copy text, colour and files."""
        self.check()
        copy = Path(tempfile.mkdtemp(prefix="cua-gym-fake-state-"))
        (copy / "files").mkdir()
        copy_folder(self._root, copy / "files")
        (copy / "screen.json").write_text(json.dumps([self.typed, self.green]))
        self._saved.append(copy)
        return State(self.spec, key, copy)

    def restore(self, state: State) -> None:
        """Copy them back."""
        if state.spec != self.spec:
            raise StateMismatch(f"{state.key} was saved by {state.spec}, this is {self.spec}")
        if state.folder is None or not state.folder.is_dir():
            raise StateMismatch(f"no fake machine has saved {state.key!r}")
        self.typed, self.green = json.loads((state.folder / "screen.json").read_text())
        remove_tree(self._root)
        self._root.mkdir(mode=0o700)
        copy_folder(state.folder / "files", self._root)
        self.position = (0, 0)
        self.release_all()
        self._change()

    def discard(self, state: State) -> None:
        """Remove the copy."""
        if state.folder in self._saved:
            remove_tree(state.folder)

    def freeze(self) -> None:
        """Let go of everything."""
        self.check()
        self.release_all()

    def thaw(self) -> None:
        """Nothing was stopped."""
        self.check()

    def rest(self) -> None:
        """See `cua_gym.machine.pool.Rests`."""
        self.check()
        self.resting = True

    def wake(self) -> None:
        """See `cua_gym.machine.pool.Rests`."""
        self.check()
        self.resting = False

    def check(self) -> None:
        """Raise what a test planted in ``fault``, or that it is closed."""
        if self.fault is not None:
            raise self.fault
        if self.closed:
            raise MachineLost("this fake machine is closed")

    def close(self) -> None:
        """End what runs in it and remove its folders."""
        self.closed = True
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _end(shell: LocalShell, root: Path, saved: list[Path], room: Room) -> None:
    shell.close()
    for folder in (root, *saved):
        with suppress(OSError):  # a command left behind may still write
            remove_tree(folder)
    room.close()
