"""The Shell of a light desktop: commands through its supervisor, files through `files.py`.

A command's streams are pipes, or a terminal of the sandbox's own, whose other ends are here:
nothing is relayed.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from cua_gym.errors import MachineError, OutOfSpace
from cua_gym.machine.archive import TAR_CREATE, pack, unpack
from cua_gym.machine.base import Completed
from cua_gym.machine.commands import (
    LINE_LIMIT,
    TERM,
    Command,
    argv_of,
    kill_argv,
    new_token,
    script_of,
)
from cua_gym.machine.process import Running, check_size
from cua_gym.machine.sftp import guest_path
from cua_gym.machine.sftp_shell import SftpShell, fitting
from cua_gym.machine.x11.files import FileServer, sandbox_files
from cua_gym.machine.x11.sandbox import Sandbox
from cua_gym.machine.x11.wire import SandboxWire
from cua_gym.turns import Stop

__all__ = ["X11Shell"]

ROOT = "root"
_KILL_S = 30.0


class X11Shell(SftpShell):
    """`cua_gym.machine.base.Shell` of one sandbox.

    Args:
        desktop_user: the account that ``user=None`` stands for.
    """

    def __init__(self, sandbox: Sandbox, desktop_user: str) -> None:
        self._sandbox = sandbox
        self._servers = [FileServer(sandbox, ROOT), FileServer(sandbox, desktop_user)]
        super().__init__(
            sandbox_files(self._servers[0], of_account=False),
            sandbox_files(self._servers[1], of_account=True),
            control=ROOT,
            desktop=desktop_user,
        )

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
        """See `cua_gym.machine.base.Shell.run`."""
        running = self.start(command, user=user, cwd=cwd, env=env)
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
        """See `cua_gym.machine.base.Shell.start`."""
        argv = argv_of(command)
        env = env or {}
        if terminal is not None:
            check_size(terminal)
            env = {"TERM": TERM, **env}
        token = new_token()
        on_terminal = terminal is not None
        prepared = Command(token, argv, cwd, env, terminal=on_terminal)
        if len(prepared.line) > LINE_LIMIT:
            script = f"/tmp/.cua-gym-{token}"
            words = ["bash", script]
            prepared = fitting(Command(token, words, cwd, env, terminal=on_terminal, script=script))
            self.write(script, script_of(command), user=user, mode=0o600)
        wire = self._wire(
            ["sh", "-c", prepared.line.decode("utf-8", "surrogateescape")], user, terminal, token
        )
        return Running(prepared, wire, terminal=on_terminal, keep_bytes=keep_bytes)

    def _wire(
        self, argv: list[str], user: str | None, terminal: tuple[int, int] | None, token: str
    ) -> SandboxWire:
        account = user or self._desktop
        return SandboxWire(
            self._sandbox,
            argv,
            account,
            session=account == self._desktop,
            terminal=terminal,
            kill=lambda: self._kill(token),
        )

    def _kill(self, token: str) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        try:
            link = self._sandbox.request(
                "start", [null] * 3, user=ROOT, argv=kill_argv(token), session=False, terminal=None
            )
        finally:
            os.close(null)
        try:
            link.answer(_KILL_S)
            link.answer(_KILL_S)
        finally:
            link.close()

    def put_dir(self, source: Path, path: str, *, user: str | None = None) -> None:
        """See `cua_gym.machine.base.Shell.put_dir`."""
        if not source.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(source))
        owner = self._owner(user)
        self._files.make_folders(path, owner=owner)
        words = ["tar", "--extract", "--file=-", "--numeric-owner", "--preserve-permissions"]
        with self._tar(words, path) as tar:
            try:
                pack(source, tar, owner=owner)
                tar.wire.end_input()
            except OSError:
                pass  # tar ended early; its own words say why
            status, said = tar.end()
        if status:
            if "No space left" in said or "Wrote only" in said:  # a short write: full
                raise OutOfSpace(
                    f"the desktop's file system at {path!r} is full, "
                    f"{self._files.free_bytes(path)} bytes free: {said[:500]}"
                )
            raise MachineError(f"tar failed ({status}) at {path!r}: {said[:500]}")

    def get_dir(self, path: str, target: Path, *, limit_bytes: int) -> None:
        """See `cua_gym.machine.base.Shell.get_dir` and `cua_gym.machine.archive.unpack`."""
        kind = self._files.stat(path).kind
        if kind != "dir":
            raise NotADirectoryError(errno.ENOTDIR, f"it is a {kind}, not a folder", path)
        with self._tar(TAR_CREATE, path, ".") as tar:
            unpack(tar, target, limit_bytes=limit_bytes)
            status, said = tar.end()
        if status > 1:  # 1: a file changed while it was read
            raise MachineError(f"tar failed ({status}) at {path!r}: {said[:500]}")

    def close(self) -> None:
        """End the file servers. Idempotent."""
        for server in self._servers:
            server.close()

    def _tar(self, words: Sequence[str], path: str, *rest: str) -> _Tar:
        return _Tar(self._wire([*words, f"--directory={guest_path(path)}", *rest], ROOT, None, ""))


class _Tar:
    """A tar that runs inside, as `pack` writes to one and `unpack` reads from one."""

    def __init__(self, wire: SandboxWire) -> None:
        self.wire = wire
        self._held = b""
        self._said = bytearray()
        # A tar whose complaints nobody reads would wait for ever.
        self._listener = threading.Thread(target=self._listen, name="x11-tar", daemon=True)
        self._listener.start()

    def write(self, data: bytes) -> None:
        self.wire.write(data)

    def read(self, size: int) -> bytes:
        data = self._held or self.wire.read("stdout")
        self._held = data[size:]
        return data[:size]

    def end(self) -> tuple[int, str]:
        """Its status and what it complained of, once it has ended."""
        while self.wire.read("stdout"):
            pass
        self._listener.join()
        return self.wire.status(), self._said.decode("utf-8", "replace").strip()

    def _listen(self) -> None:
        while data := self.wire.read("stderr"):
            self._said += data[: max(0, 8192 - len(self._said))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.wire.stop()
        self._listener.join()
        self.wire.free()
