"""A model endpoint on loopback that answers what a script says, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Reply = Mapping[str, Any] | str | tuple[int, Mapping[str, Any]] | Callable[[dict[str, Any]], Any]
"""A JSON body, a body that is none, an HTTP error, or what makes one of these from a request."""


@dataclass
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    size: int


@dataclass
class Trickle:
    """An answer that comes byte by byte and never ends before the server does."""

    over: threading.Event = field(default_factory=threading.Event)


class ModelServer:
    """Answers the n-th request with the n-th reply, and further ones with the last."""

    def __init__(self, replies: Iterable[Reply | Trickle]) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        self._over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        data = handler.rfile.read(int(handler.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.asked.append(Asked(handler.path, headers, json.loads(data), len(data)))
        reply: Any = self.replies[min(len(self.asked), len(self.replies)) - 1]
        while callable(reply):
            reply = reply(self.asked[-1].body)
        status, kind = 200, "application/json"
        if isinstance(reply, Trickle):
            handler.send_response(200)
            handler.send_header("Content-Type", kind)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            try:
                while not self._over.wait(0.05):
                    handler.wfile.write(b" ")
            except OSError:
                pass  # the client gave up, as it should
            handler.close_connection = True
            return
        if isinstance(reply, tuple):
            status, reply = reply
        if isinstance(reply, str):
            kind, content = "text/html", reply.encode()
        else:
            content = json.dumps(reply).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("Retry-After-Ms", "1")  # both clients heed it: no test waits
        handler.end_headers()
        handler.wfile.write(content)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
