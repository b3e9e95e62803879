"""A network namespace of its own, seen from inside by programs that run in it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cua_gym.machine.network.gateway import NAMESERVER, Gateway, _nameservers
from tests.machine.network.site import serving

INSIDE = Path(__file__).with_name("inside.py")


@pytest.fixture
def site() -> Iterator[int]:
    """Port of a web server on the host's loopback."""
    with serving() as port:
        yield port


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Where names lie, for gateways; every address may be connected to."""
    known: dict[str, str] = {}

    async def resolved(_: Gateway, name: str, port: int, family: int = 0) -> list[str]:
        if name not in known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [known[name]]

    monkeypatch.setattr(Gateway, "_resolved", resolved)
    return known


def inside(gateway: Gateway, *questions: list[Any]) -> list[Any]:
    """Answers of ``inside.py``, run in the gateway's namespace."""
    fds: list[int] = []

    def keep(fd: int) -> int:
        fds.append(fd)
        return fd

    words = [*gateway.enter(keep), sys.executable, "-I", str(INSIDE), json.dumps(questions)]
    done = subprocess.run(words, pass_fds=fds, capture_output=True, text=True, check=True)
    for fd in fds:
        os.close(fd)
    answers: list[Any] = json.loads(done.stdout)
    return answers


def test_named_hosts_answer_and_nothing_else_does(site: int, hosts: dict[str, str]) -> None:
    """Through the namespace's own resolver and loopback, whole and both ways."""
    hosts |= {"shop.example": "127.0.0.1", "deep.sub.example": "127.0.0.1"}
    with Gateway((f"shop.example:{site}", f"*.sub.example:{site}")) as gateway:
        answers = inside(
            gateway,
            ["name", "SHOP.example"],
            ["name", "other.example"],
            ["name", "sub.example"],
            ["get", "shop.example", site, "/a"],
            ["get", "deep.sub.example", site, "/b"],
            ["post", "shop.example", site, 3_000_000],
            ["get", "shop.example", 80, "/"],
            ["get", "127.0.0.1", site, "/"],
            ["get", NAMESERVER, site, "/"],
            ["get", "192.0.2.1", 80, "/"],
            ["interfaces"],
        )
    assert answers[0].startswith(("198.18.", "198.19."))
    assert answers[1:3] == [None, None]
    assert answers[3] == f"shop.example:{site} /a"
    assert answers[4] == f"deep.sub.example:{site} /b"
    assert answers[5] is True
    assert answers[6:10] == [None] * 4
    assert answers[10] == ["lo"]


def test_a_name_that_leads_home_leads_nowhere(site: int, tmp_path: Path) -> None:
    """What a name resolves to is judged, by the real resolver: localhost is the host's own."""
    with Gateway((f"localhost:{site}",)) as gateway:
        [answer] = inside(gateway, ["get", "localhost", site, "/"])
    assert answer is None


def test_an_address_is_the_same_in_the_next_gateway(hosts: dict[str, str]) -> None:
    """A restored guest may still know what it was told before."""
    del hosts
    given = []
    for network in (("a.example", "b.example"), ("b.example", "*.c.example")):
        with Gateway(network) as gateway:
            given.append(inside(gateway, ["name", "b.example"]))
    assert given[0] == given[1] != [None]


def test_an_open_network_has_a_way_out_but_not_home(site: int) -> None:
    """A route, and names; the host's loopback is not at the far end of it."""
    with Gateway("open") as gateway:
        interfaces, metadata, world, *home = inside(
            gateway,
            ["interfaces"],
            ["source", "169.254.169.254"],
            ["source", "192.0.2.1"],
            *(["get", address, site, "/"] for address in ("10.0.2.2", "127.0.0.1", "localhost")),
        )
    assert interfaces == ["lo", "tap0"]
    assert (metadata, world) == ("169.254.0.1", "10.0.2.100")  # its own loopback's, the way out's
    assert home == [None] * 3


@pytest.mark.parametrize("junk", [b"", b"\0" * 11, b"\xff" * 600, b"\0\1\x80\0" + b"\0" * 8])
def test_junk_for_the_name_server_is_not_answered(junk: bytes) -> None:
    """And the next question is."""
    with Gateway(("a.example",)) as gateway:
        answers = inside(gateway, ["datagram", junk.hex()], ["name", "a.example"])
    assert answers[0] is None
    assert answers[1] is not None


def test_connections_are_bounded(
    site: int, hosts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest cannot use up the host's descriptors; when some end there is room again."""
    monkeypatch.setattr("cua_gym.machine.network.gateway._MOST_CONNECTIONS", 5)
    hosts["a.example"] = "127.0.0.1"
    with Gateway((f"a.example:{site}",)) as gateway:
        held, after = inside(
            gateway, ["hold", "a.example", site, 9], ["get", "a.example", site, "/"]
        )
    assert held == 5
    assert after == f"a.example:{site} /"


@pytest.mark.parametrize("network", [("a.example",), "open"])
def test_nothing_stays(network: Any) -> None:
    """No thread, descriptor or process after closing, which may be done twice."""
    Gateway(network).close()  # what is only made once is there
    before = (threading.active_count(), _descriptors(), _children())
    gateway = Gateway(network)
    gateway.close()
    gateway.close()
    assert (threading.active_count(), _descriptors(), _children()) == before


def test_a_killed_owner_leaves_no_way_out() -> None:
    """slirp4netns ends when its owner is gone."""
    code = (
        "from cua_gym.machine.network.gateway import Gateway\n"
        "import time\n"
        "gateway = Gateway('open')\n"
        "print(gateway._way_out._process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    _until(lambda: not _runs(pid))


def test_name_servers_of_the_host(tmp_path: Path) -> None:
    """IPv4 ones; anything may stand in that file."""
    path = tmp_path / "resolv.conf"
    path.write_text("# nameserver 1.1.1.1\nnameserver 10.0.0.53 \nnameserver ::1\nnameserver\nx\n")
    assert _nameservers(path) == ["10.0.0.53"]
    assert _nameservers(tmp_path / "absent") == []


def test_the_real_resolver_keeps_off_the_host() -> None:
    """What stands for this host is taken out of the answers."""

    async def asked(gateway: Gateway) -> list[str]:
        gateway._loop = asyncio.get_running_loop()
        return await Gateway._resolved(gateway, "localhost", 80)

    assert asyncio.run(asked(object.__new__(Gateway))) == []


@pytest.mark.parametrize("name", ["a" * 70 + ".example", "\0.example", ".."])
def test_what_no_resolver_takes_is_no_name(name: str) -> None:
    """A guest may ask for anything; it is told that there is none."""

    async def asked(gateway: Gateway) -> list[str]:
        gateway._loop = asyncio.get_running_loop()
        return await Gateway._resolved(gateway, name, 80)

    with pytest.raises(socket.gaierror):
        asyncio.run(asked(object.__new__(Gateway)))


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
