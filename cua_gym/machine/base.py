"""What a computer is to the rest of the house: Protocols and the values that cross them.

A machine has a screen, an input, a shell, and can be saved and restored. It knows nothing of
tasks, agents or grading. Every kind of machine passes the same suite, `cua_gym.testing`.

Coordinates are pixels of the native screen, origin top left, never rescaled. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from cua_gym.machine.keymap import Keymap
from cua_gym.machine.network.policy import Network
from cua_gym.turns import Stop

if TYPE_CHECKING:
    from cua_gym.machine.settle import Settle

__all__ = [
    "Button",
    "Completed",
    "FileStat",
    "Files",
    "Frame",
    "Input",
    "Machine",
    "MachineSpec",
    "Process",
    "Screen",
    "Shell",
    "State",
    "Stream",
    "fitted",
    "read_only",
    "room",
]

Rgb = npt.NDArray[np.uint8]
Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """The whole request for a computer; equal specs may share one, one after the other.

    Attributes:
        backend: ``qemu`` is a whole computer, ``x11`` a light desktop in a container.
        network: ``"none"``, ``"open"``, or the hosts that it may reach, such as
            ``("example.org", "*.example.net:8080")`` (`cua_gym.machine.network.policy`). The host's
            loopback is never reached.
    """

    backend: Literal["qemu", "x11", "fake"] = "qemu"
    image: str = "debian-12"
    cpus: int = 2
    memory_mb: int = 2048
    screen: tuple[int, int] = (1280, 800)
    network: Network = "none"
    user: str = "user"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """From plain JSON values, as `dataclasses.asdict` gives them."""
        plain: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return cls(**plain)

    @property
    def offline(self) -> Self:
        """The same without a network."""
        return replace(self, network="none")


class Button(IntFlag):
    """Pointer buttons as a bit mask; a wheel bit that goes down and up is one notch."""

    NONE = 0
    LEFT = 1
    MIDDLE = 2
    RIGHT = 4
    WHEEL_UP = 8
    WHEEL_DOWN = 16
    WHEEL_LEFT = 32
    WHEEL_RIGHT = 64


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One picture of the screen.

    Attributes:
        rgb: ``(height, width, 3)`` uint8, the pointer drawn in; a fresh array that is yours, or
            the one that you gave.
        cursor: pointer position ``(x, y)`` in pixels, the last one asked for.
        time: host ``time.monotonic()`` of the last change in this picture.
        serial: rises by at least one with every change of the screen since the restore.
    """

    rgb: Rgb
    cursor: tuple[int, int]
    time: float
    serial: int


def room(out: Rgb | None, size: tuple[int, int]) -> Rgb:
    """``out``, if it is of ``size`` (width, height); else memory of its own, to be filled."""
    shape = (size[1], size[0], 3)
    return out if out is not None and out.shape == shape else np.empty(shape, np.uint8)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array, but nobody can write to this one."""
    view = array.view()
    view.flags.writeable = False
    return view


def fitted(rgb: Rgb, size: tuple[int, int]) -> Rgb:
    """A picture in ``size`` (width, height): cut, or black added, at the right and bottom."""
    width, height = size
    if rgb.shape == (height, width, 3):
        return rgb
    made = np.zeros((height, width, 3), np.uint8)
    part = rgb[:height, :width]
    made[: part.shape[0], : part.shape[1]] = part
    return made


@dataclass(frozen=True, slots=True)
class Completed:
    """What a command left: exit status, output so far, and whether its time ran out.

    ``exit`` is 128 + n after signal n; ``dropped`` counts bytes of output past the kept bound.
    """

    exit: int
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    dropped: int = 0

    @property
    def text(self) -> str:
        """Standard output as text; bytes that are not UTF-8 become surrogate escapes."""
        return self.stdout.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class FileStat:
    """One entry of a guest folder; ``name`` keeps odd bytes as surrogate escapes."""

    name: str
    kind: Literal["file", "dir", "link", "other"]
    size: int
    mtime: float
    mode: int


class Screen(Protocol):
    """The picture that a person would see."""

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""

    @property
    def serial(self) -> int:
        """Serial of the newest change; cheap."""

    def grab(self, out: Rgb | None = None) -> Frame:
        """The newest picture, its pixels copied.

        Args:
            out: where to, for a kind that has them elsewhere, if it is of the screen's size; else
                into memory of their own. Whoever gives the same array again has written nothing
                into it since.
        """

    def wait_change(self, after: int, timeout_s: float) -> bool:
        """Wait until ``serial > after``; False when the time ran out.

        Raises:
            MachineLost: the machine went away meanwhile.
        """


class Input(Protocol):
    """Hands on the pointer and the keyboard."""

    @property
    def position(self) -> tuple[int, int]:
        """Pointer position last asked for."""

    @property
    def press_s(self) -> float:
        """How long a key or button stays down to be seen by programs, in seconds."""

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        """Put the pointer on pixel (x, y) with exactly these buttons down.

        Raises:
            ActionError: (x, y) lies off the screen.
        """

    def key(self, key: str, down: bool) -> None:
        """Press or release one key by its canonical name (`cua_gym.machine.keyboard`).

        A character names a place, that of a US keyboard, whatever the guest's layout.

        Raises:
            UnknownKey: no such key on this machine.
        """

    def keymap(self) -> Keymap | None:
        """What the keys give under the layout of now; None where nobody can say.

        Raises:
            MachineError: the guest did not say.
        """

    def text(self, text: str) -> None:
        r"""Type any Unicode exactly, ``\n`` as Enter and ``\t`` as Tab; returns when delivered.

        Raises:
            UntypableText: names the characters; nothing was typed.
        """

    def release_all(self) -> None:
        """Every key and button up, Caps Lock off."""


class Process(Protocol):
    """A program running in the computer: its output so far, its input, its end.

    Every method may be called from any thread, and none but the waits waits for the program.
    After a lost connection `exit`, `wait`, `write` and what lies beyond the output that came
    raise MachineLost.
    """

    @property
    def exit(self) -> int | None:
        """Exit status, 128 + n after signal n; None while it runs or output is still coming."""

    def size(self, stream: Stream) -> int:
        """Bytes kept of a stream so far; a terminal's ``"stderr"`` stays empty."""

    @property
    def dropped(self) -> int:
        """Bytes past the kept bound, which are gone; the program is never held up by it."""

    def output(self, stream: Stream, offset: int = 0, limit: int | None = None) -> bytes:
        """What was kept of a stream from byte ``offset`` on, at most ``limit`` bytes."""

    def wait_output(self, stream: Stream, after: int, timeout_s: float) -> bool:
        """Wait until ``size(stream) > after``; False when the time ran out or it ended."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end, all its output in; False when the time ran out.

        A job that it left in the background does not count (`Shell.start`).
        """

    def write(self, data: bytes) -> None:
        """Give it input, or a terminal keys; returns before the program has read them.

        Raises:
            ActionError: it has ended, its input is closed, or 64 MiB wait already.
        """

    def close_input(self) -> None:
        """End its input after what was written; nothing where it has ended already.

        Raises:
            ActionError: it has a terminal, where the key Ctrl-D (``\\x04``) is the end.
        """

    def resize(self, columns: int, rows: int) -> None:
        """Give its terminal another size.

        Raises:
            ActionError: no such size, no terminal, or it has ended.
        """

    def kill(self) -> None:
        """Kill its whole tree and wait for its end; nothing when it has ended.

        Raises:
            MachineError: the machine could not be told.
        """

    def close(self) -> None:
        """Kill it if it runs, and give back what serves it. Idempotent; its output stays.

        Raises:
            MachineError: as `kill`; it is given back all the same.
        """


class Files(Protocol):
    """Files of the computer with the rights of one account; errors as for local files.

    The server of it may be that account's own process: a MachineError need not be the machine's.
    """

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """See `Shell.read`."""

    def write(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """See `Shell.write`; the file belongs to the account."""

    def stat(self, path: str, *, follow: bool = False) -> FileStat:
        """One entry; links are not followed unless asked for."""

    def list(self, path: str) -> list[FileStat]:
        """See `Shell.list`."""

    def abandon(self) -> None:
        """Let the call under way fail, from another thread; the next one goes."""


class Shell(Protocol):
    """Commands and files inside the computer, binary-safe, as a named guest account."""

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float = 60.0,
        user: str | None = None,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stop: Stop | None = None,
    ) -> Completed:
        """Run a command; a ``str`` goes to ``bash -c``, a sequence is executed as it is.

        Args:
            timeout_s: then the whole process tree is killed and what it printed is returned
                with ``timed_out=True``.
            user: guest account; None is the machine's desktop account, in its graphical session
                (DISPLAY and session bus set). ``"root"`` is for setup and collection.
            stdin: bytes for standard input, which is then closed.
            stop: when another thread asks, the tree is killed and what it printed is returned.

        Raises:
            MachineError: the channel failed. A command that fails is a value, not an error.
        """

    def start(
        self,
        command: str | Sequence[str],
        *,
        user: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        terminal: tuple[int, int] | None = None,
        keep_bytes: int | None = None,
    ) -> Process:
        """Start a command and leave it running; arguments as for `run`. Close what you started.

        Background jobs of it outlive its end, as those of `run`.

        Args:
            terminal: ``(columns, rows)`` of a terminal that is its controlling one
                (``TERM=xterm-256color``); it goes away at the end. Without, three pipes.
            keep_bytes: of each stream; what follows is counted in `Process.dropped` and let go.

        Raises:
            MachineError: the channel failed.
        """

    @property
    def files(self) -> Files:
        """Files with no more rights than the desktop account has; the rest here has root's."""

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a guest file.

        Raises:
            FileNotFoundError, IsADirectoryError, PermissionError: as for a local file.
        """

    def write(self, path: str, data: bytes, *, user: str | None = None, mode: int = 0o644) -> None:
        """Put a whole file, its parent folders made; atomic.

        Raises:
            OutOfSpace: with the free space seen; nothing partial stays.
        """

    def stat(self, path: str) -> FileStat:
        """One entry, links not followed."""

    def list(self, path: str) -> list[FileStat]:
        """Entries of a folder, sorted by name."""

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder; absent is fine."""

    def put_dir(self, source: Path, path: str, *, user: str | None = None) -> None:
        """Copy a host folder's contents into a guest folder."""

    def get_dir(self, path: str, target: Path, *, limit_bytes: int) -> None:
        """Copy a guest folder into a new host folder, treated as hostile.

        Nothing is written outside ``target``; links and special files are recorded in
        ``target/.links.json`` and never created.

        Raises:
            OutOfSpace: the folder holds more than ``limit_bytes``.
        """


@dataclass(frozen=True, slots=True)
class State:
    """A saved moment of a machine; ``folder`` holds all of it, or it lives in a fake."""

    spec: MachineSpec
    key: str
    folder: Path | None = field(default=None, compare=False)


@runtime_checkable
class Machine(Protocol):
    """One running computer. A context manager; `close` is idempotent and leaves nothing."""

    @property
    def spec(self) -> MachineSpec: ...
    @property
    def screen(self) -> Screen: ...
    @property
    def input(self) -> Input: ...
    @property
    def shell(self) -> Shell: ...
    @property
    def kept(self) -> Path | None:
        """Folder of what was kept with the start state that it began from, if there is one."""

    @property
    def settle(self) -> Settle:
        """What counts as settled after an action, on this kind of machine."""

    @property
    def saves_programs(self) -> bool:
        """Whether `snapshot` saves running programs too, and not files alone."""

    def snapshot(self, key: str) -> State:
        """Save this moment under ``key``; the machine goes on, briefly paused.

        Without `saves_programs` that is its files: who restores them begins a fresh session.
        """

    def restore(self, state: State) -> None:
        """Become the saved moment: clock right, keys up, fresh entropy, correct first frame.

        Raises:
            StateMismatch: found before anything is started.
        """

    def discard(self, state: State) -> None:
        """Forget a saved moment; machines that became it go on."""

    def freeze(self) -> None:
        """Release keys and buttons and stop every process of the desktop account."""

    def thaw(self) -> None:
        """Let the desktop account's processes go on."""

    def check(self) -> None:
        """Raise the MachineError that says why, if the machine is no longer healthy."""

    def close(self) -> None:
        """End it: no process, socket, port or overlay stays."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
