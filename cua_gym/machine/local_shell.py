"""A Shell that runs host processes in a private folder, for the fake computer and fast tests.

Absolute guest paths of *file calls* lie below ``root``; commands see the host's own file system,
with HOME and the working folder set to ``root/home/user``. Nothing is isolated: never point an
agent at it. Every account is the host's own.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from cua_gym.errors import ActionError, MachineError, MachineLost
from cua_gym.machine.archive import TAR_CREATE, pack, unpack
from cua_gym.machine.base import Completed, FileStat
from cua_gym.machine.commands import (
    LINE_LIMIT,
    TERM,
    Command,
    argv_of,
    new_token,
    script_of,
)
from cua_gym.machine.local_wire import LocalWire, kill_local
from cua_gym.machine.process import Running, check_size
from cua_gym.machine.sftp import file_stat, guest_path
from cua_gym.machine.tree import remove_tree
from cua_gym.turns import Stop

__all__ = ["LocalShell", "copy_folder"]

_SHELL = "CUA_GYM_SHELL"


class LocalShell:
    """`Shell` over ``root``; ``close`` kills every process that its commands left behind.

    Args:
        root: an existing private folder; ``root/home/user`` is made.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._home = self._root / "home" / "user"
        self._home.mkdir(parents=True, exist_ok=True)
        self._token = new_token()
        self._used = False
        self._closed = False

    def host_path(self, path: str) -> Path:
        """Where a guest path lies on the host; a host path below ``root`` stands for itself."""
        path = guest_path(path)
        if Path(path).is_relative_to(self._root):
            return Path(path)
        return self._root / path.lstrip("/")

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
        """Run a host process; ``user`` is not looked at."""
        return self.start(command, cwd=cwd, env=env).complete(stdin, timeout_s, stop)

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
        """Start a host process; ``user`` is not looked at."""
        if self._closed:
            raise MachineLost("this shell is closed")
        self._used = True
        token = new_token()
        where = str(self.host_path(cwd) if cwd else self._home)
        environment = {"HOME": str(self._home), _SHELL: self._token, **(env or {})}
        if terminal is not None:
            check_size(terminal)
            environment = {"TERM": TERM, **environment}
        wrapped = Command(
            token, argv_of(command), where, environment, terminal=terminal is not None
        )
        if len(wrapped.line) > LINE_LIMIT:
            script = self._root / f".cua-gym-{token}"
            script.write_bytes(script_of(command))
            wrapped = replace(wrapped, words=["bash", str(script)], script=str(script))
        try:
            wire = LocalWire(wrapped, terminal)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise ActionError(
                    f"the environment is too long: {len(wrapped.line)} bytes"
                ) from error
            raise
        return Running(wrapped, wire, terminal=terminal is not None, keep_bytes=keep_bytes)

    @property
    def files(self) -> Self:
        """Itself: there is one account."""
        return self

    def abandon(self) -> None:
        """Nothing: files of this host do not hang."""

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file below ``root``."""
        where = self.host_path(path)
        if where.exists() and not where.is_file() and not where.is_dir():
            raise OSError(errno.EINVAL, "not a regular file", path)
        with where.open("rb") as file:
            file.seek(offset)
            return file.read() if limit is None else file.read(limit)

    def write(self, path: str, data: bytes, *, user: str | None = None, mode: int = 0o644) -> None:
        """Put a whole file by a temporary name and a rename."""
        where = self.host_path(path)
        try:
            where.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, "a file stands above it", path) from error
        temporary = where.with_name(f".cua-gym-{new_token()}")
        try:
            temporary.write_bytes(data)
            temporary.chmod(mode)
            temporary.replace(where)
        finally:
            temporary.unlink(missing_ok=True)

    def stat(self, path: str, *, follow: bool = False) -> FileStat:
        """One entry; links are not followed unless asked for."""
        where = self.host_path(path)
        found = where.stat() if follow else where.lstat()
        return file_stat(where.name, found.st_mode, found.st_size, found.st_mtime)

    def list(self, path: str) -> list[FileStat]:
        """Entries of a folder, sorted by name."""
        where = self.host_path(path)
        return [self.stat(str(child)) for child in sorted(where.iterdir(), key=lambda c: c.name)]

    def remove(self, path: str) -> None:
        """Remove a file or a whole folder; absent is fine."""
        where = self.host_path(path)
        if where == self._root:
            raise PermissionError(errno.EPERM, "the root folder stays", path)
        if where.is_dir() and not where.is_symlink():
            remove_tree(where)
        else:
            where.unlink(missing_ok=True)

    def put_dir(self, source: Path, path: str, *, user: str | None = None) -> None:
        """Copy a host folder's contents the same way as to a real guest, through tar."""
        if not source.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(source))
        where = self.host_path(path)
        where.mkdir(parents=True, exist_ok=True)
        copy_folder(source, where)

    def get_dir(self, path: str, target: Path, *, limit_bytes: int) -> None:
        """Copy a folder out the same way as from a real guest, through tar."""
        where = self.host_path(path)
        if not where.is_dir():
            number = errno.ENOTDIR if where.exists() else errno.ENOENT
            raise OSError(number, os.strerror(number), path)
        with subprocess.Popen(
            [*TAR_CREATE, f"--directory={where}", "."],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as tar:
            assert tar.stdout is not None
            try:
                unpack(tar.stdout, target, limit_bytes=limit_bytes)
            finally:
                tar.stdout.close()

    def warm(self) -> None:
        """Nothing to connect."""

    def disconnect(self) -> None:
        """Nothing to disconnect."""

    def close(self) -> None:
        """End every process that commands left behind. Idempotent."""
        if not self._closed:
            self._closed = True
            if self._used:
                kill_local(self._token, _SHELL)


def copy_folder(source: Path, target: Path) -> None:
    """Copy one host folder's contents into another: links as links, pipes as pipes, any depth.

    Raises:
        MachineError: tar could not write it.
    """
    with subprocess.Popen(
        ["tar", "-xf-", "--no-same-owner", "--preserve-permissions", f"--directory={target}"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as tar:
        assert tar.stdin is not None
        assert tar.stderr is not None
        try:
            with tar.stdin:
                pack(source, tar.stdin)
        except BrokenPipeError:
            pass  # tar ended early; its own words say why
        complaint = tar.stderr.read().decode("utf-8", "replace").strip()
    if tar.returncode:
        raise MachineError(f"tar could not copy into {target}: {complaint[:500]}")
