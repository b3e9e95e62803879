"""What a light desktop with a network reaches, asked from inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cua_gym.machine.network.gateway import Gateway
from cua_gym.machine.start import start_machine
from tests.machine.network.site import got, serving
from tests.machine.x11.conftest import SPEC

pytestmark = [pytest.mark.x11, pytest.mark.slow]


@pytest.fixture
def port() -> Iterator[int]:
    """A web server on this host's loopback."""
    with serving() as port:
        yield port


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
    assert answers == [f"shop.example:{port} /", *["none"] * 3]


def test_an_open_network_keeps_off_the_hosts_loopback(port: int) -> None:
    """There is a way out, and home is not at its end."""
    with start_machine(replace(SPEC, network="open")) as machine:
        routes = machine.shell.run("cat /proc/net/route").text
        assert "tap0" in routes
        assert got(machine, f"http://10.0.2.2:{port}/", f"http://127.0.0.1:{port}/") == ["none"] * 2
