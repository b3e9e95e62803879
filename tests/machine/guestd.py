"""The guest's daemon as a local process, for tests: on a socket pair, with X or sshd or neither."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cua_gym.machine.channel import ControlChannel

SOURCE = Path(__file__).parents[2] / "images" / "shared" / "guestd"


def start(end: socket.socket, *, display: str = ":nothing", ssh_port: int = 1) -> subprocess.Popen:
    """Start the daemon on ``end``, which is then the daemon's alone."""
    command = [sys.executable, "-sEB", str(SOURCE / "cua_guestd.py"), "--fd", str(end.fileno())]
    command += ["--display", display, "--ssh-port", str(ssh_port), "--uid", str(os.getuid())]
    daemon = subprocess.Popen(command, pass_fds=[end.fileno()], stderr=subprocess.DEVNULL)
    end.close()
    return daemon


@contextmanager
def guest(*, display: str = ":nothing", ssh_port: int = 1) -> Iterator[ControlChannel]:
    """A channel to a running daemon; both are gone afterwards."""
    host, end = socket.socketpair()
    daemon = start(end, display=display, ssh_port=ssh_port)
    try:
        with ControlChannel(host) as channel:
            channel.reset(timeout_s=20)
            yield channel
        assert daemon.wait(10) == 0
    finally:
        daemon.kill()
        daemon.wait()


@contextmanager
def xvfb() -> Iterator[str]:
    """The name of a fresh X display of 800x600."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", "-nolisten", "tcp"]
    server = subprocess.Popen(
        [*command, "-extension", "GLX", "-noreset"], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    try:
        with os.fdopen(read) as answer:
            yield f":{answer.readline().strip()}"
    finally:
        server.terminate()
        server.wait()
