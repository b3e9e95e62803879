"""A real OpenSSH server of the test's own: loopback port, keys and configuration in a folder."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cua_gym.machine.ssh import SshShell

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def make_key(path: Path) -> str:
    """A new ed25519 key; returns its public line."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True
    )
    return path.with_suffix(".pub").read_text().strip()


class Sshd:
    """One server in the foreground, its sessions below it."""

    def __init__(self, folder: Path, host_key: Path, authorized: str) -> None:
        self.folder = folder
        self._authorized = folder / "authorized_keys"
        self._authorized.write_text(authorized + "\n")
        self._processes: list[subprocess.Popen[bytes]] = []
        self.config = folder / "sshd_config"
        self.config.write_text(
            f"HostKey {host_key}\nAuthorizedKeysFile {self._authorized}\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
            f"PidFile none\nPermitRootLogin prohibit-password\nMaxSessions 100\n"
            "Subsystem sftp internal-sftp\n"
            "SetEnv SHLVL=2\n"  # or bash reads the tester's own ~/.bashrc for every command
        )

    def connect(self) -> socket.socket:
        """A socket pair whose other end is a fresh ``sshd -i``: no port, nothing shared."""
        ours, theirs = socket.socketpair()
        with theirs, (self.folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [SSHD, "-i", "-e", "-f", str(self.config)],
                    stdin=theirs,
                    stdout=theirs,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return ours

    def signal(self, number: int) -> None:
        """Send a signal to the newest connection's server processes, not to their commands."""
        _signal_servers(self._processes[-1].pid, number)

    @property
    def connections(self) -> int:
        """How many have been opened."""
        return len(self._processes)

    def close(self) -> None:
        """End every server process."""
        for process in self._processes:
            if process.poll() is None:
                _signal_servers(process.pid, signal.SIGKILL)
            process.wait()


def _signal_servers(pid: int, number: int) -> None:
    for each in [*_children(pid), pid]:
        try:
            if b"sshd" in Path("/proc", str(each), "comm").read_bytes():
                os.kill(each, number)
        except (FileNotFoundError, ProcessLookupError):
            pass  # ended meanwhile


def _children(pid: int) -> list[int]:
    listing = Path("/proc", str(pid), "task", str(pid), "children").read_text()
    found = [int(child) for child in listing.split()]
    return [*(grandchild for child in found for grandchild in _children(child)), *found]


@contextmanager
def running(folder: Path) -> Iterator[tuple[Sshd, Path, str]]:
    """(server, private client key, public host key line)."""
    Path("/run/sshd").mkdir(exist_ok=True)  # the server's own empty folder
    host = make_key(folder / "host")
    client = make_key(folder / "client")
    server = Sshd(folder, folder / "host", client)
    try:
        yield server, folder / "client", host
    finally:
        server.close()


LOGIN = getpass.getuser()


def shell_of(server: tuple[Sshd, Path, str], *, stall_s: float = 30.0) -> SshShell:
    """A shell over it, for its own account."""
    sshd, key, host = server
    return SshShell(
        sshd.connect,
        user=LOGIN,
        key=key,
        host_keys=[host],
        desktop_user=None,
        boot_deadline_s=20,
        stall_s=stall_s,
    )
