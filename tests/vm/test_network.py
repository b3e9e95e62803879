"""What a virtual machine reaches, asked from inside."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.network.gateway import Gateway
from cua_gym.machine.start import start_machine

pytestmark = pytest.mark.vm

ASK = """
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=8).read().decode())
    except OSError as error:
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
    """A web server at every address of this host, its loopback's too."""
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), _Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def got(machine: Machine, *urls: str) -> list[str]:
    """What the guest's own programs get from these."""
    done = machine.shell.run(["python3", "-c", ASK, *urls], timeout_s=120)
    return done.text.split("\n")[: len(urls)]


def own_address() -> str | None:
    """An address of this host that is not its loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        try:
            end.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(end.getsockname()[0])


def test_without_a_network_nothing_is_reached(shared: Machine, port: int) -> None:
    """The host's loopback by the gateway's address, its own address, names, the world."""
    urls = [f"http://{host}:{port}/" for host in ("10.0.2.2", own_address() or "10.0.2.3")]
    assert got(shared, *urls, "http://example.org/", "http://1.1.1.1/") == ["none"] * 4


def test_with_named_hosts_only_they_are_reached(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the guest's resolver and routes, as any program has them; and after a restore too."""

    async def resolved(_: Gateway, name: str, *__: Any) -> list[str]:
        return ["127.0.0.1"] if name == "shop.example" else []

    monkeypatch.setattr(Gateway, "_resolved", resolved)
    urls = [
        f"http://shop.example:{port}/",
        f"http://other.example:{port}/",
        f"http://10.0.2.2:{port}/",
        f"http://127.0.0.1:{port}/",
        f"http://{own_address() or '10.0.2.3'}:{port}/",
        "http://1.1.1.1/",
    ]
    wanted = [f"site of shop.example:{port}", *["none"] * 5]
    with start_machine(MachineSpec(network=(f"shop.example:{port}",))) as machine:
        assert got(machine, *urls) == wanted
        state = machine.snapshot("test-network")
        try:
            machine.restore(state)
            assert got(machine, *urls) == wanted
        finally:
            machine.discard(state)


def test_an_open_network_keeps_off_the_hosts_loopback(port: int) -> None:
    """Its other addresses are the world's."""
    away = own_address()
    with start_machine(MachineSpec(network="open")) as machine:
        assert got(machine, f"http://10.0.2.2:{port}/") == ["none"]
        if away is not None:
            assert got(machine, f"http://{away}:{port}/") == [f"site of {away}:{port}"]
