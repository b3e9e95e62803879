"""Single files of a guest over SFTP, names kept byte for byte.

Responsible for reading, atomic writing, listing and the meaning of the server's errors. Leaves
the connection to `ssh_connection`, whole folders and removal to `ssh`.

paramiko's own file objects are not used for data: pipelined writes lose the error of a full
disk, and prefetching leaves a spinning thread behind when the server stalls.

Source: draft-ietf-secsh-filexfer-02; OpenSSH PROTOCOL section 4 (``posix-rename``, ``statvfs``).
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat as stat_module
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import paramiko
from paramiko import sftp

from cua_gym.errors import MachineError, MachineLost, MachineTimeout, OutOfSpace
from cua_gym.machine.base import FileStat
from cua_gym.machine.ssh_connection import Pace, SshConnection

__all__ = ["SftpFiles", "file_stat", "guest_path"]

_CHUNK = 32 << 10  # every server takes this much in one packet
_WINDOW = 64  # requests under way; OpenSSH's own limit
_STATVFS_NUMBERS = 11


def guest_path(path: str) -> str:
    """``path`` without trailing slashes.

    Raises:
        ValueError: it is relative (to which account's home?) or holds a NUL.
    """
    if not path.startswith("/") or "\0" in path:
        raise ValueError(f"a guest path must be absolute and without NUL: {path!r}")
    return path.rstrip("/") or "/"


def file_stat(name: str, mode: int, size: int, mtime: float) -> FileStat:
    """A `FileStat` from POSIX numbers."""
    kind: Literal["file", "dir", "link", "other"] = "other"
    if stat_module.S_ISREG(mode):
        kind = "file"
    elif stat_module.S_ISDIR(mode):
        kind = "dir"
    elif stat_module.S_ISLNK(mode):
        kind = "link"
    return FileStat(name, kind, size, mtime, stat_module.S_IMODE(mode))


class _Client(paramiko.SFTPClient):  # type: ignore[misc]  # paramiko has no types
    """paramiko's client with raw names, and pipelines that look at every answer and the clock."""

    def __init__(self, channel: paramiko.Channel, pace: Pace) -> None:
        self.pace = pace
        super().__init__(channel)

    def _read_all(self, n: int) -> bytes:
        parts = bytearray()
        while len(parts) < n:
            part = self.sock.recv(n - len(parts))
            if not part:
                raise EOFError
            parts += part
            self.pace.moved(len(part))
        return bytes(parts)

    def names(self, path: bytes) -> Iterator[tuple[bytes, Any]]:
        """(raw name, attributes) of a folder's entries, links not followed."""
        _, message = self._request(sftp.CMD_OPENDIR, path)
        handle = message.get_binary()
        try:
            while True:
                try:
                    _, message = self._request(sftp.CMD_READDIR, handle)
                except EOFError:
                    return
                for _ in range(message.get_int()):
                    name = message.get_binary()
                    message.get_binary()  # the "ls -l" line
                    yield name, paramiko.SFTPAttributes._from_msg(message)
        finally:
            self._request(sftp.CMD_CLOSE, handle)

    def pipeline(self, requests: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Answers in order, many requests under way; the first bad one raises."""
        waiting: deque[int] = deque()
        for request in requests:
            waiting.append(self._async_request(type(None), *request))
            if len(waiting) >= _WINDOW:
                yield self._read_response(waiting.popleft())[1]
        while waiting:
            yield self._read_response(waiting.popleft())[1]

    def pull(self, handle: bytes, start: int, end: int) -> Iterator[bytes]:
        """Contents from ``start`` to ``end``; stops at the first short answer or the file's end."""
        offsets = range(start, end, _CHUNK)
        requests = (
            (sftp.CMD_READ, handle, sftp.int64(at), min(_CHUNK, end - at)) for at in offsets
        )
        answers = self.pipeline(requests)
        for at in offsets:
            try:
                data = next(answers).get_binary()
            except EOFError:
                return
            yield data
            if len(data) < min(_CHUNK, end - at):
                return

    def push(self, handle: bytes, data: bytes) -> None:
        """Write ``data`` from the file's start."""
        view = memoryview(data)
        requests = (
            (sftp.CMD_WRITE, handle, sftp.int64(at), bytes(view[at : at + _CHUNK]))
            for at in range(0, len(data), _CHUNK)
        )
        for _ in self.pipeline(requests):
            pass

    def set_attributes(self, handle: bytes, mode: int, owner: tuple[int, int] | None) -> None:
        """Mode and owner of an open file, in one request."""
        attributes = paramiko.SFTPAttributes()
        attributes.st_mode = mode
        if owner is not None:
            attributes.st_uid, attributes.st_gid = owner
        self._request(sftp.CMD_FSETSTAT, handle, attributes)

    def free(self, path: bytes) -> tuple[int, int]:
        """(bytes, inodes) free on the file system that holds ``path``."""
        _, message = self._request(sftp.CMD_EXTENDED, "statvfs@openssh.com", path)
        numbers = [message.get_int64() for _ in range(_STATVFS_NUMBERS)]
        return numbers[1] * numbers[4], numbers[6]


class SftpFiles:
    """Files of one guest through one SFTP session; its calls take turns.

    Args:
        server: a command line that serves SFTP with the rights it should have; None is the login
            account's own.
    """

    def __init__(self, connection: SshConnection, server: bytes | None = None) -> None:
        self._connection = connection
        self._server = server
        self._lock = threading.RLock()
        self._cached: tuple[paramiko.Transport, _Client] | None = None

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a regular file; a pipe or device is refused, as it could block for ever."""
        raw = _raw(path)
        with self._session(path) as client:
            mode = client.stat(raw).st_mode or 0
            if stat_module.S_ISDIR(mode):
                raise _os_error(errno.EISDIR, path)
            if not stat_module.S_ISREG(mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            with client.open(raw, "rb") as file:
                most = 1 << 62 if limit is None else limit
                size = file.stat().st_size or 0
                parts = bytearray()
                for part in client.pull(file.handle, offset, min(size, offset + most)):
                    parts += part
                # the rest of a file that grows, or whose size is not told (/proc)
                while len(parts) < most:
                    at = offset + len(parts)
                    before = len(parts)
                    for part in client.pull(file.handle, at, at + min(_CHUNK, most - before)):
                        parts += part
                    if len(parts) == before:
                        break
        return bytes(parts)

    def write(
        self,
        path: str,
        data: bytes,
        *,
        owner: tuple[int, int] | None = None,
        mode: int = 0o644,
    ) -> None:
        """Put a whole file under a temporary name beside it, then rename."""
        path = guest_path(path)
        parent = posixpath.dirname(path)
        temporary = _raw(posixpath.join(parent, f".cua-gym-{os.urandom(8).hex()}"))
        with self._session(path) as client:
            try:
                file = client.open(temporary, "wx")
            except FileNotFoundError:
                self.make_folders(parent, owner=owner)
                file = client.open(temporary, "wx")
            except OSError as error:
                self._refuse_if_full(client, parent, len(data), error)
                raise
            try:
                with file:
                    client.push(file.handle, data)
                    client.set_attributes(file.handle, mode, owner)
                client.posix_rename(temporary, _raw(path))
            except (OSError, EOFError) as error:
                if isinstance(error, TimeoutError) or client.get_channel().closed:
                    raise
                client.remove(temporary)
                self._refuse_if_full(client, parent, len(data), error)
                self._refuse_folder(client, path)
                raise

    def make_folders(self, path: str, *, owner: tuple[int, int] | None) -> None:
        """Make a folder and what lacks above it, all made ones owned by ``owner``."""
        with self._session(path) as client:
            missing: list[str] = []
            at = guest_path(path)
            while True:
                try:
                    if not stat_module.S_ISDIR(client.stat(_raw(at)).st_mode or 0):
                        raise _os_error(errno.ENOTDIR, at)
                    break
                except FileNotFoundError:
                    missing.append(at)
                    at = posixpath.dirname(at)
            for folder in reversed(missing):
                client.mkdir(_raw(folder), 0o755)
                if owner is not None:
                    client.chown(_raw(folder), *owner)

    def stat(self, path: str, *, follow: bool = False) -> FileStat:
        """One entry; links are not followed unless asked for."""
        path = guest_path(path)
        with self._session(path) as client:
            found = client.stat(_raw(path)) if follow else client.lstat(_raw(path))
        return _entry(posixpath.basename(path) or "/", found)

    def list(self, path: str) -> list[FileStat]:
        """Entries sorted by name."""
        with self._session(path) as client:
            if not stat_module.S_ISDIR(client.stat(_raw(path)).st_mode or 0):
                raise _os_error(errno.ENOTDIR, path)
            found = [
                _entry(name.decode("utf-8", "surrogateescape"), attributes)
                for name, attributes in client.names(_raw(path))
                if name not in (b".", b"..")
            ]
        return sorted(found, key=lambda entry: entry.name)

    def abandon(self) -> None:
        """Let the call under way fail, from another thread; the next one goes."""
        if self._cached is not None:
            self._cached[1].get_channel().close()

    def free_bytes(self, path: str) -> int:
        """Bytes free where ``path`` lies."""
        with self._session(path) as client:
            return client.free(_raw(path))[0]

    def account(self, name: str) -> tuple[int, int]:
        """(uid, gid) of a guest account.

        Raises:
            MachineError: there is no such account.
        """
        for line in self.read("/etc/passwd").split(b"\n"):
            fields = line.split(b":")
            if len(fields) >= 4 and fields[0] == name.encode():
                return int(fields[2]), int(fields[3])
        raise MachineError(f"the guest has no account {name!r}")

    @contextmanager
    def _session(self, path: str) -> Iterator[_Client]:
        """The SFTP session, alone, with its failures told as for a local file."""
        with self._lock, self._connection.typed(f"file {path!r}"):
            client = self._client()
            client.pace = self._connection.pace()
            try:
                yield client
            except OSError as error:
                if isinstance(error, TimeoutError):
                    raise self._stalled(client.get_channel(), error) from error
                if client.get_channel().closed:
                    raise MachineLost(f"file {path!r}: the SFTP server ended: {error}") from error
                if error.errno is None:
                    raise OSError(
                        errno.EIO, f"the guest's file server answered {str(error)!r}", path
                    ) from error
                if error.filename is None:
                    raise _os_error(error.errno, path) from error
                raise

    def _client(self) -> _Client:
        transport = self._connection.transport()
        if self._cached is not None:
            known, client = self._cached
            if known is transport and not client.get_channel().closed:
                return client
        channel = self._connection.channel(self._ask)
        try:
            client = _Client(channel, self._connection.pace())
        except TimeoutError as error:
            raise self._stalled(channel, error) from error
        self._cached = (client.get_channel().get_transport(), client)
        return client

    def _ask(self, channel: paramiko.Channel) -> None:
        if self._server is None:
            channel.invoke_subsystem("sftp")
        else:
            channel.exec_command(self._server)

    def _stalled(self, channel: paramiko.Channel, error: TimeoutError) -> Exception:
        """What to raise; an account that stops its own server loses no more than that."""
        if self._server is None:
            return error
        channel.close()
        return MachineTimeout(f"the account's file server does not answer: {error}")

    def _refuse_if_full(self, client: _Client, folder: str, need: int, cause: Exception) -> None:
        """SFTP has no word for a full disk, only "Failure": look."""
        free, inodes = client.free(_raw(folder))
        # a file system needs some blocks of its own for a file
        if free < need + need // 16 + (256 << 10) or inodes == 0:
            raise OutOfSpace(
                f"the guest's file system at {folder!r} is full: {need} bytes to write, "
                f"{free} bytes and {inodes} inodes free; nothing partial was left"
            ) from cause

    def _refuse_folder(self, client: _Client, path: str) -> None:
        try:
            mode = client.stat(_raw(path)).st_mode or 0
        except FileNotFoundError:
            return
        if stat_module.S_ISDIR(mode):
            raise _os_error(errno.EISDIR, path)


def _entry(name: str, found: Any) -> FileStat:
    return file_stat(name, found.st_mode or 0, found.st_size or 0, float(found.st_mtime or 0))


def _raw(path: str) -> bytes:
    return guest_path(path).encode("utf-8", "surrogateescape")


def _os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
