"""One light desktop's processes and mounts: their start, the ways in, their end.

Responsible for what stands around the programs: namespaces, accounts, the fresh file system over
the shared one, limits, the X server. `box.sh` puts them up, `supervisor.py` is process 1 inside.

::

    this process ── setpriv ─ unshare ─ box.sh (own mounts, own process ids)
                                          ├── Xvfb, an account of its own
                                          └── bwrap ─ supervisor (root of its own user namespace)
                                                        └── programs, as the desktop account or root

Whatever ends this process ends all of it: the kernel kills `unshare`, and with it everything below.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cua_gym.errors import MachineError, MachineLost, MachineTimeout
from cua_gym.machine.contain import acts_as_root, contained, tool_path
from cua_gym.machine.network.gateway import NAMESERVER, Gateway
from cua_gym.machine.network.policy import Network
from cua_gym.machine.spawner import spawn
from cua_gym.machine.x11.bounds import Bounds
from cua_gym.machine.x11.seccomp import FILTER

__all__ = ["Link", "Sandbox", "first_id", "unusable"]

START_S = 60.0
ANSWER_S = 30.0
END_S = 10.0

PROGRAMS = ("bash", "bwrap", "mount", "nsenter", "setpriv", "tar", "unshare", "Xvfb", "xkbcomp")
_TRIAL = """
mount -t tmpfs none /tmp && mkdir /tmp/a /tmp/b /tmp/c /tmp/d && cd /tmp
mount -t overlay none d -o lowerdir=a,upperdir=b,workdir=c 2> /dev/null ||
    mount -t overlay none d -o lowerdir=a,upperdir=b,workdir=c,userxattr
"""

# Ids that no account, container or service manager hands out (systemd's UIDS-GIDS.md).
_ROOTS_FIRST_ID = 1_900_000_000
# In the namespace of a normal user 0 is himself and 1 his first subordinate id.
_USERS_FIRST_ID = 1

# What root needs for setting up, collecting, and finding what belongs to a command (PTRACE);
# nothing of it reaches out of the sandbox's namespaces.
_CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID",
    "SYS_PTRACE",
)  # fmt: skip
_RUN_BYTES = 128 << 20
_SHM_BYTES = 512 << 20


def first_id() -> int:
    """The id, where sandboxes are started, that is root inside them.

    Raises:
        MachineError: this account can give a sandbox no accounts of its own.
    """
    if os.geteuid() == 0:
        return _ROOTS_FIRST_ID
    if acts_as_root():
        return _USERS_FIRST_ID
    raise MachineError(
        "a light desktop needs accounts of its own, and this account has no user namespaces or no "
        "subordinate ids: as root, install uidmap and run `usermod --add-subuids 100000-165535 "
        "--add-subgids 100000-165535 USER`; `cua-gym doctor` says more"
    )


def unusable() -> str:
    """Why there can be no light desktops here, by trying what they stand on; empty if they can."""
    lacking = [name for name in PROGRAMS if shutil.which(name, path=tool_path()) is None]
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    try:
        first_id()
    except MachineError as error:
        return str(error)
    done = subprocess.run(
        contained(["sh", "-ec", _TRIAL]), capture_output=True, text=True, timeout=30, check=False
    )
    return "" if done.returncode == 0 else done.stderr.strip()[:300] or f"exit {done.returncode}"


class Link:
    """The answers to one request of the supervisor; close it when they are no longer wanted."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def answer(self, timeout_s: float | None) -> tuple[dict[str, Any], list[int]]:
        """The next answer and the descriptors that it brought.

        Raises:
            MachineTimeout: none came in time.
            MachineLost: the supervisor is gone.
            MachineError: it refused.
        """
        ready, _, _ = select.select([self._sock], [], [], timeout_s)
        if not ready:
            raise MachineTimeout(f"the desktop's supervisor gave no answer in {timeout_s:g} s")
        try:
            data, fds, _, _ = socket.recv_fds(self._sock, 1 << 16, 1, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            data, fds = b"", []
        if not data:
            raise MachineLost("the desktop's supervisor is gone")
        answer: dict[str, Any] = json.loads(data)
        if "error" in answer:
            raise MachineError(f"the desktop's supervisor refused: {answer['error']}")
        return answer, fds

    def cut(self) -> None:
        """Let whoever waits for an answer go."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed by the other end already

    def close(self) -> None:
        """Idempotent."""
        self._sock.close()


class Sandbox:
    """A running sandbox over a root file system.

    Args:
        root: the shared root file system, whose owners are counted from `first_id`.
        screen: (width, height) in pixels.
        memory_mb: bound for its programs, and for what they write to its disk.
        network: what its programs may reach; anything but ``"none"`` takes root.
        files: an archive that a snapshot has written, put over ``root``; None begins fresh.

    Raises:
        MachineError: a program of the host is missing, or it ended at once; with what it said.
    """

    def __init__(
        self,
        root: Path,
        *,
        screen: tuple[int, int],
        memory_mb: int,
        network: Network = "none",
        files: int | None = None,
    ) -> None:
        self._gateway = _gateway(network)
        self._bounds = Bounds.make(memory_mb)
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ready, display = os.pipe()
        supervisor = Path(__file__).with_name("supervisor.py").read_bytes()
        fds = {
            "display": _high(display),
            "control": _high(theirs.detach()),
            "filter": _high(_memory("seccomp", FILTER)),
            "supervisor": _high(_memory("supervisor", supervisor)),
        }
        if files is not None:
            fds["files"] = _high(os.dup(files))
        place: list[str] = []
        if self._gateway is not None:
            fds["names"] = _high(_memory("names", f"nameserver {NAMESERVER}\n".encode()))
            place = self._gateway.enter(lambda fd: fds.setdefault("network", _high(fd)))
        try:
            words = [
                str(Path(__file__).with_name("box.sh")), str(root), str(first_id()),
                str(memory_mb), "x".join(map(str, screen)), str(fds["display"]),
                str(fds.get("files", "-")), str(fds["control"]),
                *_options(fds),
            ]  # fmt: skip
            command = [*self._bounds.prefix(), *place, *contained(["bash", *words])]
            self._process = spawn(command, list(fds.values()))
        except BaseException as error:
            ours.close()
            os.close(ready)
            self._bounds.remove()
            if self._gateway is not None:
                self._gateway.close()
            if isinstance(error, FileNotFoundError):
                raise MachineError(
                    f"{error.filename} is not installed; run scripts/setup"
                ) from error
            raise
        finally:
            for fd in fds.values():
                os.close(fd)
        self._control = ours
        self._display_ready = ready
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)
        self._said = bytearray()

    @property
    def pid(self) -> int:
        """The process id of what holds the sandbox, for measuring."""
        return self._process.pid

    def request(self, op: str, fds: Sequence[int] = (), **arguments: Any) -> Link:
        """Ask the supervisor; see there.

        Raises:
            MachineLost: it is gone.
        """
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        data = json.dumps({"op": op, **arguments}).encode()
        try:
            with self._lock, far:
                socket.send_fds(self._control, [data], [far.fileno(), *fds])
        except OSError as error:
            near.close()
            raise MachineLost(f"the light desktop is gone: {self.why()}") from error
        return Link(near)

    def ask(self, op: str, fds: Sequence[int] = (), **arguments: Any) -> None:
        """The same for what has nothing to tell but that it is done."""
        link = self.request(op, fds, **arguments)
        try:
            link.answer(ANSWER_S)
        finally:
            link.close()

    def display(self) -> socket.socket:
        """A new connection to the X server, once it listens.

        Raises:
            MachineLost: it has ended, with what it said.
            MachineTimeout: it did not start in time.
        """
        if self._display_ready >= 0:
            said = b"-"
            while said and not said.endswith(b"\n"):  # it writes twice, and dies if it cannot
                if not select.select([self._display_ready], [], [], START_S)[0]:
                    raise MachineTimeout(f"no X server after {START_S:g} s: {self.why(0)}")
                said = os.read(self._display_ready, 16)
            os.close(self._display_ready)
            self._display_ready = -1
            if not said:
                raise MachineLost(f"the X server did not start: {self.why()}")
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(f"/proc/{self.pid}/root/tmp/.X11-unix/X0")
        except OSError as error:
            sock.close()
            raise MachineLost(f"the X server is gone: {self.why()}") from error
        return sock

    def check(self) -> None:
        """Raise a MachineLost that says why, if it has ended."""
        if self._process.poll() is not None:
            raise MachineLost(f"the light desktop is gone: {self.why()}")

    def why(self, wait_s: float = 1.0) -> str:
        """How it ended and the last it said, for an error message."""
        try:
            end = f"it ended with status {self._process.wait(wait_s)}"
        except subprocess.TimeoutExpired:
            end = "it still runs"
        said = self._stderr()
        return "; ".join(part for part in (end, self._bounds.hit(), said) if part)

    def busy(self) -> bool:
        """Whether any program of it runs, would run, or waits for a disk just now."""
        waiting = [self.pid]
        while waiting:
            pid = waiting.pop()
            for thread in Path(f"/proc/{pid}/task").glob("*"):
                try:
                    state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
                    waiting += map(int, (thread / "children").read_text().split())
                except OSError:
                    continue  # it has just ended
                if state in "RD":
                    return True
        return False

    def save(self, target: int) -> None:
        """Write an archive of all files that differ from the shared ones to a descriptor.

        Raises:
            MachineError: tar failed; says why.
        """
        joined = (
            ["--mount"] if os.geteuid() == 0 else ["--user", "--mount", "--preserve-credentials"]
        )
        done = subprocess.run(
            ["nsenter", f"--target={self.pid}", *joined, "--", "tar", "-c", "--xattrs",
             "--xattrs-include=*", "--numeric-owner", "-C", "/tmp/box/upper", "."],
            stdout=target, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        if done.returncode > 1:  # 1: a file changed while it was read
            self.check()
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise MachineError(f"tar could not save the desktop's files: {said}")

    def close(self) -> None:
        """End all of it and wait for the end. Idempotent."""
        self._kill()
        self._stderr()
        if self._process.stderr is not None:
            self._process.stderr.close()
        if self._display_ready >= 0:
            os.close(self._display_ready)
            self._display_ready = -1
        self._control.close()
        self._bounds.remove()
        if self._gateway is not None:
            self._gateway.close()

    def _kill(self) -> None:
        """Kill the first process of the sandbox's own: `unshare` then ends when all are gone.

        Were `unshare` killed, they would end too, but later, and as somebody else's zombies.
        """
        try:
            with Path(f"/proc/{self.pid}/task/{self.pid}/children").open() as file:
                first = int(file.read())
            if self._process.poll() is None:  # so the child's number is not another's by now
                os.kill(first, signal.SIGKILL)
                self._process.wait(END_S)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass  # it is just starting, has ended, or hangs
        self._process.kill()
        self._process.wait()

    def _stderr(self) -> str:
        stream = self._process.stderr
        if stream is not None and not stream.closed:
            while data := stream.read(65536):
                self._said += data
                del self._said[:-8192]
        return self._said.decode(errors="replace").strip()


def _gateway(network: Network) -> Gateway | None:
    if network == "none":
        return None
    if os.geteuid() != 0:
        raise MachineError(
            "a light desktop with a network can only be started by root; use the backend qemu"
        )
    return Gateway(network)


def _options(fds: dict[str, int]) -> list[str]:
    """bwrap's options that are not the same for every sandbox."""
    options = ["--cap-drop", "ALL"]
    if "network" not in fds:
        options += ["--unshare-net"]  # nothing but lo
    for name in _CAPABILITIES:
        options += ["--cap-add", f"CAP_{name}"]
    options += ["--size", str(_RUN_BYTES), "--perms", "0755", "--tmpfs", "/run"]
    options += ["--size", str(_SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"]
    options += ["--ro-bind-data", str(fds["supervisor"]), "/run/supervisor.py"]
    if "names" in fds:
        options += ["--ro-bind-data", str(fds["names"]), "/run/resolv.conf"]
    return [*options, "--seccomp", str(fds["filter"])]


def _high(fd: int) -> int:
    """The same under a number that `box.sh` has no use for."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(fd)
    return high


def _memory(name: str, data: bytes) -> int:
    """A descriptor of a nameless file, at its beginning."""
    fd = os.memfd_create(f"cua-gym-{name}")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
