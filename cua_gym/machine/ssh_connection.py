"""One pinned SSH connection into a guest: lazy, retried while it boots, replaced when it died.

Responsible for connecting, host keys, channels and the one place where paramiko's many kinds of
failure become `MachineError`s. Leaves commands to `ssh` and files to `sftp`.

Nothing outside its arguments is read or written: no ``~/.ssh``, no agent, no known-hosts file. A
host key is right if it is in the given list, whatever the address was.

Source: paramiko 5 (``Transport``), RFC 4252 to 4254.
"""

from __future__ import annotations

import base64
import binascii
import errno
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko

from cua_gym.errors import MachineError, MachineLost, MachineTimeout

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["Pace", "SshConnection"]

_BANNER_S = 15.0  # one attempt; a busy emulated guest needs seconds for its key exchange
_KEEPALIVE_S = 15
_RETRY_S = 0.2
_AGAIN_S = 10.0  # for a server that was up: a restart of it takes seconds
_SLOWEST = 32 << 10  # bytes a second; a guest on a busy emulated machine moves some hundred KiB


class Pace:
    """Ends a transfer that crawls: a byte now and then satisfies every limit on standing still."""

    def __init__(self, grace_s: float) -> None:
        """Begin; ``grace_s`` is for waiting apart from what is moved."""
        self._grace_s = grace_s
        self._began = time.monotonic()
        self._bytes = 0

    def moved(self, count: int) -> None:
        """Count bytes that were moved.

        Raises:
            TimeoutError: they took longer than the slowest honest guest.
        """
        self._bytes += count
        seconds = time.monotonic() - self._began
        if seconds > self._grace_s + self._bytes / _SLOWEST:
            raise TimeoutError(f"only {self._bytes} bytes moved in {seconds:.0f} s")


class _Socket(socket.socket):
    """A socket that is given up when nothing can be sent for too long.

    paramiko tries a blocked send again for ever, whatever timeout its caller set.
    """

    stalled = False

    def __init__(self, sock: socket.socket, stall_s: float) -> None:
        super().__init__(sock.family, sock.type, sock.proto, fileno=sock.detach())
        self._stall_s = stall_s
        self._stuck_since: float | None = None

    def send(self, data: ReadableBuffer, flags: int = 0, /) -> int:
        try:
            sent = super().send(data, flags)
        except TimeoutError:
            now = time.monotonic()
            self._stuck_since = self._stuck_since or now
            if now - self._stuck_since < self._stall_s:
                raise
            self.stalled = True
            self.shutdown(socket.SHUT_RDWR)  # ends the reader, and with it every channel
            raise BrokenPipeError(errno.EPIPE, "nothing could be sent for too long") from None
        self._stuck_since = None
        return sent


class SshConnection:
    """A connection that is made when first needed and made again when it has died.

    Args:
        connect: returns a connected socket to the guest's SSH server; OSError means "not yet".
        user: the login account.
        key: private key file of that account.
        host_keys: the guest's public host keys, ``"ssh-ed25519 AAAA..."``; any one of them is
            accepted and nothing else.
        boot_deadline_s: how long, from the first try on, connecting may retry while no server has
            answered yet. Later, and for one that had answered and is gone, there are seconds.
        stall_s: how long the server may keep silent when an answer is due.
    """

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        *,
        user: str,
        key: Path,
        host_keys: Sequence[str],
        boot_deadline_s: float,
        stall_s: float,
    ) -> None:
        self.user = user
        self.stall_s = stall_s
        self._connect = connect
        self._key = key
        self._pinned = frozenset(_parse_host_key(line) for line in host_keys)
        self._boot_deadline_s = boot_deadline_s
        self._lock = threading.Lock()  # held while connecting
        self._transport: paramiko.Transport | None = None
        self._attempt: paramiko.Transport | None = None
        self._cancel = threading.Event()
        self._closed = False
        self._answered = False
        self._boot_until: float | None = None
        self._warming: threading.Thread | None = None

    def warm(self) -> None:
        """Start connecting in the background; a failure shows when the connection is used."""

        def work() -> None:
            try:
                self.transport()
            except MachineError:
                pass  # whoever needs the connection tries again and gets the error

        self._warming = threading.Thread(target=work, name="ssh-warm", daemon=True)
        self._warming.start()

    def transport(self, wait_s: float = math.inf) -> paramiko.Transport:
        """The live, authenticated connection.

        Args:
            wait_s: for connecting again, which gets some seconds at least, to a server that had
                answered before; a guest that boots has its own deadline.

        Raises:
            MachineLost: closed, or the machine's channel is gone.
            MachineTimeout: no SSH server answered before the deadline.
            MachineError: it is another machine (host key) or refuses our key.
        """
        with self._lock:
            if self._closed:
                raise MachineLost("this shell is closed; take the machine's current one")
            if self._transport is None or not self._transport.is_active():
                self._drop()
                self._transport = self._retry(wait_s)
                self._answered = True
            return self._transport

    def channel(
        self, request: Callable[[paramiko.Channel], None], wait_s: float = math.inf
    ) -> paramiko.Channel:
        """A new session channel on which ``request`` (exec, subsystem) was granted.

        ``wait_s`` as for `transport`.
        A connection found dead here is replaced once: nothing was asked of the guest yet.
        """
        for last in (False, True):
            transport = self.transport(wait_s)
            try:
                channel = transport.open_session(timeout=self.stall_s)
                break
            except (paramiko.SSHException, EOFError, OSError) as error:
                # The reader tells the end of the stream before it calls itself inactive.
                dead = isinstance(error, EOFError) or not transport.is_active()
                if dead and not transport.sock.stalled and not last:
                    with self._lock:
                        if self._transport is transport:
                            self._drop()
                    continue
                if isinstance(error, paramiko.ChannelException):
                    raise MachineError(
                        f"the guest's SSH server refused one more channel: {error}"
                    ) from error
                self.disconnect()
                raise MachineTimeout(
                    f"the guest's SSH server opened no channel in {self.stall_s:g} s: {error}"
                ) from error
        channel.settimeout(self.stall_s)
        # paramiko waits for the server's answer without limit; closing the channel ends that wait
        fuse = threading.Timer(self.stall_s, channel.close)
        fuse.daemon = True
        fuse.start()
        try:
            with self.typed("starting a request"):
                request(channel)
        except MachineError as error:
            if fuse.finished.is_set():
                self.disconnect()
                raise MachineTimeout(
                    f"the guest's SSH server answered no request in {self.stall_s:g} s"
                ) from error
            raise
        finally:
            fuse.cancel()
        return channel

    def pace(self) -> Pace:
        """For one transfer that starts now."""
        return Pace(2 * self.stall_s)

    @contextmanager
    def typed(self, doing: str) -> Iterator[None]:
        """Turn what paramiko raises inside into `MachineError`s; other OSErrors pass.

        After a stall or a breach of protocol the connection is dropped: what would come next on
        it belongs to a question that nobody asks any more.
        """
        try:
            yield
        except (paramiko.SSHException, EOFError, OSError) as error:
            transport = self._transport
            stalled = transport is not None and transport.sock.stalled
            dead = transport is None or not transport.is_active()
            silent = stalled or isinstance(error, TimeoutError)
            # paramiko's own ("Socket is closed") have no number; one about a guest file passes
            ours = silent or not isinstance(error, OSError) or (dead and error.errno is None)
            if not ours:
                raise
            self.disconnect()
            if silent:
                # Only our own timeouts have words.
                what = str(error) if isinstance(error, TimeoutError) else ""
                raise MachineTimeout(
                    f"{doing}: {what or f'nothing moved for {self.stall_s:g} s'}; "
                    "the guest or its SSH server hangs"
                ) from error
            raise MachineLost(f"{doing}: the SSH connection broke: {error!r}") from error

    def disconnect(self) -> None:
        """End the connection, and a connect under way; the next use makes a new one."""
        self._cancel.set()
        attempt = self._attempt
        if attempt is not None:
            _end(attempt)
        with self._lock:
            self._drop()
            self._cancel.clear()

    def close(self) -> None:
        """End it for good. Idempotent."""
        self._closed = True
        self.disconnect()
        if self._warming is not None:
            self._warming.join()

    def _drop(self) -> None:
        if self._transport is not None:
            _end(self._transport)
            self._transport = None

    def _retry(self, wait_s: float) -> paramiko.Transport:
        """Try until the deadline; only what a booting guest may cause is tried again."""
        begun = time.monotonic()
        # A server that was up: refusals are tried again for seconds; silence is waited for as on a
        # live connection, once, and no longer than the caller would.
        if self._boot_until is None:
            self._boot_until = begun + self._boot_deadline_s
        again_s = min(_AGAIN_S, self._boot_deadline_s)
        retry_s = again_s if self._answered else max(again_s, self._boot_until - begun)
        patience_s = max(_AGAIN_S, min(wait_s, self.stall_s)) if self._answered else retry_s
        last: Exception = TimeoutError("not tried")
        while (passed := time.monotonic() - begun) < retry_s:
            try:
                return self._once(patience_s - passed)
            except (paramiko.SSHException, EOFError, OSError) as error:
                last = error
            if self._cancel.wait(min(_RETRY_S, retry_s - passed)):
                raise MachineLost("disconnected while connecting")
        if self._answered:
            raise MachineTimeout(
                "the guest's SSH server had answered before and did not again within "
                f"{time.monotonic() - begun:.0f} s; last failure: {last!r}. "
                "It was stopped, or the guest hangs"
            ) from last
        seconds = time.monotonic() - self._boot_until + self._boot_deadline_s
        raise MachineTimeout(
            f"no SSH server has answered in {seconds:.0f} s; last failure: {last!r}. "
            "Look at the machine's screen: it may still boot, or its sshd did not start"
        ) from last

    def _once(self, left: float) -> paramiko.Transport:
        sock = _Socket(self._connect(), self.stall_s)
        try:
            transport = paramiko.Transport(sock)
        except BaseException:
            sock.close()
            raise
        self._attempt = transport
        try:
            if self._cancel.is_set():
                raise EOFError("disconnected")
            _quiet(transport)
            attempt_s = left if self._answered else min(_BANNER_S, left)
            transport.banner_timeout = transport.handshake_timeout = attempt_s
            transport.auth_timeout = min(2 * _BANNER_S, left)
            kinds = {kind for kind, _ in self._pinned}
            options = transport.get_security_options()
            options.key_types = [
                name
                for name in options.key_types
                if name in kinds or (name.startswith("rsa-") and "ssh-rsa" in kinds)
            ]
            try:
                transport.start_client(timeout=min(2 * _BANNER_S, left))
                self._check_host_key(transport.get_remote_server_key())
                transport.auth_publickey(self.user, paramiko.PKey.from_path(self._key))
            except paramiko.ssh_exception.IncompatiblePeer as error:
                raise MachineError(
                    f"the guest's SSH server offers none of the pinned host key types "
                    f"{sorted(kinds)}: {error}"
                ) from error
            except paramiko.AuthenticationException as error:
                raise MachineError(
                    f"the guest refused the key {self._key.name} for {self.user!r}: {error}"
                ) from error
            except FileNotFoundError as error:
                raise MachineError(f"the private key {self._key} is absent") from error
            transport.set_keepalive(_KEEPALIVE_S)
        except BaseException:
            _end(transport)
            raise
        finally:
            self._attempt = None
        return transport

    def _check_host_key(self, key: paramiko.PKey) -> None:
        if (key.get_name(), key.asbytes()) not in self._pinned:
            raise MachineError(
                f"the guest's host key {key.fingerprint} is not one of the {len(self._pinned)} "
                "pinned: this is another machine, or its keys were made anew after the image"
            )


def _parse_host_key(line: str) -> tuple[str, bytes]:
    try:
        kind, blob, *_comment = line.split()
        return kind, base64.b64decode(blob, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"not a public host key ('TYPE BASE64'): {line!r}") from error


def _quiet(transport: paramiko.Transport) -> None:
    """Keep paramiko from printing tracebacks: its failures are raised, typed, by this module.

    The logger belongs to this connection alone, so no one else's logging set-up changes.
    """
    logger = logging.Logger("cua_gym.ssh", logging.CRITICAL + 1)
    transport.logger = logger
    transport.packetizer.set_log(logger)


def _end(transport: paramiko.Transport) -> None:
    """Close, without the tenth of a second that the reader's poll would take to notice."""
    try:
        transport.sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # never connected or already down
    transport.close()
    transport.sock.close()
