"""A light desktop as `cua_gym.machine.base.Machine`: sandbox, screen, input, shell and saved files.

Responsible for putting the parts together at each start and restore. It is a container, not a
computer: it shares its host's kernel, has no service manager, and its programs cannot be saved.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cua_gym.errors import MachineError, MachineLost, StateMismatch
from cua_gym.forked import finalizer
from cua_gym.machine.admission import Room, take_room
from cua_gym.machine.base import MachineSpec, State
from cua_gym.machine.channel import ControlChannel
from cua_gym.machine.guest_ops import Ops
from cua_gym.machine.one_driver import OneDriver
from cua_gym.machine.settle import Settle
from cua_gym.machine.x11.input import X11Input
from cua_gym.machine.x11.sandbox import Sandbox
from cua_gym.machine.x11.screen import REACTION_S, X11Screen
from cua_gym.machine.x11.session import begin_session, wait_until_ready
from cua_gym.machine.x11.shell import X11Shell
from cua_gym.machine.x11.states import FileStates
from cua_gym.machine.x11.xserver import Eye, Watcher

if TYPE_CHECKING:
    from cua_gym.image.store import Image
    from cua_gym.machine.start import Prepare

__all__ = ["LIGHT_MB", "X11Machine"]

LIGHT_MB = 256
"""What one takes of the host's memory with a small program open; its bound is the spec's."""

GUESTD = "/usr/lib/cua-gym/cua_guestd.py"


class X11Machine:
    """One light desktop. `start` makes one; everything else is the protocol."""

    kept: Path | None = None
    saves_programs = False
    settle = Settle(first_s=REACTION_S, quiet_s=0.008, max_s=3.0)

    def __init__(self, spec: MachineSpec, image: Image, root: Path, states: Path) -> None:
        """Not yet running; use `start`."""
        self._spec = spec
        self._image = image
        self._root = root
        self._states = FileStates(states, image.manifest.disk_sha256)
        self._uid = int(image.manifest.accounts.desktop["uid"])
        self._screen = X11Screen(spec.screen)
        self._driver = OneDriver()
        self._session: _Session | None = None
        self._room: Room | None = take_room(LIGHT_MB)

    @classmethod
    def start(
        cls,
        spec: MachineSpec,
        *,
        prepare: Prepare | None = None,
        state: State | None = None,
        image: Image,
        root: Path,
        states: Path,
    ) -> Self:
        """A running desktop, as `cua_gym.machine.start.start_machine` says.

        Its programs cannot be saved, so ``prepare`` runs each time: a start state is how one gets
        there.

        Args:
            root: the image's root file system (`cua_gym.image.rootfs`).
            states: folder in which the files of snapshots are kept.
        """
        machine = cls(spec, image, root, states)
        try:
            if state is not None:
                machine.restore(state)
            else:
                machine._begin(None)
                if prepare is not None:
                    prepare(machine)
        except BaseException:
            machine.close()
            raise
        return machine

    @property
    def spec(self) -> MachineSpec:
        """What was asked for."""
        return self._spec

    @property
    def screen(self) -> X11Screen:
        """The picture; the same object over restores."""
        return self._screen

    @property
    def input(self) -> X11Input:
        """Pointer and keyboard of the running session."""
        return self._running().input

    @property
    def shell(self) -> X11Shell:
        """Commands and files."""
        return self._running().shell

    @property
    def pid(self) -> int:
        """Process id of what holds the sandbox, for measuring."""
        return self._running().sandbox.pid

    def snapshot(self, key: str) -> State:
        """Save the files of this moment under ``key``; programs are not saved.

        A machine that becomes the state is a fresh session over them. Keys and buttons are let go.
        """
        with self._drive("a snapshot") as session:
            session.input.release_all()
            session.sandbox.ask("stop", user=self._spec.user)
            try:
                return self._states.save(self._spec, key, session.sandbox.save)
            finally:
                session.sandbox.ask("go", user=self._spec.user)

    def restore(self, state: State) -> None:
        """Become a fresh session over the saved files."""
        if state.spec != self._spec:
            raise StateMismatch(
                f"the state {state.key!r} is of {state.spec}, this machine is {self._spec}"
            )
        files = self._states.open(state)
        try:
            with self._driver.hold("a restore"):
                self._halt()
                self._begin(files)
        finally:
            os.close(files)

    def discard(self, state: State) -> None:
        """See `cua_gym.machine.base.Machine.discard`."""
        self._states.discard(state)

    def freeze(self) -> None:
        """See `cua_gym.machine.base.Machine.freeze`; the X server goes on, and shows the same."""
        with self._drive("a freeze") as session:
            session.input.release_all()
            session.sandbox.ask("stop", user=self._spec.user)

    def thaw(self) -> None:
        """See `cua_gym.machine.base.Machine.thaw`."""
        with self._drive("a thaw") as session:
            session.sandbox.ask("go", user=self._spec.user)

    def check(self) -> None:
        """See `cua_gym.machine.base.Machine.check`."""
        self._running().sandbox.check()

    def close(self) -> None:
        """See `cua_gym.machine.base.Machine.close`."""
        self._halt()
        if self._room is not None:
            self._room.close()
            self._room = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _running(self) -> _Session:
        if self._session is None:
            raise MachineLost("this machine is closed")
        return self._session

    @contextlib.contextmanager
    def _drive(self, what: str) -> Iterator[_Session]:
        """The running session, for this thread alone."""
        session = self._running()
        with self._driver.hold(what):
            yield session

    def _begin(self, files: int | None) -> None:
        """Start a sandbox and its session, and wait until the desktop is at rest."""
        spec = self._spec
        sandbox = Sandbox(
            self._root,
            screen=spec.screen,
            memory_mb=spec.memory_mb,
            network=spec.network,
            files=files,
        )
        session = _Session(self._image, sandbox, self._screen, self._driver, spec.user)
        self._session = session
        # For whoever forgets to close: the processes end with this object.
        self._finalizer = finalizer(self, session.close)
        session.open(self._uid)

    def _halt(self) -> None:
        if self._session is not None:
            self._session = None
            self._finalizer()


class _Session:
    """What one start of a sandbox brings, and its end."""

    def __init__(
        self, image: Image, sandbox: Sandbox, screen: X11Screen, driver: OneDriver, user: str
    ) -> None:
        self.sandbox = sandbox
        self.shell = X11Shell(sandbox, user)
        self.input: X11Input
        self._screen = screen
        self._driver = driver
        self._user = user
        self._lease = image.qcow2.open("rb")  # an image in use is not removed
        self._eye: Eye | None = None
        self._channel: ControlChannel | None = None
        self._starting = threading.Lock()

    def open(self, uid: int) -> None:
        """Start what runs in the sandbox; returns when the desktop is at rest."""
        sandbox, screen = self.sandbox, self._screen
        self._eye = eye = Eye(sandbox.display())
        lost = self._lost
        screen.start(lambda **calls: Watcher(sandbox.display(), **calls), eye, lost)
        self.input = X11Input(eye, screen, self._driver, lambda: self._ops(uid))
        begin_session(sandbox, self._user, uid)
        wait_until_ready(sandbox, screen, eye.window_types)
        width, height = screen.size
        self.input.pointer(width // 2, height // 2)

    def close(self) -> None:
        """The processes first: whatever waits for them then fails at once."""
        self.sandbox.close()
        self._screen.stop()
        self.shell.close()
        if self._eye is not None:
            self._eye.close()
        if self._channel is not None:
            self._channel.close()
        self._lease.close()

    def _lost(self) -> MachineLost:
        return MachineLost(f"the light desktop is gone: {self.sandbox.why()}")

    def _ops(self, uid: int) -> Ops:
        """The guest's daemon, for what needs its view of the keyboard; started when first asked."""
        with self._starting:
            if self._channel is None or self._channel.lost:
                ours, theirs = socket.socketpair()
                null = os.open(os.devnull, os.O_RDWR)
                try:
                    words = ["/usr/bin/python3", "-sE", GUESTD, "--fd", "0", "--uid", str(uid)]
                    fds = [theirs.fileno(), null, null]
                    self.sandbox.ask(
                        "start", fds, user="root", argv=words, session=False, terminal=None
                    )
                except MachineError:
                    ours.close()
                    raise
                finally:
                    theirs.close()
                    os.close(null)
                self._channel = ControlChannel(ours)
            return self._channel.ops
