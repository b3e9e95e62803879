"""A web server on this host for machines to ask, and what their own programs get from addresses."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cua_gym.machine.base import Machine

__all__ = ["got", "serving"]

ASK = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=8).read().decode())
    except OSError:
        print("none")
"""


class _Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(f"{self.headers['Host']} {self.path}".encode())

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"]))[::-1])

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(address: str = "127.0.0.1") -> Iterator[int]:
    """Its port: a GET gives the asked host and path, a POST its body from behind."""
    with http.server.ThreadingHTTPServer((address, 0), _Site) as server:
        server.daemon_threads = False  # so they are waited for, and the next test counts none
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def got(machine: Machine, *urls: str) -> list[str]:
    """What a program inside gets from each; ``none`` where there is no answer."""
    done = machine.shell.run(["python3", "-c", ASK, *urls], timeout_s=120)
    return done.text.split("\n")[: len(urls)]
