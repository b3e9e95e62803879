"""The half of a Shell that is files, for kinds whose guests serve them by SFTP."""

from __future__ import annotations

import builtins
import errno
from abc import ABC, abstractmethod
from collections.abc import Sequence

from cua_gym.errors import ActionError
from cua_gym.machine.base import Completed, FileStat
from cua_gym.machine.commands import LINE_LIMIT, Command
from cua_gym.machine.sftp import SftpFiles, guest_path

__all__ = ["SftpShell", "fitting"]


class SftpShell(ABC):
    """Files of a `cua_gym.machine.base.Shell`.

    Args:
        files: those that the control account serves.
        own_files: those that the desktop account serves.
        control: the account that owns what ``files`` makes.
        desktop: the account that ``user=None`` stands for.
    """

    def __init__(
        self, files: SftpFiles, own_files: SftpFiles, *, control: str, desktop: str
    ) -> None:
        self._files = files
        self._own_files = own_files
        self._control = control
        self._desktop = desktop

    @abstractmethod
    def run(self, command: str | Sequence[str], *, user: str | None, cwd: str) -> Completed:
        """See `cua_gym.machine.base.Shell.run`."""

    @property
    def files(self) -> SftpFiles:
        """See `cua_gym.machine.base.Shell.files`: served by the desktop account itself."""
        return self._own_files

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """See `cua_gym.machine.base.Shell.read`; anything but a regular file is refused."""
        return self._files.read(path, offset=offset, limit=limit)

    def write(self, path: str, data: bytes, *, user: str | None = None, mode: int = 0o644) -> None:
        """See `cua_gym.machine.base.Shell.write`; a link at ``path`` is replaced, not followed."""
        self._files.write(path, data, owner=self._owner(user), mode=mode)

    def stat(self, path: str) -> FileStat:
        """See `cua_gym.machine.base.Shell.stat`."""
        return self._files.stat(path)

    def list(self, path: str) -> builtins.list[FileStat]:
        """See `cua_gym.machine.base.Shell.list`."""
        return self._files.list(path)

    def remove(self, path: str) -> None:
        """See `cua_gym.machine.base.Shell.remove`; links are removed, not followed."""
        path = guest_path(path)
        done = self.run(["rm", "-rf", "--", path], user=self._control, cwd="/")
        if done.exit:
            raise PermissionError(errno.EPERM, done.stderr.decode("utf-8", "replace").strip(), path)

    def _owner(self, user: str | None) -> tuple[int, int] | None:
        """Numbers of the owner; None where the control account's own files are right already."""
        account = user or self._desktop
        return None if account == self._control else self._files.account(account)


def fitting(command: Command) -> Command:
    """The command, if its line is short enough for the guest's kernel.

    Raises:
        ActionError: it is not, though what is to be run stands in a script already.
    """
    if len(command.line) > LINE_LIMIT:
        raise ActionError(
            f"working folder and environment make {len(command.line)} bytes; "
            f"at most {LINE_LIMIT} fit a command line"
        )
    return command
