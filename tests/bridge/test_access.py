"""Who may come in: this machine, with the right token, one client at a time."""

from __future__ import annotations

import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import anyio
import httpx2
import pytest

from cua_gym.bridge.access import Lease
from cua_gym.bridge.serve import Served, configuration, stdio_configuration
from cua_gym.bridge.session import Bridge
from tests.bridge.clients import (
    HTTP,
    WAYS,
    Way,
    bridge_command,
    connect,
    facts_of,
    toy_served,
    with_token,
)
from tests.bridge.raw import raw
from tests.bridge.test_transports import running, until


def refused(served: Served, bridge: Bridge, way: Way) -> str:
    """How another client is refused: what it is told."""
    if way == "stdio":
        done = subprocess.run(
            bridge_command(served.origin, bridge),
            env=with_token(served.session.token(bridge)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 3, done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        return done.stderr
    with raw(served, bridge, way) as second:
        answer = second.begin()
        assert answer.status_code == 409
        assert second.post(second.body("status", {})).status_code == 409
        return answer.text


@pytest.mark.parametrize("first", WAYS)
def test_a_second_client_is_refused_and_the_first_goes_on(served: Served, first: Way) -> None:
    """Over whatever transport it comes; when the first has gone the next is let in."""
    with connect(served, "desktop", first) as one:
        facts_of(one.call("screenshot"))
        for second in WAYS if first == "modern" else HTTP:
            assert "another client" in refused(served, "desktop", second)
        facts_of(one.call("screenshot"))
        with connect(served, "shell", "modern") as other:  # the other bridge is another matter
            facts_of(other.call("status"))
    for second in HTTP:
        with connect(served, "desktop", second) as two:
            facts_of(two.call("screenshot"))


def test_a_client_is_who_its_connection_says(served: Served) -> None:
    """No header makes somebody else of it, nor lets another in beside it."""
    with raw(served, "desktop", "modern") as one, raw(served, "desktop", "modern") as two:
        one.headers["X-Forwarded-For"] = two.headers["X-Forwarded-For"] = "127.0.0.9"
        assert one.begin().status_code == 200
        assert two.begin().status_code == 409


def test_a_second_client_is_refused_while_the_first_waits_for_an_answer(served: Served) -> None:
    """A long call is no gap for somebody else to come in by."""
    with connect(served, "shell", "modern") as one:
        call = one.begin("run", command="sleep 66.25")
        until(lambda: running("66.25"))
        for second in HTTP:
            with raw(served, "shell", second) as other:
                assert other.begin().status_code == 409
        call.cancel()
        facts_of(one.call("status"))


@pytest.mark.parametrize("begins", [False, True])
def test_a_second_connection_of_one_client(begins: bool) -> None:
    """It comes while the first is busy or a moment later; a client that begins is another one."""
    first, second = ("127.0.0.1", 1), ("127.0.0.1", 2)
    lease = Lease(lambda: {first, second})

    async def admitted() -> tuple[bool, bool, bool]:
        await lease.admit(first, None, begins=True)
        with lease.asking():
            busy = await lease.admit(second, None, begins)
            lease._peers.discard(second)
        after = await lease.admit(second, None, begins)
        lease._peers.discard(second)
        lease._answered -= 60
        return busy, after, await lease.admit(second, None, begins)

    assert anyio.run(admitted) == (not begins, not begins, False)


@pytest.mark.parametrize("way", HTTP)
def test_quick_calls_at_once_are_all_let_in(quick_served: Served, way: Way) -> None:
    """However the connections of one client take turns."""
    with connect(quick_served, "desktop", way) as one:
        for _ in range(20):
            for call in [one.begin(tool) for tool in ("nosuch", "screen_size", "nosuch")]:
                call.result(30)


@pytest.mark.parametrize("way", HTTP)
def test_a_connection_that_breaks_cancels_its_call(served: Served, way: Way) -> None:
    """The program is killed, and the client may come again."""
    with raw(served, "shell", way) as client:
        assert client.begin().status_code == 200
        client.http.close()
        with client.drop("run", {"command": "sleep 66.5"}):
            until(lambda: running("66.5"))
        until(lambda: not running("66.5"))
    with connect(served, "shell", way) as again:
        facts_of(again.call("run", command="true"))


@pytest.mark.parametrize("tools", ["gui", "shell", "both"])
def test_the_policy_decides_which_bridges_there_are(tmp_path: Path, tools: str) -> None:
    """One that there is not has no token, and none of another opens it."""
    there: dict[str, set[Bridge]] = {
        "gui": {"desktop"}, "shell": {"shell"}, "both": {"desktop", "shell"},
    }  # fmt: skip
    with toy_served(tmp_path, tools=tools) as served:
        every: tuple[Bridge, ...] = ("desktop", "shell")
        tokens = [served.session.token(b) for b in (*there[tools], "view")]
        assert set(served.bridges) == there[tools]
        names = {f"cua-gym-{bridge}" for bridge in there[tools]}
        assert configuration(served)["mcpServers"].keys() == names
        assert stdio_configuration(served)["mcpServers"].keys() == names
        for bridge in every:
            own = served.session.token(bridge) if bridge in there[tools] else None
            for token in tokens:
                with raw(served, bridge, "legacy", token) as client:
                    assert client.begin().status_code == (200 if token == own else 401)
                    look = client.http.get(f"{served.url(bridge)}/presence?look=1")
                    assert look.status_code == (200 if token == own else 401)
            if own is None:
                with pytest.raises(KeyError):
                    served.session.token(bridge)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "Bearer",
        "Basic {token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {head}",
        "Bearer {token} {token}",
        "Bearer ünïcode\xff",
        "Bearer " + "x" * 8000,
        "Bearer {other}",
        "Bearer {view}",
    ],
)
def test_without_the_right_token_nothing_is_told(quick_served: Served, value: str | None) -> None:
    """401, whatever is asked for and however."""
    session = quick_served.session
    token = session.token("desktop")
    headers = {}
    if value is not None:
        filled = value.format(
            token=token, head=token[:-1], other=session.token("shell"), view=session.token("view")
        )
        headers = {"Authorization": filled.encode("latin-1")}
    with httpx2.Client(headers=headers, trust_env=False) as http:
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            for path in ("", "/", "/presence", "/presence?look=1", "/x/../"):
                answer = http.request(method, quick_served.url("desktop") + path)
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_of_one_episode_opens_no_other(served: Served, quick_served: Served) -> None:
    """Nor does a bridge's open another's."""
    with raw(served, "desktop", "modern", quick_served.session.token("desktop")) as client:
        assert client.begin().status_code == 401


def test_tokens_are_long_and_all_different(served: Served, quick_served: Served) -> None:
    """256 random bits each."""
    every: tuple[Bridge, ...] = ("desktop", "shell", "view")
    tokens = {s.session.token(bridge) for s in (served, quick_served) for bridge in every}
    assert len(tokens) == 6
    assert all(len(token) == 43 for token in tokens)


def test_a_revoked_token_opens_nothing(served: Served) -> None:
    """Not even for the client that was there."""
    with raw(served, "desktop", "modern") as client:
        assert client.begin().status_code == 200
        served.revoke()
        assert client.post(client.body("screenshot", {}), "screenshot").status_code == 401
    assert served.session.token("view")
    with pytest.raises(KeyError):
        served.session.token("desktop")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "file://"}, 403),
        ({"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/desktop/presence?look=1", "/view"])
def test_pages_of_others_reach_nothing(
    quick_served: Served, headers: dict[str, str], status: int, path: str
) -> None:
    """A name that was rebound to this machine and a foreign page are refused, token or not."""
    port = quick_served.origin.rpartition(":")[2]
    sent = {name: value.format(port=port) for name, value in headers.items()}
    sent["Authorization"] = f"Bearer {quick_served.session.token('desktop')}"
    answer = httpx2.get(quick_served.origin + path, headers=sent, trust_env=False)
    assert answer.status_code == status


@pytest.mark.parametrize(
    "path", ["/", "/nothing", "/shell/x", "/docs", "/mcp", "//desktop", "/DESKTOP", "/desktop%2f"]
)
def test_there_is_nothing_else(quick_served: Served, path: str) -> None:
    """No other path answers with anything."""
    answer = httpx2.get(quick_served.origin + path, trust_env=False)
    assert answer.status_code in (401, 404)


def test_nothing_listens_beyond_this_machine(quick_served: Served) -> None:
    """Every listening socket of this process is bound to the loopback address."""
    own = {
        str(descriptor.readlink())
        for descriptor in Path("/proc/self/fd").iterdir()
        if descriptor.is_socket()
    }
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                listening.append(fields[1])
    port = int(quick_served.origin.rpartition(":")[2])
    assert f"0100007F:{port:04X}" in listening
    assert all(re.match(r"0100007F:", address) for address in listening)


@pytest.fixture(scope="module")
def quick_served(tmp_path_factory: pytest.TempPathFactory) -> object:
    """An episode that no test of this module ends."""
    with ExitStack() as stack:
        yield stack.enter_context(toy_served(tmp_path_factory.mktemp("access")))


def test_the_server_gives_its_port_back(tmp_path: Path) -> None:
    """At once, with a client still connected, and an old-time one holding its stream open."""
    with ExitStack() as stack:
        with toy_served(tmp_path) as served:
            client = stack.enter_context(raw(served, "desktop", "legacy"))
            client.begin()
            stream = client.http.stream("GET", client.url, headers=client.headers)
            assert stack.enter_context(stream).status_code == 200
            began = time.monotonic()
        assert time.monotonic() - began < 30
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(served.origin, trust_env=False)
