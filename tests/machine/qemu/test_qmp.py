"""The control wire against a scripted QEMU."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cua_gym.errors import MachineLost, MachineTimeout
from cua_gym.machine.qemu.qmp import Qmp, QmpRefused

Peer = Callable[[socket.socket], None]


@contextmanager
def wire(peer: Peer, **options: Any) -> Iterator[Qmp]:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with theirs:
            peer(theirs)

    thread = threading.Thread(target=run)
    thread.start()
    qmp = Qmp(ours, **options)
    try:
        yield qmp
    finally:
        qmp.close()
        thread.join()


def say(sock: socket.socket, *messages: dict[str, Any]) -> None:
    sock.sendall(b"".join(json.dumps(m).encode() + b"\r\n" for m in messages))


def hear(sock: socket.socket) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        line += sock.recv(1)
    message: dict[str, Any] = json.loads(line)
    return message


def test_events_between_command_and_reply_are_handed_on() -> None:
    """A reply is found behind events, and every event is reported once."""
    events: list[str] = []

    def peer(sock: socket.socket) -> None:
        say(sock, {"QMP": {}})
        say(sock, {"event": "EARLY"}, {"return": {}, "id": hear(sock)["id"]})
        say(sock, {"event": "LATE", "data": {"x": 1}}, {"return": 7, "id": hear(sock)["id"]})

    with wire(peer, on_event=lambda name, _: events.append(name)) as qmp:
        qmp.greet(5.0)
        assert qmp.execute("ask") == 7
    assert events == ["EARLY", "LATE"]


def test_a_refusal_is_its_own_error() -> None:
    """QEMU's description is in the message."""

    def peer(sock: socket.socket) -> None:
        say(sock, {"error": {"class": "X", "desc": "no such thing"}, "id": hear(sock)["id"]})

    with wire(peer) as qmp, pytest.raises(QmpRefused, match="no such thing"):
        qmp.execute("ask")


def test_a_late_reply_is_not_taken_for_the_next_one() -> None:
    """After a timeout the connection is still right."""
    go = threading.Event()

    def peer(sock: socket.socket) -> None:
        first = hear(sock)["id"]
        go.wait(10)
        say(sock, {"return": "first", "id": first})
        say(sock, {"return": "second", "id": hear(sock)["id"]})

    with wire(peer) as qmp:
        with pytest.raises(MachineTimeout):
            qmp.execute("slow", timeout_s=0.05)
        go.set()
        assert qmp.execute("quick") == "second"


def test_the_end_of_qemu_is_a_typed_error_with_its_cause() -> None:
    """A closed socket raises at once and quotes why."""

    def peer(sock: socket.socket) -> None:
        hear(sock)

    with wire(peer, why_lost=lambda: "it was killed") as qmp:
        with pytest.raises(MachineLost, match="it was killed"):
            qmp.execute("ask", timeout_s=30.0)
        with pytest.raises(MachineLost):
            qmp.drain()


def test_descriptors_travel_with_their_command() -> None:
    """What is sent along arrives with the first byte."""
    got: list[int] = []

    def peer(sock: socket.socket) -> None:
        data, fds, _, _ = socket.recv_fds(sock, 4096, 4)
        got.extend(fds)
        say(sock, {"return": {}, "id": json.loads(data)["id"]})

    reader, writer = os.pipe()
    with wire(peer) as qmp:
        qmp.execute("getfd", {"fdname": "x"}, fds=[writer])
    os.write(got[0], b"hello")
    assert os.read(reader, 5) == b"hello"
    for fd in (reader, writer, *got):
        os.close(fd)
