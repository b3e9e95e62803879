"""A virtual machine as `cua_gym.machine.base.Machine`: engine, screen, input, shell and states.

Responsible for putting the wires together after each start and restore, and for making a restored
guest a computer of its own: clock, entropy, identity, nothing held down. The process itself is
`engine.py`'s, the first boot is `boot.py`'s.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from cua_gym.errors import MachineError, MachineLost, MachineTimeout, StateMismatch
from cua_gym.forked import finalizer
from cua_gym.machine.admission import Room, take_room
from cua_gym.machine.base import MachineSpec, State
from cua_gym.machine.channel import ControlChannel
from cua_gym.machine.guest_agent import GuestAgent
from cua_gym.machine.one_driver import OneDriver
from cua_gym.machine.qemu.accelerator import Host, choose_machine_type, probe
from cua_gym.machine.qemu.boot import wait_until_ready
from cua_gym.machine.qemu.disk import BaseDisk
from cua_gym.machine.qemu.engine import Engine
from cua_gym.machine.qemu.greeting import HELLO_S, greet
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.input import QemuInput
from cua_gym.machine.qemu.process import booting_mb, working_mb
from cua_gym.machine.qemu.reaper import reap
from cua_gym.machine.qemu.screen import LiveScreen
from cua_gym.machine.qemu.states import KEPT, Lease, StateInfo, StateStore
from cua_gym.machine.settle import Settle
from cua_gym.machine.ssh import SshShell

if TYPE_CHECKING:
    from cua_gym.image.store import Image
    from cua_gym.machine.start import Prepare
    from cua_gym.machine.vnc import VncWire

__all__ = ["READY", "QemuMachine"]

READY = "ready"
"""Key of an image's ready state."""

STATES_LIMIT_BYTES = 30 << 30
FIRST_FRAME_S = 60.0
BOOT_S = 300.0

Progress = Callable[[str], None]


class QemuMachine:
    """One virtual computer. `start` makes one; everything else is the protocol."""

    settle = Settle()
    saves_programs = True

    def __init__(
        self, spec: MachineSpec, image: Image, host: Host, hardware: Hardware, store: StateStore
    ) -> None:
        """Not yet running; use `start`."""
        self._spec = spec
        self._image = image
        self._host = host
        self._hardware = hardware
        self._store = store
        self._base = BaseDisk.open(image.qcow2, image.manifest.qcow2_sha256)
        self._screen = LiveScreen(spec.screen)
        self._driver = OneDriver()
        self._engine: Engine | None = None
        self._lease: Lease | None = None
        self._room: Room | None = None
        self._greeting: Future[None] = Future()
        self._channel: ControlChannel
        self._agent: GuestAgent
        self._input: QemuInput
        self._shell: SshShell

    @classmethod
    def start(
        cls,
        spec: MachineSpec,
        *,
        key: str | None = None,
        prepare: Prepare | None = None,
        state: State | None = None,
        progress: Progress = lambda _: None,
        accelerator: Literal["auto", "kvm", "tcg"] = "auto",
        image: Image | None = None,
        cache: Path | None = None,
    ) -> Self:
        """A running machine, as `cua_gym.machine.start.start_machine` says.

        Args:
            image: by default the built one that the spec names.
            cache: where states are kept; by default `cua_gym.cache.cache_root`.
        """
        # The store of images stands above machines; only this door looks one up by name.
        from cua_gym.cache import cache_root
        from cua_gym.image.store import ImageStore

        root = cache or cache_root()
        _reap_once(os.getpid())
        host = probe(root)
        image = image or ImageStore().get(spec.image)
        kind = host.accelerator(accelerator)
        hardware = Hardware(
            machine=choose_machine_type(host, image.manifest.hypervisor.machine),
            accelerator=kind,
            # Under emulation each further feature costs; qemu64 has what browsers need (SSE3).
            cpu="host,migratable=on" if kind == "kvm" else "qemu64",
            cpus=spec.cpus,
            memory_mb=spec.memory_mb,
            screen=spec.screen,
            qemu=host.version,
            host_cpu=host.cpu_model if kind == "kvm" else "",
        )
        store = StateStore(root / "states", STATES_LIMIT_BYTES)
        machine = cls(spec, image, host, hardware, store)
        try:
            if state is not None:
                machine.restore(state)
            elif key is None or prepare is None:
                machine._become(machine._obtain(READY, lambda: machine._boot(progress)))
            else:
                machine._become(
                    machine._obtain(key, lambda: machine._prepare(key, prepare, progress))
                )
        except BaseException:
            machine.close()
            raise
        return machine

    @property
    def spec(self) -> MachineSpec:
        """What was asked for."""
        return self._spec

    @property
    def screen(self) -> LiveScreen:
        """The picture; the same object over restores."""
        return self._screen

    @property
    def input(self) -> QemuInput:
        """Pointer and keyboard of the running process."""
        self._running()
        return self._input

    @property
    def shell(self) -> SshShell:
        """Commands and files."""
        self._running()
        return self._shell

    @property
    def agent(self) -> GuestAgent:
        """QEMU's standard guest agent, for images that have it: ping, programs as root, time."""
        self._running()
        return self._agent

    @property
    def kept(self) -> Path | None:
        """Folder of what `start`'s ``prepare`` had kept with the state that it began from.

        It goes with the state, so it may be gone; whoever needs it for long copies it.
        """
        return None if self._lease is None else self._lease.folder / KEPT

    @property
    def pid(self) -> int:
        """QEMU's process id, for measuring."""
        return self._running().pid

    def vnc(self, *, daemon: bool = True) -> VncWire:
        """Its screen and input by VNC, until the next restore; closing it is the caller's.

        Nothing keeps it from acting beside `input`: use one of them.

        Args:
            daemon: the guest's daemon helps with text and sideways scrolling; without it the wire
                is what it is to a machine that has nothing but VNC.
        """
        # Twisted chooses its reactor when it is imported: nobody else should have one.
        from cua_gym.machine.vnc import VncWire

        engine = self._running()
        ops = self._channel.ops if daemon else None
        # No button of a machine of ours is down that nobody holds, and a click takes the focus.
        return VncWire(engine.vnc_client, ops=ops, clear_buttons=False)

    def snapshot(self, key: str) -> State:
        """See `cua_gym.machine.base.Machine.snapshot`. Keys and buttons are let go first.

        Raises:
            OutOfSpace: the cache's disk is full; the machine goes on.
        """
        return self._save(key, {})

    def _save(self, key: str, kept: Mapping[str, bytes]) -> State:
        with self._drive("a snapshot") as engine, self._store.draft() as draft:
            self._input.release_all()
            self._shell.disconnect()
            self._channel.close_streams()
            memory_bytes = self._spec.memory_mb << 20
            engine.pause()
            try:
                engine.save(draft, memory_bytes)
            finally:
                engine.resume()
            draft.split(memory_bytes)
            info = StateInfo(
                key=key,
                spec=asdict(self._spec_of(key)),
                hardware=self._hardware.as_dict(),
                base=self._base.identity(),
                screen=self._screen.size,
                cursor=self._screen.cursor,
                deltas=len(engine.deltas) + 1,
            )
            folder = self._folder(key)
            self._store.publish(draft, info, folder, engine.deltas, kept)
            # The guest's clock stood still with it.
            self._channel.ops.call("hello", timeout_s=HELLO_S, time_ns=time.time_ns())
        return State(self._spec, key, folder)

    def restore(self, state: State) -> None:
        """See `cua_gym.machine.base.Machine.restore`."""
        if state.spec != self._spec:
            raise StateMismatch(
                f"the state {state.key!r} is of {state.spec}, this machine is {self._spec}"
            )
        try:
            lease = Lease.open(state.folder or self._folder(state.key))
        except FileNotFoundError as error:
            raise StateMismatch(
                f"the state {state.key!r} is no longer in the cache; make it again"
            ) from error
        try:
            lease.info.check(self._hardware, self._base)
            with self._driver.hold("a restore"):
                self._become(lease)
        except BaseException:
            if self._lease is not lease:
                lease.close()
            raise

    def discard(self, state: State) -> None:
        """See `cua_gym.machine.base.Machine.discard`."""
        self._store.discard(state.folder or self._folder(state.key))

    def freeze(self) -> None:
        """See `cua_gym.machine.base.Machine.freeze`."""
        with self._drive("a freeze"):
            self._input.release_all()
            self._channel.ops.call("freeze", timeout_s=30.0)

    def thaw(self) -> None:
        """See `cua_gym.machine.base.Machine.thaw`."""
        with self._drive("a thaw"):
            self._channel.ops.call("thaw", timeout_s=30.0)

    def rest(self) -> None:
        """See `cua_gym.machine.pool.Rests`. It is greeted and its shell connected before."""
        self.shell.run("true", user="root", timeout_s=HELLO_S)
        with self._drive("a rest") as engine:
            engine.pause()

    def wake(self) -> None:
        """See `cua_gym.machine.pool.Rests`. It is greeted anew, beside whoever looks."""
        with self._drive("a waking") as engine:
            engine.resume()
        self._greeting = greet(self._channel.ops, self._shell)

    def check(self) -> None:
        """See `cua_gym.machine.base.Machine.check`."""
        engine = self._engine
        if engine is None:
            raise MachineLost("this machine is closed")
        engine.check()  # first: it knows the cause, all else only that the wire is cut
        if self._channel.lost:
            raise MachineLost(self._channel.lost)
        if self._greeting.done():
            self._greeting.result()

    def close(self) -> None:
        """See `cua_gym.machine.base.Machine.close`."""
        self._halt()
        if self._lease is not None:
            self._lease.close()
            self._lease = None
        self._leave_room()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _running(self) -> Engine:
        """The process of a guest that knows who it is and what time it is."""
        engine = self._engine
        if engine is None:
            raise MachineLost("this machine is closed")
        try:
            self._greeting.result()
        except MachineError:
            engine.blame()
            raise
        return engine

    @contextlib.contextmanager
    def _drive(self, what: str) -> Iterator[Engine]:
        """The running process, for this thread alone."""
        engine = self._running()
        with self._driver.hold(what):
            try:
                yield engine
            except MachineLost:
                engine.blame()
                raise

    def _halt(self) -> None:
        if self._engine is not None:
            self._engine = None
            self._finalizer()

    def _leave_room(self) -> None:
        if self._room is not None:
            self._room.close()
            self._room = None

    def _folder(self, key: str) -> Path:
        return self._store.folder(self._spec_of(key), self._base, key)

    def _spec_of(self, key: str) -> MachineSpec:
        """What a state is of: ready states are made without a network and serve them all."""
        return self._spec.offline if key == READY else self._spec

    def _obtain(self, key: str, make: Callable[[], None]) -> Lease:
        """The state of that name, made first if it is absent or does not fit any more."""
        lease = self._fitting(key, warn=True)
        if lease is None:
            with self._store.building(self._folder(key)):
                # Another process may have made it meanwhile.
                lease = self._fitting(key, warn=False)
                if lease is None:
                    make()
                    lease = self._fitting(key, warn=False)
        if lease is None:
            raise StateMismatch(
                f"the state {key!r} was taken from the cache right after its making"
            )
        return lease

    def _fitting(self, key: str, *, warn: bool) -> Lease | None:
        try:
            lease = self._store.open(self._folder(key))
            if lease is not None:
                try:
                    lease.info.check(self._hardware, self._base)
                except BaseException:
                    lease.close()
                    raise
        except StateMismatch as error:
            if warn:
                warnings.warn(f"{error}; that takes a while", RuntimeWarning, stacklevel=4)
            return None
        return lease

    def _boot(self, progress: Progress) -> None:
        """Cold boot up to a desktop at rest, and its ready state."""
        progress(f"first use of image {self._image.name}: booting it once to save its ready state")
        self._start_engine(None)
        try:
            wait_until_ready(self, self._running(), self._channel, self._agent, progress)
            self.snapshot(READY)
        finally:
            self._halt()
            self._leave_room()  # a restored machine takes less

    def _prepare(self, key: str, prepare: Prepare, progress: Progress) -> None:
        """The ready state, what ``prepare`` makes of it, and that as a state."""
        self._become(self._obtain(READY, lambda: self._boot(progress)))
        kept = prepare(self)
        self._save(key, kept or {})

    def _become(self, lease: Lease) -> None:
        """Leave the process there may be, and start one in the leased state, which is ours now."""
        self._halt()
        old, self._lease = self._lease, lease
        if old is not None:
            old.close()
        self._screen.cursor = lease.info.cursor
        engine = self._start_engine(lease)
        # The picture is there long before an emulated guest has answered: whoever only looks need
        # not wait, whoever acts does.
        joins = MachineSpec.of(lease.info.spec).network != self._spec.network
        self._greeting = greet(self._channel.ops, self._shell, joins_network=joins)
        if not self._screen.wait_whole(lease.info.screen, FIRST_FRAME_S):
            engine.check()
            raise MachineTimeout(
                f"the restored machine showed no {lease.info.screen} picture in {FIRST_FRAME_S:g} s"
            )

    def _start_engine(self, lease: Lease | None) -> Engine:
        if self._room is None:  # what is restored in place stays where it is
            self._room = _take_room(self._spec, lease)
        engine = Engine(
            self._host,
            self._hardware,
            self._base,
            self._screen,
            run_dir=Path(os.environ.get("CUA_GYM_RUN_DIR") or self._store.root.parent / "run"),
            lease=lease,
            network=self._spec.network if lease else "none",
        )
        try:
            self._room.used_by(engine.pid)
            self._join(engine, boots=lease is None)
            engine.resume()
        except BaseException:
            engine.close()
            raise
        self._engine = engine
        # For whoever forgets to close: the process ends with this object.
        wires = (self._channel, self._agent, self._shell)
        self._finalizer = finalizer(self, _end, engine, *wires)
        return engine

    def _join(self, engine: Engine, *, boots: bool) -> None:
        """Take up the engine's wires."""
        manifest = self._image.manifest
        self._channel = channel = ControlChannel(engine.take_wire("control"))
        self._agent = GuestAgent(engine.take_wire("agent"))
        self._input = QemuInput(engine.qmp, channel.ops, self._screen, self._driver, engine.blame)
        self._shell = SshShell(
            lambda: channel.open("ssh"),
            user=manifest.accounts.control["name"],
            key=self._image.control_key,
            host_keys=manifest.ssh_host_keys,
            desktop_user=self._spec.user,
            boot_deadline_s=BOOT_S if boots else HELLO_S,
        )
        self._greeting = Future()
        self._greeting.set_result(None)


def _take_room(spec: MachineSpec, lease: Lease | None) -> Room:
    if lease is None:
        return take_room(booting_mb(spec.memory_mb))
    file = os.fstat(lease.memory)
    return take_room(
        working_mb(spec.memory_mb),
        shared=f"{file.st_dev}:{file.st_ino}",
        shared_mb=file.st_blocks * 512 >> 20,
    )


def _end(engine: Engine, *wires: ControlChannel | GuestAgent | SshShell) -> None:
    """The process first: whatever waits for the guest then fails at once."""
    engine.close()
    for wire in wires:
        wire.close()


@functools.cache
def _reap_once(pid: int) -> None:
    """Orphans are looked for when a process starts its first machine."""
    del pid
    reap()
