"""What a light desktop with a network reaches, asked from inside."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cua_gym.machine.base import Machine
from cua_gym.machine.network.gateway import Gateway
from cua_gym.machine.start import start_machine
from tests.machine.x11.conftest import SPEC

pytestmark = [pytest.mark.x11, pytest.mark.slow]

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
        body = f"site of {self.headers['Host']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """A web server on this host's loopback."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def got(machine: Machine, *urls: str) -> list[str]:
    """What programs inside get from these."""
    done = machine.shell.run(["python3", "-c", ASK, *urls], timeout_s=120)
    return done.text.split("\n")[: len(urls)]


def test_only_named_hosts_are_reached(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the desktop's own resolver; the loopback inside is not the host's."""

    async def resolved(_: Gateway, name: str, *__: Any) -> list[str]:
        return ["127.0.0.1"] if name == "shop.example" else []

    monkeypatch.setattr(Gateway, "_resolved", resolved)
    with start_machine(replace(SPEC, network=(f"shop.example:{port}",))) as machine:
        answers = got(
            machine,
            f"http://shop.example:{port}/",
            f"http://other.example:{port}/",
            f"http://127.0.0.1:{port}/",
            "http://1.1.1.1/",
        )
    assert answers == [f"site of shop.example:{port}", *["none"] * 3]


def test_an_open_network_keeps_off_the_hosts_loopback(port: int) -> None:
    """There is a way out, and home is not at its end."""
    with start_machine(replace(SPEC, network="open")) as machine:
        routes = machine.shell.run("cat /proc/net/route").text
        assert "tap0" in routes
        assert got(machine, f"http://10.0.2.2:{port}/", f"http://127.0.0.1:{port}/") == ["none"] * 2
