"""A guest's Shell over SSH: commands as the desktop account, root or another, and its files.

Responsible for whose account a command runs as, for whole folders streamed as tar, and for tying
`ssh_connection`, `commands`, `sftp` and `archive` together. Leaves the road to the guest to
``connect`` and the desktop's environment to ``/usr/lib/cua-gym/as-user`` in the guest::

    as-user [NAME=VALUE]... PROGRAM [ARGUMENT]...

Background jobs: see `cua_gym.machine.commands`. There is no terminal unless one is asked for, so a
program that asks for a password (``sudo`` without NOPASSWD) fails at once. When the connection
ends, what runs lives on until it writes, but a terminal goes and takes its foreground along.
"""

from __future__ import annotations

import errno
import math
import os
import shlex
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import paramiko

from cua_gym.errors import MachineError, MachineLost, MachineTimeout, OutOfSpace
from cua_gym.machine.archive import TAR_CREATE, pack, unpack
from cua_gym.machine.base import Completed, Stream
from cua_gym.machine.commands import (
    LINE_LIMIT,
    TERM,
    TOKEN_NAME,
    Command,
    argv_of,
    env_words,
    kill_argv,
    launcher,
    new_token,
    script_of,
)
from cua_gym.machine.process import Running, check_size
from cua_gym.machine.sftp import SftpFiles, guest_path
from cua_gym.machine.sftp_shell import SftpShell, fitting
from cua_gym.machine.ssh_connection import Pace, SshConnection
from cua_gym.turns import Stop

__all__ = ["AS_USER", "SshShell"]

AS_USER = "/usr/lib/cua-gym/as-user"
SFTP_SERVER = "/usr/lib/openssh/sftp-server"

_READ = 64 << 10


# What `AS_USER` started holds still while it is hunted: a fork bomb outruns every look at it, and
# one look at its thousand processes took 8 s instead of 0.4. SIGKILL reaches what is frozen.
_STILL = (
    "for f in /sys/fs/cgroup/user.slice/*/cua-gym.scope/cgroup.freeze; "
    'do [ ! -w "$f" ] || echo {} >"$f"; done'
)


class SshShell(SftpShell):
    """The `Shell` of a machine with an SSH server.

    Args:
        connect: returns a connected socket to that server; OSError means "not yet".
        user: the login account, ``root`` where files and commands of other accounts are wanted.
        key: its private key file.
        host_keys: the server's public keys (``"ssh-ed25519 AAAA..."``), any one accepted.
        desktop_user: the account that ``user=None`` stands for, entered through `AS_USER`; None
            or the login account itself: commands run as they come.
        boot_deadline_s: how long connecting may retry while the guest boots; connecting again to
            a guest that had answered gets seconds.
        stall_s: how long a transfer may stand still; one that crawls ends too (`Pace`).
    """

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        *,
        user: str,
        key: Path,
        host_keys: Sequence[str],
        desktop_user: str | None,
        boot_deadline_s: float = 180.0,
        stall_s: float = 30.0,
    ) -> None:
        desktop = desktop_user or user
        self._connection = SshConnection(
            connect,
            user=user,
            key=key,
            host_keys=host_keys,
            boot_deadline_s=boot_deadline_s,
            stall_s=stall_s,
        )
        own = None if desktop == user else f"exec {AS_USER} {SFTP_SERVER}".encode()
        super().__init__(
            SftpFiles(self._connection),
            SftpFiles(self._connection, own),
            control=user,
            desktop=desktop,
        )

    def warm(self) -> None:
        """Start connecting in the background."""
        self._connection.warm()

    def disconnect(self) -> None:
        """End the connection (before a snapshot, say); the next call makes a new one.

        Commands under way fail with `MachineLost`; their processes live on.
        """
        self._connection.disconnect()

    def close(self) -> None:
        """End it for good. Idempotent."""
        self._connection.close()

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
        """See `cua_gym.machine.base.Shell.run`.

        ``timeout_s`` does not count connecting; a guest that had answered and is gone is waited
        for no longer than another ``timeout_s``, or some seconds.
        """
        running = self._start(command, user, cwd, env or {}, None, wait_s=timeout_s)
        return running.complete(stdin, timeout_s, stop)

    def start(
        self,
        command: str | Sequence[str],
        *,
        user: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        terminal: tuple[int, int] | None = None,
        keep_bytes: int | None = None,
    ) -> Running:
        """See `cua_gym.machine.base.Shell.start`.

        Each needs a session of the server while it runs (``MaxSessions``), and one more to kill.
        """
        return self._start(command, user, cwd, env or {}, terminal, keep_bytes=keep_bytes)

    def _start(
        self,
        command: str | Sequence[str],
        user: str | None,
        cwd: str | None,
        env: Mapping[str, str],
        terminal: tuple[int, int] | None,
        *,
        keep_bytes: int | None = None,
        wait_s: float = math.inf,
    ) -> Running:
        argv = argv_of(command)
        if terminal is not None:
            check_size(terminal)
            env = {"TERM": TERM, **env}
        token = new_token()
        prepared = self._command(token, argv, user, cwd, env, terminal is not None)
        if len(prepared.line) > LINE_LIMIT:
            script = f"/tmp/.cua-gym-{token}"
            prepared = fitting(
                replace(
                    self._command(token, ["bash", script], user, cwd, env, terminal is not None),
                    script=script,
                )
            )
            self.write(script, script_of(command), user=user, mode=0o600)
        channel = self._exec(prepared.line, wait_s, terminal)
        wire = _Wire(channel, kill=lambda: self._kill(token), status=lambda: self._status(channel))
        return Running(prepared, wire, terminal=terminal is not None, keep_bytes=keep_bytes)

    def _command(
        self,
        token: str,
        argv: Sequence[str],
        user: str | None,
        cwd: str | None,
        env: Mapping[str, str],
        terminal: bool,
    ) -> Command:
        account = user or self._desktop
        if account == self._control:
            return Command(token, argv, cwd, env, terminal=terminal)
        if account == self._desktop:
            words = [AS_USER, f"{TOKEN_NAME}={token}"]
            # The caller's variables are set by a program that is the account already: as-user's
            # own shell is root, and would take uid=0 or LD_PRELOAD to heart.
            if cwd or env:
                words += env_words(cwd, env)
            if "=" in argv[0]:  # as-user or env would take it for one more variable
                words += launcher(terminal)
            words += argv
            guard: tuple[str, ...] = ("test", "-x", AS_USER)
        else:
            inner = env_words(cwd, {**env, TOKEN_NAME: token})
            program = shlex.join(["exec", *inner, *launcher(terminal), *argv])
            # with -c runuser makes a session of its own, which has no terminal
            how = "--session-command" if terminal else "-c"
            words = ["runuser", "-l", account, "-s", "/bin/sh", how, program]
            guard = ("id", "-u", "--", account)
        if terminal:  # programs that open it by its name (tmux) want it to be theirs
            words = ["sh", "-c", 'chown -- "$0" "$SSH_TTY"; exec "$@"', account, *words]
        return Command(token, words, guard=guard, terminal=terminal)

    def _kill(self, token: str) -> None:
        line = (
            f"{_STILL.format(1)}; {shlex.join(kill_argv(token))}; c=$?; {_STILL.format(0)}; exit $c"
        )
        channel = self._exec(line.encode())
        try:
            self._status(channel)
        finally:
            channel.close()

    def _exec(
        self, line: bytes, wait_s: float = math.inf, terminal: tuple[int, int] | None = None
    ) -> paramiko.Channel:
        def request(channel: paramiko.Channel) -> None:
            if terminal is not None:
                channel.get_pty(TERM, *terminal)
            channel.exec_command(line)

        return self._connection.channel(request, wait_s)

    def _status(self, channel: paramiko.Channel) -> int:
        """Exit status of a channel whose command has ended, or should have."""
        if not channel.status_event.wait(self._connection.stall_s):
            raise MachineTimeout(f"the guest told no exit status in {self._connection.stall_s:g} s")
        if channel.exit_status >= 0:
            return int(channel.exit_status)
        if not channel.eof_received:
            raise MachineLost("the SSH connection broke while a command ran")
        return 137  # the wrapper itself was killed; the server's signal name is not kept

    def put_dir(self, source: Path, path: str, *, user: str | None = None) -> None:
        """See `cua_gym.machine.base.Shell.put_dir`."""
        if not source.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(source))
        owner = self._owner(user)
        self._files.make_folders(path, owner=owner)
        channel = self._tar(
            ["tar", "--extract", "--file=-", "--numeric-owner", "--preserve-permissions"], path
        )
        try:
            with self._connection.typed(f"sending folder {path!r}"):
                pace = self._connection.pace()
                try:
                    pack(source, _ChannelWriter(channel, pace), owner=owner)
                    channel.shutdown_write()
                except OSError:
                    if channel.exit_status < 0:
                        raise
                    # tar ended early; its own words say why
                complaint = _read_all(channel.recv_stderr, pace)
            if status := self._status(channel):
                text = complaint.decode("utf-8", "replace").strip()
                if "No space left" in text or "Wrote only" in text:  # a short write: full
                    raise OutOfSpace(
                        f"the guest's file system at {path!r} is full, "
                        f"{self._files.free_bytes(path)} bytes free: {text[:500]}"
                    )
                raise MachineError(f"tar in the guest failed ({status}) at {path!r}: {text[:500]}")
        finally:
            channel.close()

    def get_dir(self, path: str, target: Path, *, limit_bytes: int) -> None:
        """See `cua_gym.machine.base.Shell.get_dir` and `cua_gym.machine.archive.unpack`."""
        kind = self._files.stat(path).kind
        if kind != "dir":
            raise NotADirectoryError(errno.ENOTDIR, f"it is a {kind}, not a folder", path)
        channel = self._tar(TAR_CREATE, path, ".")
        try:
            with self._connection.typed(f"fetching folder {path!r}"):
                pace = self._connection.pace()
                unpack(_ChannelReader(channel, pace), target, limit_bytes=limit_bytes)
                complaint = _read_all(channel.recv_stderr, pace)
            status = self._status(channel)
            if status > 1:  # 1: a file changed while it was read
                text = complaint.decode("utf-8", "replace").strip()
                raise MachineError(f"tar in the guest failed ({status}) at {path!r}: {text[:500]}")
        finally:
            channel.close()

    def _tar(self, words: Sequence[str], path: str, *rest: str) -> paramiko.Channel:
        line = shlex.join(["exec", *words, f"--directory={guest_path(path)}", *rest])
        return self._exec(line.encode("utf-8", "surrogateescape"))


class _Wire:
    """A `cua_gym.machine.process.Wire` over one channel."""

    def __init__(
        self, channel: paramiko.Channel, *, kill: Callable[[], None], status: Callable[[], int]
    ) -> None:
        self._channel = channel
        self.kill = kill
        self.status = status
        channel.settimeout(None)

    def read(self, stream: Stream) -> bytes:
        receive = self._channel.recv if stream == "stdout" else self._channel.recv_stderr
        return bytes(receive(_READ))

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        with _as_os_error():
            while left:
                left = left[self._channel.send(left) :]

    def end_input(self) -> None:
        with _as_os_error():
            self._channel.shutdown_write()

    def resize(self, columns: int, rows: int) -> None:
        with _as_os_error():
            self._channel.resize_pty(columns, rows)

    def stop(self) -> None:
        self._channel.close()

    def free(self) -> None:
        """Nothing is left: the channel is closed."""


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except (EOFError, paramiko.SSHException) as error:
        raise ConnectionError(str(error)) from error


class _ChannelWriter:
    def __init__(self, channel: paramiko.Channel, pace: Pace) -> None:
        self._channel, self._pace = channel, pace

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            sent = self._channel.send(left)
            if not sent:
                raise OSError("the channel is closed")
            self._pace.moved(sent)
            left = left[sent:]


class _ChannelReader:
    def __init__(self, channel: paramiko.Channel, pace: Pace) -> None:
        self._channel, self._pace = channel, pace

    def read(self, size: int) -> bytes:
        data = bytes(self._channel.recv(size))
        self._pace.moved(len(data))
        return data


def _read_all(read: Callable[[int], bytes], pace: Pace) -> bytes:
    parts = bytearray()
    while part := read(_READ):
        parts += part
        pace.moved(len(part))
    return bytes(parts)
