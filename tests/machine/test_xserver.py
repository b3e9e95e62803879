"""Connections to an X server that goes away while they begin."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.errors import MachineLost
from cua_gym.machine.x11.xserver import Eye, Watcher
from tests.machine import guestd

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The path of a real server's socket."""
    with guestd.xvfb() as display:
        yield f"/tmp/.X11-unix/X{display.removeprefix(':')}"


@contextlib.contextmanager
def cut(server: str, answers: int) -> Iterator[socket.socket]:
    """A connection to ``server`` that ends after so many pieces of what it says."""
    near, far = socket.socketpair()
    real = socket.socket(socket.AF_UNIX)
    real.connect(server)

    def say() -> None:
        with contextlib.suppress(OSError):
            while data := far.recv(1 << 16):
                real.sendall(data)

    def hear() -> None:
        with contextlib.suppress(OSError):
            for _ in range(answers):
                far.sendall(real.recv(1 << 20))
            # The last request is heard, and what it asks is not answered.
            real.recv(1)
        far.shutdown(socket.SHUT_RDWR)

    threads = [threading.Thread(target=say), threading.Thread(target=hear)]
    for thread in threads:
        thread.start()
    try:
        yield near
    finally:
        real.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        far.close()
        real.close()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("answers", range(5))
@pytest.mark.parametrize("kind", [Eye, Watcher])
def test_one_that_cannot_begin_leaves_nothing_open(server: str, kind: type, answers: int) -> None:
    """It is a lost machine, and its socket is closed."""
    ignored = {"changed": None, "reshaped": None, "lost": None} if kind is Watcher else {}
    before = open_files()
    with cut(server, answers) as sock, pytest.raises(MachineLost, match="X server"):
        kind(sock, **ignored)
    assert open_files() == before
