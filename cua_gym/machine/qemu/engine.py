"""One QEMU process with its wires joined: started fresh or from a state, paused, saved, ended.

Responsible for what happens between the command line and a running guest. It knows no guest
software: the agent's and the control channel's sockets are handed to `machine.py`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from cua_gym.errors import MachineError, MachineLost, MachineTimeout, OutOfSpace
from cua_gym.machine.network.gateway import Gateway
from cua_gym.machine.network.policy import Network
from cua_gym.machine.qemu.accelerator import Host
from cua_gym.machine.qemu.disk import BaseDisk, new_overlay
from cua_gym.machine.qemu.display import DBusDisplay
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.process import CommandLine, QemuProcess
from cua_gym.machine.qemu.qmp import Qmp, QmpRefused
from cua_gym.machine.qemu.screen import LiveScreen
from cua_gym.machine.qemu.screendump import PolledDisplay
from cua_gym.machine.qemu.states import Draft, Lease

__all__ = ["Engine"]

START_TIMEOUT_S = 30.0
LOAD_TIMEOUT_S = 60.0
SAVE_TIMEOUT_S = 180.0
_FINALIZED_S = 5.0
_PIPE_BYTES = 1 << 20


class Engine:
    """A QEMU process. Every method raises `MachineLost` once it has ended."""

    def __init__(
        self,
        host: Host,
        hardware: Hardware,
        base: BaseDisk,
        screen: LiveScreen,
        *,
        run_dir: Path,
        lease: Lease | None = None,
        network: Network = "none",
        translation_mb: int = 128,
    ) -> None:
        """Start it; with ``lease``, in that state, else at power-on. Not yet running: `resume`.

        Args:
            lease: stays the caller's; its files are opened anew here.
            network: what the guest may reach.
        """
        self._screen = screen
        self._run_dir = run_dir
        self._events: dict[str, Mapping[str, Any]] = {}
        self._migration = ""
        self._display: DBusDisplay | PolledDisplay | None = None
        self._closed = False
        overlay = new_overlay(run_dir, base.virtual_bytes)  # first: it may have no room
        command = CommandLine(host.binary)
        qmp_socket = command.socket("qmp")
        self._wires = {name: command.socket(name) for name in ("agent", "control")}
        # Kept to copy from when a state is saved; it is the file's only other user.
        self._overlay = os.dup(overlay)
        self.deltas = [os.dup(fd) for fd in lease.deltas] if lease else []
        self._gateway: Gateway | None = None
        try:
            if network != "none":
                self._gateway = Gateway(network)
                command.place = self._gateway.enter(command.keep)
            command.arguments += ["-mon", "chardev=qmp,mode=control", "-S"]
            if lease:
                command.arguments += ["-incoming", "defer"]
            command.hardware(
                hardware,
                memory=_reopen(lease.memory, host.read_only_memory) if lease else None,
                read_only_memory=host.read_only_memory,
                overlay=overlay,
                deltas=[os.dup(fd) for fd in self.deltas],
                base=os.open(base.path, os.O_RDONLY | os.O_CLOEXEC),
                display=host.dbus_display,
                translation_mb=translation_mb,
                network=network != "none",
            )
            kvm_group = host.kvm_group if hardware.accelerator == "kvm" else None
            self._process = QemuProcess(command, kvm_group=kvm_group)
        except BaseException:
            command.close()
            qmp_socket.close()
            self._close_files()
            raise
        self._qmp = Qmp(qmp_socket, on_event=self._event, why_lost=self._why_lost)
        try:
            self._qmp.greet(START_TIMEOUT_S)
            self._show(host.dbus_display)
            self._capability("events")
            if lease:
                self._load(lease)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """QEMU's process id."""
        return self._process.pid

    @property
    def qmp(self) -> Qmp:
        """The control wire, for input."""
        return self._qmp

    def take_wire(self, name: Literal["agent", "control"]) -> socket.socket:
        """Our end of one of the guest's serial ports; it is the caller's from now on."""
        return self._wires.pop(name)

    def vnc_client(self) -> socket.socket:
        """Our end of a new connection to QEMU's VNC server."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._qmp.execute("getfd", {"fdname": "vnc"}, fds=[theirs.fileno()])
                self._qmp.execute("add_client", {"protocol": "vnc", "fdname": "vnc"})
        except BaseException:
            ours.close()
            raise
        return ours

    def resume(self) -> None:
        """Let the guest's processors run."""
        until = time.monotonic() + _FINALIZED_S
        while True:
            try:
                self._qmp.execute("cont")
                return
            except QmpRefused as error:
                # QEMU tells that a save has failed a moment before it is done with it.
                if "not finalized" not in str(error) or time.monotonic() >= until:
                    raise
            time.sleep(0.01)

    def pause(self) -> None:
        """Stop the guest's processors and flush its disk layer."""
        self._qmp.execute("stop", timeout_s=30.0)

    def nudge(self) -> None:
        """Make QEMU look at the guest's screen now instead of at its next 30 ms tick.

        A screendump refreshes the console *before* it opens its file; this one's file cannot be
        opened. The order is not documented: a test keeps watch.
        """
        try:
            self._qmp.execute("screendump", {"filename": "/"})
        except QmpRefused:
            pass
        self._raise_trouble()

    def check(self) -> None:
        """Raise why the guest no longer runs, if so."""
        if self._closed:
            raise MachineLost("this machine is closed")
        self._qmp.drain()  # and at its end, MachineLost
        self._raise_trouble()

    def blame(self) -> None:
        """Raise the cause if a wire was cut because QEMU ended, which takes it a moment."""
        if not self._closed and self._process.ended(within_s=1.0):
            self.check()

    def save(self, draft: Draft, memory_bytes: int) -> None:
        """Write this moment into ``draft``; the guest must be paused and stays so.

        Afterwards it may go on, and `Draft.split` makes a state of what was written.

        Raises:
            OutOfSpace: the state's disk is full.
        """
        reader, writer = _pipe()
        failure: list[Exception] = []

        def store() -> None:
            try:
                while os.splice(reader, draft.stream, _PIPE_BYTES):
                    pass
            except OSError as error:  # the saving thread's to raise
                failure.append(error)
            finally:
                os.close(reader)  # QEMU's side fails at once instead of filling the pipe

        thread = threading.Thread(target=store, name="cua-gym-save", daemon=True)
        thread.start()
        try:
            # The default rate, made for networks, would stretch the pause.
            self._qmp.execute("migrate-set-parameters", {"max-bandwidth": 1 << 40})
            self._qmp.execute("getfd", {"fdname": "state"}, fds=[writer])
        finally:
            os.close(writer)
            # Without a writer the reader ends, whatever happened.
        try:
            self._migrate("migrate", SAVE_TIMEOUT_S)
        except MachineError as error:
            if isinstance(error, MachineTimeout):
                self.close()  # it hangs, with the other end of the pipe in its hands
            thread.join()
            raise draft.typed(failure[0] if failure else error, memory_bytes) from error
        thread.join()
        if failure:
            raise draft.typed(failure[0], memory_bytes) from failure[0]
        try:
            _copy_sparse(self._overlay, draft.disk)
        except OSError as error:
            raise draft.typed(error, memory_bytes) from error

    def close(self) -> None:
        """End the process and everything that hangs on it; idempotent, a few milliseconds."""
        if self._closed:
            return
        self._closed = True
        self._screen.fail(MachineLost("this machine is closed"))
        if self._display is not None:
            self._display.stop()
        self._process.kill()
        if self._display is not None:
            self._display.close()
        self._qmp.close()
        self._close_files()

    def _close_files(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
        while self._wires:
            self._wires.popitem()[1].close()
        while self.deltas:
            os.close(self.deltas.pop())
        if self._overlay >= 0:
            os.close(self._overlay)
            self._overlay = -1

    def _show(self, dbus: bool) -> None:
        self._screen.start(self.nudge)
        kind = DBusDisplay if dbus else PolledDisplay
        self._display = kind(self._qmp, self._screen, self._lost)

    def _load(self, lease: Lease) -> None:
        reader, writer = _pipe()
        device = os.dup(lease.device)

        def pump() -> None:
            try:
                at, size = 0, os.fstat(device).st_size
                while at < size:
                    at += os.sendfile(writer, device, at, size - at)
            except BrokenPipeError:
                pass  # QEMU gave up reading and reports why
            finally:
                os.close(writer)
                os.close(device)

        try:
            self._qmp.execute("getfd", {"fdname": "state"}, fds=[reader])
        except BaseException:
            os.close(writer)
            os.close(device)
            raise
        finally:
            os.close(reader)
        threading.Thread(target=pump, name="cua-gym-load", daemon=True).start()
        self._migrate("migrate-incoming", LOAD_TIMEOUT_S)

    def _migrate(self, command: str, timeout_s: float) -> None:
        """Run a migration over the descriptor named ``state`` to its end."""
        self._migration = ""
        self._qmp.execute(command, {"uri": "fd:state"})
        ends = ("completed", "failed", "cancelled")
        try:
            self._qmp.wait_event(lambda: self._migration in ends, command, timeout_s)
        except MachineTimeout:
            self._raise_trouble()
            raise
        if self._migration != "completed":
            reason = self._qmp.execute("query-migrate").get("error-desc", "no reason given")
            raise MachineError(f"QEMU could not {command}: {reason}; {self._process.stderr()}")

    def _capability(self, name: str) -> None:
        capability = {"capability": name, "state": True}
        self._qmp.execute("migrate-set-capabilities", {"capabilities": [capability]})

    def _event(self, name: str, data: Mapping[str, Any]) -> None:
        if name == "MIGRATION":
            self._migration = data["status"]
        else:
            self._events[name] = data

    def _raise_trouble(self) -> None:
        if io_error := self._events.get("BLOCK_IO_ERROR"):
            if io_error.get("nospace"):
                status = os.statvfs(self._run_dir)
                free = status.f_bavail * status.f_frsize >> 20
                used = os.fstat(self._overlay).st_blocks * 512 >> 20
                raise OutOfSpace(
                    f"the guest's disk overlay has no room to grow: it holds {used} MiB and "
                    f"{self._run_dir} has {free} MiB free. Free some, or set CUA_GYM_RUN_DIR"
                )
            raise MachineLost(f"the guest's disk failed on the host: {io_error.get('reason')}")
        if "GUEST_PANICKED" in self._events:
            raise MachineLost("the guest's kernel panicked")

    def _why_lost(self) -> str:
        if (shutdown := self._events.get("SHUTDOWN")) and shutdown.get("guest"):
            return f"the guest ended itself ({shutdown.get('reason')})"
        return self._process.why()

    def _lost(self, what: str) -> MachineError:
        try:
            self._qmp.drain()  # the last event may say why
        except MachineLost as error:
            return error
        return MachineLost(f"QEMU is gone: {'; '.join(filter(None, (what, self._why_lost())))}")


def _reopen(memory: int, read_only: bool) -> int:
    """The state's memory for one process; QEMU before 9 wants it writable to map it privately."""
    return os.open(
        f"/proc/self/fd/{memory}", (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC
    )


def _pipe() -> tuple[int, int]:
    """Reading and writing end, with a large buffer where the account may have one."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except PermissionError:
        pass  # this account's pipes are too many already; a small one is only slower
    return reader, writer


def _copy_sparse(source: int, target: int) -> None:
    """Copy a file, holes left out, between any two file systems."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    at = 0
    while at < size:
        try:
            at = os.lseek(source, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole is left
            raise
        end = os.lseek(source, at, os.SEEK_HOLE)
        while at < end:
            at += os.pwrite(target, os.pread(source, min(end - at, _PIPE_BYTES), at), at)
