"""The host's end of the control channel: many byte streams into a guest over one socket.

Responsible for frames, streams and their buffers. What a stream carries is for others: SSH for the
shell, `cua_gym.machine.guest_ops` for the guest daemon's operations. The guest's end is
``images/shared/guestd/cua_guestd.py``; both follow "The control channel" in
``docs/architecture.md``. Every byte from the guest is hostile: sizes are bounded, and a frame that
makes no sense ends the channel.
"""

from __future__ import annotations

import os
import secrets
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Self

from cua_gym.errors import MachineLost, MachineTimeout
from cua_gym.machine.guest_ops import Ops

__all__ = ["ControlChannel"]

_RESET = 0xFFFFFFFF
_HEADER = struct.Struct(">II")
_CHUNK = 32 << 10
_MAX_PAYLOAD = 1 << 20
# Above this much waiting for the guest, local ends are not read: their writers block instead.
_HIGH_WATER = 256 << 10
# A local reader that lets this much pile up has stopped reading; its stream is closed.
_MAX_BACKLOG = 64 << 20
# A guest that threw away what makes no sense may have thrown away the reset behind it.
_RESEND_S = 1.0


class _Stream:
    """The channel's end of one local socket pair."""

    __slots__ = ("backlog", "ending", "number", "sock")

    def __init__(self, number: int, sock: socket.socket) -> None:
        self.number = number
        self.sock = sock
        self.backlog = bytearray()
        self.ending = False


class ControlChannel:
    """One guest's control channel, reset and then served by one thread; `close` ends both.

    Args:
        sock: connected stream socket whose other end is the guest's virtio port; owned from now on.

    Thread-safe. Not usable in a forked child, which has no serving thread.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._pid = os.getpid()
        self._wake, self._woken = socket.socketpair()
        self._wake.setblocking(False)
        self._woken.setblocking(False)
        self._requests: deque[Callable[[], None]] = deque()
        self._lock = threading.Lock()
        self._next = 1
        self._lost: str | None = None
        self._stopping = False
        # Everything below belongs to the serving thread.
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(sock, selectors.EVENT_READ)
        self._streams: dict[int, _Stream] = {}
        self._incoming = bytearray()
        self._outgoing: deque[bytes] = deque()
        self._unsent = 0
        self._cut = False  # the first of `_outgoing` is the rest of a frame
        self._awaited: tuple[bytes, threading.Event] | None = None
        self.ops = Ops(self.open, lambda: self._lost)
        # A restored guest may still be talking to a host that is gone.
        self._do_reset(secrets.token_bytes(16), threading.Event())
        self._thread = threading.Thread(target=self._serve, name="control-channel", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def lost(self) -> str | None:
        """Why the channel is of no use any more; None while it serves."""
        return self._lost

    @property
    def greeted(self) -> bool:
        """Whether the guest's daemon has answered the last reset."""
        return self._awaited is None

    def reset(self, timeout_s: float | None = None) -> None:
        """Close every stream on both ends; whatever the guest sent before is thrown away.

        Args:
            timeout_s: wait this long for the guest's daemon to confirm; None does not wait, and
                streams may be opened at once: the guest sees the reset before them.

        Raises:
            MachineLost: the channel is gone.
            MachineTimeout: the guest's daemon did not confirm.
        """
        done = threading.Event()
        nonce = secrets.token_bytes(16)
        self.ops.forget_stream()
        self._post(lambda: self._do_reset(nonce, done))
        if timeout_s is None:
            return
        end = time.monotonic() + timeout_s
        while not done.wait(min(_RESEND_S, max(0.0, end - time.monotonic()))):
            if time.monotonic() < end:
                self._post(lambda: self._send_reset(nonce, done))
                continue
            raise MachineTimeout(
                f"the guest's daemon did not answer on the control channel in {timeout_s:g} s; "
                "is cua-guestd running in this image?"
            )
        if self._lost:
            raise MachineLost(self._lost)

    def close_streams(self, timeout_s: float = 5.0) -> None:
        """Close every stream and wait until nothing is in flight: the channel may be saved.

        Raises:
            MachineLost, MachineTimeout: as `reset`.
        """
        self.reset(timeout_s)

    def open(self, service: str) -> socket.socket:
        """A stream to a service of the guest (``ssh``, ``ops``) as a blocking local socket.

        A service that the guest does not have shows as the end of the stream.

        Raises:
            MachineLost: the channel is gone.
        """
        near, far = socket.socketpair()
        far.setblocking(False)
        with self._lock:
            number = self._next
            self._next += 1
        try:
            self._post(lambda: self._do_open(number, service, far))
        except MachineLost:
            near.close()
            far.close()
            raise
        return near

    def close(self) -> None:
        """End every stream, the thread and the socket. Idempotent."""
        with self._lock:
            self._stopping = True
        if os.getpid() == self._pid and self._thread.is_alive():
            self._poke()
            self._thread.join()
        self.ops.close()
        self._wake.close()

    def _post(self, request: Callable[[], None]) -> None:
        if os.getpid() != self._pid:
            raise MachineLost("this control channel belongs to the parent of this process")
        with self._lock:
            if self._lost or self._stopping:
                raise MachineLost(self._lost or "the control channel is closed")
            self._requests.append(request)
        self._poke()

    def _poke(self) -> None:
        try:
            self._wake.send(b"x")
        except OSError:
            pass  # full, so it wakes anyway; or closed, so there is nobody to wake

    # ------------------------------------------------------- the serving thread

    def _serve(self) -> None:
        reason = "the control channel is closed"
        try:
            while not self._stopping:
                self._watch()
                for key, events in self._selector.select():
                    if key.fileobj is self._woken:
                        self._take_requests()
                    elif key.fileobj is self._sock:
                        self._socket_ready(events)
                    else:
                        self._stream_ready(key.data, events)
        except (OSError, MachineLost) as error:
            reason = f"the guest's control channel is gone: {error}"
        finally:
            with self._lock:
                self._lost = reason
                orphans = list(self._requests)
                self._requests.clear()
            for request in orphans:  # a waiting reset, a stream that its opener already holds
                request()
            for number in list(self._streams):
                self._drop(number)
            if self._awaited:
                self._awaited[1].set()
            self._selector.close()
            self._sock.close()
            self._woken.close()

    def _take_requests(self) -> None:
        self._woken.recv(4096)
        with self._lock:
            requests = list(self._requests)
            self._requests.clear()
        for request in requests:
            request()

    def _do_open(self, number: int, service: str, far: socket.socket) -> None:
        self._streams[number] = _Stream(number, far)
        self._send(number, service.encode())

    def _do_reset(self, nonce: bytes, done: threading.Event) -> None:
        for number in list(self._streams):
            self._drop(number)
        kept = [self._outgoing[0]] if self._cut else []
        self._outgoing = deque(kept)
        self._unsent = sum(map(len, kept))
        self._incoming.clear()
        if self._awaited:
            self._awaited[1].set()
        self._awaited = (_HEADER.pack(_RESET, len(nonce)) + nonce, done)
        self._send(_RESET, nonce)

    def _send_reset(self, nonce: bytes, done: threading.Event) -> None:
        if self._awaited and self._awaited[1] is done:
            self._send(_RESET, nonce)

    def _watch(self) -> None:
        """Ask for exactly the events that can be acted upon."""
        self._want(
            self._sock,
            selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0),
            None,
        )
        full = self._unsent > _HIGH_WATER
        for stream in self._streams.values():
            reads = 0 if full or stream.ending else selectors.EVENT_READ
            writes = selectors.EVENT_WRITE if stream.backlog else 0
            self._want(stream.sock, reads | writes, stream)

    def _want(self, sock: socket.socket, events: int, data: _Stream | None) -> None:
        known = self._selector.get_map().get(sock)
        if known is None:
            if events:
                self._selector.register(sock, events, data)
        elif not events:
            self._selector.unregister(sock)
        elif known.events != events:
            self._selector.modify(sock, events, data)

    def _socket_ready(self, events: int) -> None:
        if events & selectors.EVENT_READ:
            data = self._sock.recv(8 * _CHUNK)
            if not data:
                raise MachineLost("its other end was closed")
            self._incoming += data
            self._parse()
        if events & selectors.EVENT_WRITE and self._outgoing:
            try:
                sent = self._sock.send(self._outgoing[0])
            except BlockingIOError:
                return
            self._unsent -= sent
            first = self._outgoing.popleft()
            self._cut = sent < len(first)
            if self._cut:
                self._outgoing.appendleft(first[sent:])

    def _parse(self) -> None:
        if self._awaited is not None:
            marker, done = self._awaited
            at = self._incoming.find(marker)
            if at < 0:
                del self._incoming[: -len(marker)]
                return
            del self._incoming[: at + len(marker)]
            self._awaited = None
            done.set()
        while len(self._incoming) >= _HEADER.size:
            number, length = _HEADER.unpack_from(self._incoming)
            if length > _MAX_PAYLOAD:
                raise MachineLost(f"the guest sent a frame of {length} bytes, which is no frame")
            end = _HEADER.size + length
            if len(self._incoming) < end:
                return
            payload = bytes(self._incoming[_HEADER.size : end])
            del self._incoming[:end]
            stream = self._streams.get(number)
            if stream is None:
                continue  # late data of a stream that was closed here
            if payload:
                stream.backlog += payload
            else:
                stream.ending = True
            self._flush(stream)

    def _stream_ready(self, stream: _Stream, events: int) -> None:
        if self._streams.get(stream.number) is not stream:
            return  # closed by an earlier event of this round
        if events & selectors.EVENT_WRITE:
            self._flush(stream)
        if events & selectors.EVENT_READ and stream.number in self._streams:
            try:
                data = stream.sock.recv(_CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            self._send(stream.number, data)
            if not data:
                self._drop(stream.number)

    def _flush(self, stream: _Stream) -> None:
        try:
            while stream.backlog:
                sent = stream.sock.send(memoryview(stream.backlog)[: 8 * _CHUNK])
                del stream.backlog[:sent]
        except BlockingIOError:
            if len(stream.backlog) > _MAX_BACKLOG:
                self._send(stream.number, b"")
                self._drop(stream.number)
        except OSError:  # the local end is closed
            if not stream.ending:
                self._send(stream.number, b"")
            self._drop(stream.number)
        else:
            if stream.ending:
                self._drop(stream.number)

    def _send(self, number: int, payload: bytes) -> None:
        frame = _HEADER.pack(number, len(payload)) + payload
        self._outgoing.append(frame)
        self._unsent += len(frame)

    def _drop(self, number: int) -> None:
        stream = self._streams.pop(number)
        if stream.sock in self._selector.get_map():
            self._selector.unregister(stream.sock)
        stream.sock.close()
