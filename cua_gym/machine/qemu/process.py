"""One QEMU process: its command line as data, its launch, its end.

Responsible for privilege (dropped when started by root), for the tie to the owner (parent-death
signal, owner's identity in the name) and for the descriptors that cross. It knows no QMP.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cua_gym.errors import MachineError
from cua_gym.machine.identity import owner_name
from cua_gym.machine.qemu.disk import chain
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.spawner import spawn

__all__ = [
    "SANDBOX_UID",
    "CommandLine",
    "QemuProcess",
    "booting_mb",
    "drop_privileges",
    "working_mb",
]

# No account, no file and no other program has it; below 65536 so that it exists in user
# namespaces, outside the ranges that Debian and systemd hand out.
SANDBOX_UID = 60999

SECCOMP = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
STDERR_LIMIT = 8192

# QEMU itself with TCG's code cache, which `CommandLine.hardware` bounds to 128 MB.
QEMU_MB = 256


@dataclass(slots=True)
class CommandLine:
    """A QEMU command line and the descriptors it names.

    ``place`` is a command prefix that puts QEMU into a network namespace.

    Descriptors added here are closed in this process once QEMU has them.
    """

    binary: str
    arguments: list[str] = field(default_factory=list)
    place: Sequence[str] = ()
    fds: list[int] = field(default_factory=list)
    _fdsets: int = 0

    def keep(self, fd: int) -> int:
        """Hand ``fd`` to QEMU under its own number."""
        self.fds.append(fd)
        return fd

    def fdset(self, fd: int) -> int:
        """Number of a new fd set with ``fd``, for a file name ``/dev/fdset/N``."""
        self._fdsets += 1
        self.arguments += ["-add-fd", f"fd={self.keep(fd)},set={self._fdsets}"]
        return self._fdsets

    def socket(self, chardev: str) -> socket.socket:
        """Our end of a new socket pair whose other end is QEMU's ``chardev``."""
        ours, theirs = socket.socketpair()
        fd = self.keep(theirs.detach())
        self.arguments += ["-chardev", f"socket,id={chardev},fd={fd}"]
        return ours

    def hardware(
        self,
        hardware: Hardware,
        *,
        memory: int | None,
        read_only_memory: bool,
        overlay: int,
        deltas: Iterable[int],
        base: int,
        display: bool,
        translation_mb: int,
        network: bool,
    ) -> None:
        """Everything but the wires.

        Args:
            memory: descriptor of a state's memory, mapped privately; None for fresh memory.
            read_only_memory: open that file read-only (QEMU 9 and newer can).
            translation_mb: bound of TCG's code cache.
            network: the guest may reach what QEMU can.
        """
        size = f"size={hardware.memory_mb}M"
        if memory is None:
            backend = f"memory-backend-ram,id=ram0,{size}"
        else:
            path = f"/proc/self/fd/{self.keep(memory)}"
            backend = f"memory-backend-file,id=ram0,{size},share=off,mem-path={path}"
            if read_only_memory:
                backend += ",readonly=on,rom=off"
        accelerator = hardware.accelerator
        if accelerator == "tcg":
            accelerator += f",thread=multi,tb-size={translation_mb}"
        layers = chain(
            self.fdset(overlay), [self.fdset(delta) for delta in deltas], self.fdset(base)
        )
        self.arguments += [
            "-nodefaults", "-no-user-config", "-no-reboot",
            "-sandbox", SECCOMP,
            "-accel", accelerator,
            "-object", backend,
            "-object", "rng-random,id=entropy,filename=/dev/urandom",
            "-netdev", f"user,id=net,restrict={'off' if network else 'on'},ipv6=off",
            "-display", "dbus,p2p=yes" if display else "none",
            "-vnc", "none",  # listens nowhere; who wants it hands QEMU a socket
            *layers,
            *hardware.arguments(),
        ]  # fmt: skip

    def close(self) -> None:
        """Close our copies of the descriptors."""
        while self.fds:
            os.close(self.fds.pop())


class QemuProcess:
    """A running QEMU that ends with its owner."""

    def __init__(self, command: CommandLine, *, kvm_group: int | None = None) -> None:
        """Launch it; the command's descriptors move into it.

        Raises:
            MachineError: QEMU or ``setpriv`` is not installed.
        """
        name = ["-name", f"guest={owner_name()}"]
        words = [*command.place, *drop_privileges(kvm_group), command.binary]
        words += [*name, *command.arguments]
        try:
            self._process = spawn(words, command.fds)
        except FileNotFoundError as error:
            raise MachineError(
                f"{error.filename} is not installed; apt install qemu-system-x86 util-linux"
            ) from error
        finally:
            command.close()
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        self._stderr = bytearray()
        self._reading = threading.Lock()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ended(self, within_s: float) -> bool:
        """Whether it has ended, or does so in that time."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def why(self, wait_s: float = 1.0) -> str:
        """How the process ended and the last it said on stderr, for an error message."""
        try:
            code: int | None = self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            code = None
        said = self.stderr()
        if code is None:
            end = "it still runs"
        elif code < 0:
            end = f"it was killed by {signal.Signals(-code).name}"
        else:
            end = f"it exited with status {code}"
        return end + (f" and said: {said}" if said else "")

    def stderr(self) -> str:
        """The last of what it said; a pipe that is never read would block it."""
        stream = self._process.stderr
        with self._reading:
            if stream is not None and not stream.closed:
                while data := stream.read(65536):
                    self._stderr += data
                    del self._stderr[:-STDERR_LIMIT]
            return self._stderr.decode(errors="replace").strip()

    def kill(self) -> None:
        """End it and wait for the end; idempotent."""
        self._process.kill()
        self._process.wait()
        self.stderr()
        with self._reading:
            if self._process.stderr is not None:
                self._process.stderr.close()


def working_mb(memory_mb: int) -> int:
    """Private memory of a restored machine at work, in MB; what it maps of its state is not in it.

    Of a guest of 2048 MB: 160 at rest, 300 after a task's setup, 310 to 660 after work in an
    office program and an editor.
    """
    return memory_mb // 4 + QEMU_MB


def booting_mb(memory_mb: int) -> int:
    """The same of a machine at its first boot, which fills its memory: 1.5 to 1.7 GB of 2."""
    return memory_mb + QEMU_MB


def drop_privileges(kvm_group: int | None = None) -> list[str]:
    """Command prefix that ties a process to us and, for root, makes it nobody in particular.

    ``setpriv`` sets the parent-death signal after the change of user, which would clear it.
    """
    words = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        words += ["--reuid", str(SANDBOX_UID), "--regid", str(SANDBOX_UID), "--no-new-privs"]
        words += ["--clear-groups"] if kvm_group is None else ["--groups", str(kvm_group)]
    return [*words, "--"]
