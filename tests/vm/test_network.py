"""What a virtual machine reaches, asked from inside."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.network.gateway import Gateway
from cua_gym.machine.start import start_machine
from tests.machine.network.site import got, serving

pytestmark = pytest.mark.vm


@pytest.fixture
def port() -> Iterator[int]:
    """A web server at every address of this host, its loopback's too."""
    with serving("0.0.0.0") as port:
        yield port


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
    wanted = [f"shop.example:{port} /", *["none"] * 5]
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
            assert got(machine, f"http://{away}:{port}/") == [f"{away}:{port} /"]
