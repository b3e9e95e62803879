"""The files of a light desktop: an ``sftp-server`` inside, one for root and one for the account.

What is asked and what the answers mean is `cua_gym.machine.sftp`'s; this is its connection, over a
socket of its own instead of an SSH channel. Nothing is opened by the host: no link inside can lead
it astray.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import paramiko

from cua_gym.errors import MachineLost, MachineTimeout
from cua_gym.machine.sftp import SftpFiles
from cua_gym.machine.ssh_connection import Pace
from cua_gym.machine.x11.sandbox import ANSWER_S, Link, Sandbox

__all__ = ["FileServer", "sandbox_files"]

SFTP_SERVER = "/usr/lib/openssh/sftp-server"
STALL_S = 30.0


class _Channel:
    """What paramiko's SFTP client takes for an SSH channel."""

    def __init__(self, server: FileServer, sock: socket.socket, link: Link) -> None:
        sock.settimeout(STALL_S)
        self._server = server
        self._sock = sock
        self._link = link
        self.closed = False
        self.recv = sock.recv
        self.send = sock.send

    def get_name(self) -> str:
        """For paramiko's log."""
        return SFTP_SERVER

    def get_transport(self) -> FileServer:
        """The connection that it belongs to."""
        return self._server

    def close(self) -> None:
        """Let the server end. Idempotent; from any thread."""
        self.closed = True
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended
        self._link.close()
        self._sock.close()


class FileServer:
    """A file server with the rights of an account, started when first needed, anew when it died."""

    def __init__(self, sandbox: Sandbox, user: str) -> None:
        self._sandbox = sandbox
        self._user = user
        self._channel: _Channel | None = None

    def transport(self) -> FileServer:
        """Itself: there is nothing to connect."""
        return self

    def pace(self) -> Pace:
        """For one transfer that starts now."""
        return Pace(2 * STALL_S)

    def channel(self, request: Callable[[Any], None]) -> _Channel:
        """A fresh server; there is nothing to request of it."""
        ours, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_WRONLY)
        with ExitStack() as failed:
            failed.callback(ours.close)
            try:
                fds = [theirs.fileno(), theirs.fileno(), null]
                link = self._sandbox.request(
                    "start", fds, user=self._user, argv=[SFTP_SERVER], session=False, terminal=None
                )
            finally:
                theirs.close()
                os.close(null)
            failed.callback(link.close)
            link.answer(ANSWER_S)
            failed.pop_all()
        self._channel = _Channel(self, ours, link)
        return self._channel

    @contextmanager
    def typed(self, doing: str) -> Iterator[None]:
        """Turn what paramiko and the socket raise into MachineErrors; errors about files pass."""
        try:
            yield
        except (paramiko.SSHException, EOFError, TimeoutError, ConnectionError) as error:
            self.close()
            self._sandbox.check()
            if isinstance(error, TimeoutError):
                raise MachineTimeout(f"{doing}: nothing moved for {STALL_S:g} s") from error
            raise MachineLost(f"{doing}: the file server ended: {error!r}") from error

    def close(self) -> None:
        """End the server there may be; the next use starts another. Idempotent."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()


def sandbox_files(server: FileServer, *, of_account: bool) -> SftpFiles:
    """The files that a server serves; one of the desktop account may be stopped by it."""
    return SftpFiles(server, SFTP_SERVER.encode() if of_account else None)  # type: ignore[arg-type]
