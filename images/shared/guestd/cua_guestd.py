"""The guest's end of the control channel: frames on a virtio port, streams to guest services.

Runs as root. Owns the port, the streams and their buffers; what `ops` requests do is in `ops.py`.
Frame, both ways: ``>II`` stream id, length, payload; length 0 closes the stream. The first frame
of a stream carries its service's name. Stream ``RESET`` closes every stream; its payload comes
back as it is, so that the host can find the point from which every byte belongs to it.
"""

from __future__ import annotations

import argparse
import errno
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable

import ops

PORT = "/dev/virtio-ports/org.cua_gym.control"
RESET = 0xFFFFFFFF
HEADER = struct.Struct(">II")
MAX_PAYLOAD = 1 << 20
MAX_LINE = 8 << 20
CHUNK = 32 << 10
# Above this much waiting for the host, services are not read: their own flow control takes over.
HIGH_WATER = 256 << 10
# A service that does not take what the host sends for it; SSH's windows stay far below.
MAX_BACKLOG = 32 << 20
ABSENT_S = 0.25


class Stream:
    """One stream to a TCP service of this guest."""

    def __init__(self, number: int, port: int) -> None:
        self.number = number
        self.backlog = bytearray()
        self.connected = False
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.sock.connect(("127.0.0.1", port))
        except BlockingIOError:
            pass
        except OSError:
            self.sock.close()
            raise


class Guestd:
    """The loop: one port, many streams, and the operations' answers."""

    def __init__(self, open_port: Callable[[], int], ssh_port: int, operations: ops.Ops) -> None:
        self._open_port = open_port
        self._ssh_port = ssh_port
        self._ops = operations
        self._selector = selectors.DefaultSelector()
        self._selector.register(operations.wake_fd, selectors.EVENT_READ, "ops")
        self._port = -1
        self._port_events = 0
        self._incoming = bytearray()
        self._outgoing = bytearray()
        self._streams: dict[int, Stream] = {}
        self._lines: dict[int, bytearray] = {}
        self._newest = 0

    def run(self) -> None:
        """Serve for ever; a port without a host is looked at four times a second."""
        while True:
            if self._port < 0:
                self._port = self._open_port()
                os.set_blocking(self._port, False)
            self._watch()
            for key, events in self._selector.select(self._ops.next_deadline()):
                if key.data == "port":
                    self._port_ready(events)
                elif key.data == "ops":
                    self._ops.drain_wake()
                else:
                    self._stream_ready(key.data, events)
            for number, answer in self._ops.answers():
                if number in self._lines:
                    self._send(number, answer)

    def _watch(self) -> None:
        """Ask for exactly the events that can be acted upon."""
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
        if wanted != self._port_events:
            if self._port_events:
                self._selector.modify(self._port, wanted, "port")
            else:
                self._selector.register(self._port, wanted, "port")
            self._port_events = wanted
        full = len(self._outgoing) > HIGH_WATER
        for stream in self._streams.values():
            wanted = 0 if full or not stream.connected else selectors.EVENT_READ
            if stream.backlog or not stream.connected:
                wanted |= selectors.EVENT_WRITE
            known = self._selector.get_map().get(stream.sock.fileno())
            if known is None:
                if wanted:
                    self._selector.register(stream.sock, wanted, stream)
            elif not wanted:
                self._selector.unregister(stream.sock)
            elif known.events != wanted:
                self._selector.modify(stream.sock, wanted, stream)

    def _port_ready(self, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                data = os.read(self._port, CHUNK)
                if not data:
                    self._host_gone()
                    return
                self._incoming += data
                self._parse()
            if events & selectors.EVENT_WRITE and self._outgoing:
                sent = os.write(self._port, self._outgoing[:CHUNK])
                del self._outgoing[:sent]
        except BlockingIOError:
            pass
        except OSError as error:
            # The port says so in several ways while no host holds its other end.
            if error.errno not in (errno.EPIPE, errno.ENODEV, errno.EIO, errno.ECONNRESET):
                raise
            self._host_gone()

    def _host_gone(self) -> None:
        """Nobody holds the other end: forget all of it, and do not spin on the hang-up."""
        self._reset()
        self._incoming.clear()
        self._outgoing.clear()
        self._selector.unregister(self._port)
        self._port_events = 0
        os.close(self._port)
        self._port = -1
        time.sleep(ABSENT_S)

    def _parse(self) -> None:
        while len(self._incoming) >= HEADER.size:
            number, length = HEADER.unpack_from(self._incoming)
            if length > MAX_PAYLOAD:
                # Not a frame: the position in the byte stream is lost. Wait for a reset.
                sys.stderr.write(f"cua-guestd: a frame of {length} bytes; input thrown away\n")
                self._reset()
                self._incoming.clear()
                return
            end = HEADER.size + length
            if len(self._incoming) < end:
                return
            payload = bytes(self._incoming[HEADER.size : end])
            del self._incoming[:end]
            self._frame(number, payload)

    def _frame(self, number: int, payload: bytes) -> None:
        if number == RESET:
            self._reset()
            self._send(RESET, payload)
        elif not payload:
            self._close(number, tell=False)
        elif number in self._streams:
            stream = self._streams[number]
            stream.backlog += payload
            if len(stream.backlog) > MAX_BACKLOG:
                self._close(number)
            elif stream.connected:
                self._flush(stream)
        elif number in self._lines:
            self._take_lines(number, payload)
        elif number > self._newest:  # an older number is late data of a stream closed here
            self._newest = number
            self._open(number, payload)

    def _open(self, number: int, service: bytes) -> None:
        if service == b"ops":
            self._lines[number] = bytearray()
        elif service == b"ssh":
            try:
                self._streams[number] = Stream(number, self._ssh_port)
            except OSError as error:
                sys.stderr.write(f"cua-guestd: ssh: {error}\n")
                self._send(number, b"")
        else:
            self._send(number, b"")

    def _take_lines(self, number: int, payload: bytes) -> None:
        buffer = self._lines[number]
        buffer += payload
        *lines, rest = bytes(buffer).split(b"\n")
        buffer[:] = rest
        if len(rest) > MAX_LINE:
            self._close(number)
            return
        for line in lines:
            if line.strip():
                self._ops.request(number, line)

    def _stream_ready(self, stream: Stream, events: int) -> None:
        if self._streams.get(stream.number) is not stream:
            return  # closed by an earlier event of this round
        try:
            if not stream.connected:
                failed = stream.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if failed:
                    raise OSError(failed, os.strerror(failed))
                stream.connected = True
            if events & selectors.EVENT_WRITE:
                self._flush(stream)
            if events & selectors.EVENT_READ:
                data = stream.sock.recv(CHUNK)
                if not data:
                    self._close(stream.number)
                    return
                self._send(stream.number, data)
        except BlockingIOError:
            pass
        except OSError:
            self._close(stream.number)

    def _flush(self, stream: Stream) -> None:
        try:
            while stream.backlog:
                del stream.backlog[: stream.sock.send(stream.backlog[:CHUNK])]
        except BlockingIOError:
            pass
        except OSError:
            self._close(stream.number)

    def _send(self, number: int, payload: bytes) -> None:
        if number == RESET or not payload:
            self._outgoing += HEADER.pack(number, len(payload)) + payload
            return
        for start in range(0, len(payload), CHUNK):
            part = payload[start : start + CHUNK]
            self._outgoing += HEADER.pack(number, len(part)) + part

    def _close(self, number: int, tell: bool = True) -> None:
        stream = self._streams.pop(number, None)
        known = stream is not None or self._lines.pop(number, None) is not None
        if stream is not None:
            if stream.sock.fileno() in self._selector.get_map():
                self._selector.unregister(stream.sock)
            stream.sock.close()
        if known and tell:
            self._send(number, b"")

    def _reset(self) -> None:
        for number in [*self._streams, *self._lines]:
            self._close(number, tell=False)
        self._newest = 0


def wait_for_port(path: str) -> int:
    """Open the port once it is there and no one else holds it."""
    while True:
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EBUSY, errno.ENXIO):
                raise
        time.sleep(ABSENT_S)


def main() -> None:
    """Serve the port named on the command line, or an inherited descriptor until its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", default=PORT)
    parser.add_argument("--fd", type=int, help="serve this descriptor and exit at its end")
    parser.add_argument("--ssh-port", type=int, default=22)
    parser.add_argument("--uid", type=int, default=1000, help="the desktop account")
    parser.add_argument("--display", default=":0")
    args = parser.parse_args()
    given = [] if args.fd is None else [args.fd]

    def open_port() -> int:
        if args.fd is None:
            return wait_for_port(args.port)
        if not given:
            raise SystemExit(0)
        return given.pop()

    Guestd(open_port, args.ssh_port, ops.Ops(args.uid, args.display)).run()


if __name__ == "__main__":
    main()
