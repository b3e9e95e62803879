"""A port on the host's loopback that leads to somewhere else, such as into a guest."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["relayed"]

_CHUNK = 1 << 18


@contextlib.contextmanager
def relayed(connect: Callable[[], Any]) -> Iterator[int]:
    """The port; each connection to it is joined with one that ``connect`` makes.

    Args:
        connect: gives a connected socket, or what has its ``recv``, ``sendall``, ``close``.
    """
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return  # it was closed
            threading.Thread(target=_join, args=(near, connect), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def _join(near: socket.socket, connect: Callable[[], Any]) -> None:
    near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    far = connect()
    back = threading.Thread(target=_pump, args=(far, near), daemon=True)
    back.start()
    _pump(near, far)
    back.join()
    near.close()
    far.close()


def _pump(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError, EOFError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError, EOFError):
            end.shutdown(socket.SHUT_RDWR)
