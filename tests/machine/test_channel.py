"""The control channel against the guest's real daemon."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cua_gym.errors import MachineError, MachineLost, MachineTimeout
from cua_gym.machine.channel import ControlChannel
from tests.machine import guestd

RESET = 0xFFFFFFFF


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a local TCP server that sends everything back, and greets like sshd."""
    listener = socket.create_server(("127.0.0.1", 0))
    serving: list[threading.Thread] = []

    def serve(client: socket.socket) -> None:
        # Whoever is done with it hangs up, in the middle of an echo too.
        with contextlib.suppress(ConnectionError), client:
            while data := client.recv(65536):
                client.sendall(data)

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            serving.append(threading.Thread(target=serve, args=(client,), daemon=True))
            serving[-1].start()

    thread = threading.Thread(target=accept)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for each in serving:  # the next test counts threads
        each.join(30)


def wait_until(condition: Callable[[], bool]) -> None:
    """Until ``condition`` holds; a failure otherwise."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_stream_is_transparent(echo: int) -> None:
    """Megabytes come back byte for byte, both directions busy at once."""
    data = os.urandom(3 << 20)
    with guestd.guest(ssh_port=echo) as channel, channel.open("ssh") as stream:
        stream.settimeout(30)
        sender = threading.Thread(target=stream.sendall, args=(data,))
        sender.start()
        received = bytearray()
        while len(received) < len(data):
            received += stream.recv(1 << 20)
        sender.join()
    assert received == data


def test_many_streams_leak_nothing(echo: int) -> None:
    """200 opens and closes leave no descriptor and no thread, here or in the daemon."""
    with guestd.guest(ssh_port=echo) as channel:
        threads = threading.active_count()

        def once() -> None:
            with channel.open("ssh") as stream:
                stream.settimeout(10)
                stream.sendall(b"x")
                assert stream.recv(1) == b"x"

        once()
        channel.close_streams()
        wait_until(lambda: threading.active_count() == threads)  # the echo server's are here too
        before = len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(200):
            once()
        channel.close_streams()
        wait_until(lambda: threading.active_count() == threads)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_service_that_is_not_there_ends() -> None:
    """An unknown service, or a port where nothing listens, shows as the end of the stream."""
    with guestd.guest() as channel:
        for service in ("nonsense", "ssh"):
            with channel.open(service) as stream:
                stream.settimeout(10)
                assert stream.recv(1) == b""


def test_reset_ends_streams_on_both_sides(echo: int) -> None:
    """After a reset the old stream is at its end and new ones work."""
    with guestd.guest(ssh_port=echo) as channel:
        old = channel.open("ssh")
        old.settimeout(10)
        old.sendall(b"x")
        assert old.recv(1) == b"x"
        assert channel.ops.call("ping")["time_ns"] > 0
        channel.reset()
        assert old.recv(1) == b""
        old.close()
        assert channel.ops.call("ping")["time_ns"] > 0


def test_restored_guest_full_of_an_old_hosts_bytes(echo: int) -> None:
    """A guest that is in the middle of talking to a host that is gone serves the next one."""
    first, end = socket.socketpair()
    daemon = guestd.start(end, ssh_port=echo)
    first.sendall(struct.pack(">II", 1, 3) + b"ssh" + struct.pack(">II", 1, 5) + b"stale")
    assert first.recv(4, socket.MSG_WAITALL) == struct.pack(">I", 1)  # half a header is taken
    with ControlChannel(first) as channel:
        channel.reset(timeout_s=10)
        assert channel.ops.call("ping")["time_ns"] > 0
    assert daemon.wait(10) == 0


def test_operations_say_why_not() -> None:
    """What the guest refuses is a MachineError with its reason; the next operation works."""
    with guestd.guest() as channel:
        with pytest.raises(MachineError, match="no operation is called 'dance'"):
            channel.ops.call("dance")
        with pytest.raises(MachineError, match="unexpected keyword"):
            channel.ops.call("ping", loudly=True)
        with pytest.raises(MachineError, match="X display"):
            channel.ops.call("keymap")
        assert channel.ops.call("ping")["time_ns"] > 0
        before = time.time_ns()
        assert before <= channel.ops.call("hello")["time_ns"] <= time.time_ns()


def test_malformed_input_does_not_end_the_daemon() -> None:
    """Lines that are no requests get an error each; a frame that is none waits for a reset."""
    with guestd.guest() as channel, channel.open("ops") as raw:
        raw.settimeout(10)
        raw.sendall(b'\xff\n[]\n"x"\n{"op":[]}\n' + b"[" * 100_000 + b"\n")
        answers = raw.makefile("rb")
        assert all(b'"ok": false' in answers.readline() for _ in range(5))
        channel._post(lambda: channel._outgoing.append(b"\xee" * 64))
        channel.reset(timeout_s=10)
        assert channel.ops.call("ping")["time_ns"] > 0
        answers.close()


def test_reset_thrown_away_with_what_was_before_it_is_sent_again() -> None:
    """A daemon that reads nonsense and a reset in one piece loses both, and hears the next one."""
    first, end = socket.socketpair()
    first.sendall(b"\xee" * 64)
    with ControlChannel(first) as channel:
        wait_until(lambda: not channel._outgoing)
        first_reset = channel._awaited
        resets = threading.Thread(target=channel.reset, args=(10,))
        resets.start()
        # Its reset is behind the nonsense too.
        wait_until(lambda: channel._awaited is not first_reset and not channel._outgoing)
        daemon = guestd.start(end)
        resets.join()
        assert channel.greeted
        assert channel.ops.call("ping")["time_ns"] > 0
    assert daemon.wait(10) == 0


def test_guest_that_is_gone_is_machine_lost() -> None:
    """Every call after the guest's end is gone raises MachineLost, at once."""
    host, end = socket.socketpair()
    with ControlChannel(host) as channel:
        stream = channel.open("ssh")
        end.close()
        assert stream.recv(1) == b""
        stream.close()
        with pytest.raises(MachineLost, match="gone"):
            channel.ops.call("ping")
        with pytest.raises(MachineLost):
            channel.reset(timeout_s=1)
    channel.close()


def test_silent_guest_times_out() -> None:
    """A guest that answers nothing costs the stated time and no more."""
    host, end = socket.socketpair()
    with end, ControlChannel(host) as channel:
        with pytest.raises(MachineTimeout, match=r"'ping' in 0\.05 s"):
            channel.ops.call("ping", timeout_s=0.05)
        with pytest.raises(MachineTimeout, match="cua-guestd"):
            channel.reset(timeout_s=0.05)


class FakeGuest:
    """A guest's end of the channel that says what a test wants."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        reset = self.frame()
        assert reset[0] == RESET
        self.send(*reset)

    def frame(self) -> tuple[int, bytes]:
        """The host's next frame."""
        number, length = struct.unpack(">II", self.end.recv(8, socket.MSG_WAITALL))
        return number, self.end.recv(length, socket.MSG_WAITALL) if length else b""

    def send(self, number: int, payload: bytes) -> None:
        """One frame to the host."""
        self.end.sendall(struct.pack(">II", number, len(payload)) + payload)


@pytest.mark.parametrize(
    "reply",
    [b"{}\n", b"[]\n", b"nonsense\n", b'{"id": 7, "ok": true}\n', b'{"id": 1, "ok": 1}\n',
     b"\xff\n", b"[" * 99999 + b"\n", b'{"id": 1, "ok": true}\n{"id": 2, "ok": true}\n'],
)  # fmt: skip
def test_hostile_answers_are_errors(reply: bytes) -> None:
    """An answer that is none is a MachineError, never a result."""
    host, end = socket.socketpair()
    with end, ControlChannel(host) as channel:
        guest = FakeGuest(end)

        def answer() -> None:
            assert guest.frame() == (1, b"ops")
            guest.frame()
            guest.send(1, reply)

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(MachineError, match="broken"):
            channel.ops.call("ping")
        answering.join()


def test_oversized_frame_ends_the_channel() -> None:
    """A frame longer than any can be is a broken guest, not an allocation."""
    host, end = socket.socketpair()
    with end, ControlChannel(host) as channel:
        guest = FakeGuest(end)
        stream = channel.open("ssh")
        guest.end.sendall(struct.pack(">II", 1, 0xFFFFFFF0))
        assert stream.recv(1) == b""
        stream.close()
        with pytest.raises(MachineLost, match="no frame"):
            channel.open("ssh")


def test_close_is_idempotent_and_ends_the_thread() -> None:
    """Closing twice is fine; no thread stays, and a waiting call ends as lost."""
    threads = threading.active_count()
    host, end = socket.socketpair()
    with end:
        channel = ControlChannel(host)
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                channel.ops.call("ping", timeout_s=30)
            except MachineLost as error:
                failures.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        assert FakeGuest(end).frame() == (1, b"ops")
        channel.close()
        channel.close()
        waiting.join(10)
        assert failures
        assert threading.active_count() == threads
        with pytest.raises(MachineLost):
            channel.open("ssh")
