"""The stdio end: protocol messages alone on standard output, and gone with either side."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cua_gym.bridge.serve import Served
from tests.bridge.clients import bridge_command, toy_served, with_token
from tests.bridge.test_transports import running, until
from tests.bridge.test_wire import DEEP, GARBAGE
from tests.cli.test_process import hear_ctrl_c

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

NOISY = """
import logging, os, sys
import cua_gym.bridge.stdio as stdio
from mcp.client import Client
logging.basicConfig(level=logging.DEBUG)
call = Client.call_tool
async def noisy(self, *words, **more):
    print("printed")
    sys.stdout.flush()
    os.write(1, b"\\xff\\xfe written\\n")
    os.system("echo a child says")
    logging.getLogger("x").warning("logged")
    return await call(self, *words, **more)
Client.call_tool = noisy
from cua_gym.cli import main
main(sys.argv[1:])
"""


class Line:
    """A client that speaks line by line to a stdio end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.said: list[bytes] = []
        self._number = 1000  # no number of what is garbage

    def send(self, line: bytes) -> None:
        """Send bytes as they are, and a line's end."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> int:
        """Send a question; its number."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.send(json.dumps(message).encode())
        return self._number

    def answer(self, number: int) -> dict[str, Any]:
        """The answer to a question; every line before it is a message too."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            self.said.append(line)
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == number:
                return message
        raise AssertionError("the stdio end has gone")

    def call(self, tool: str, arguments: Any = None) -> dict[str, Any]:
        """Call a tool: its answer's result or error."""
        number = self.ask("tools/call", {"name": tool, "arguments": arguments or {}})
        return self.answer(number)

    def works(self) -> None:
        """It still answers."""
        assert self.call("screen_size")["result"]["structuredContent"]["width"] == 640


@contextmanager
def line(
    served: Served, bridge: str = "desktop", command: list[str] | None = None
) -> Iterator[Line]:
    """A client that has begun."""
    token = served.session.token(bridge)  # type: ignore[arg-type]
    with subprocess.Popen(
        command or bridge_command(served.origin, bridge),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=with_token(token),
        cwd=ROOT,
        preexec_fn=hear_ctrl_c,
    ) as process:
        client = Line(process)
        try:
            begun = client.ask(
                "initialize",
                {"protocolVersion": "2025-11-25", "capabilities": {},
                 "clientInfo": {"name": "line", "version": "1"}},
            )  # fmt: skip
            assert "result" in client.answer(begun)
            client.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
            yield client
        finally:
            process.kill()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Line]]:
    """One for all tests that neither end it nor its server."""
    with toy_served(tmp_path_factory.mktemp("stdio")) as served, line(served) as client:
        yield served, client


@pytest.mark.parametrize(
    "words",
    [*[body for body in GARBAGE if b"\n" not in body], b"\xff\xfe log", b"x" * 3_000_000],
    ids=lambda words: repr(words[:60]),
)
def test_a_line_that_is_no_call(client: tuple[Served, Line], words: bytes) -> None:
    """It is answered with an error or passed over, and the next call works."""
    _, sender = client
    sender.send(words)
    sender.works()


@pytest.mark.parametrize(
    "arguments",
    [
        '{"x": NaN, "y": 1}',
        '{"x": -Infinity, "y": 1}',
        '{"x": 1e999, "y": 1}',
        '{"x": 1' + "0" * 400 + ', "y": 1}',
        '{"x": "\\ud800", "y": 1}',
        "[1]",
        "7",
        '{"x": ' + DEEP[:100].decode() + DEEP[-100:].decode() + "}",
    ],
    ids=lambda text: text[:40],
)
def test_arguments_that_are_none(client: tuple[Served, Line], arguments: str) -> None:
    """What JSON cannot carry does not end the connection to the server either."""
    served, sender = client
    body = '{"jsonrpc": "2.0", "id": 999, "method": "tools/call", "params": {"name": "click", '
    sender.send((body + f'"arguments": {arguments}}}}}').encode())
    sender.works()
    assert served.session.episode.outcome is None


def test_a_notice_about_an_unknown_call(client: tuple[Served, Line]) -> None:
    """A cancellation of what was never asked, or was answered, changes nothing."""
    _, sender = client
    for number in ("12345", '"x"', "1"):
        sender.send(
            b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": '
            + number.encode() + b"}}"
        )  # fmt: skip
    sender.works()


def test_what_is_printed_goes_elsewhere(served: Served) -> None:
    """Whatever a library prints, writes or logs: standard output carries messages alone."""
    words = [sys.executable, "-c", NOISY, "bridge", "desktop", "--episode", served.origin]
    with line(served, command=words) as client:
        client.works()
        client.works()
        assert all(json.loads(said) for said in client.said)
        client.process.kill()
        assert client.process.stderr is not None
        assert b"written" in client.process.stderr.read()


def test_it_ends_with_its_client(served: Served) -> None:
    """Its input's end is its end, with a call under way too: the program of that call is killed."""
    with line(served, "shell") as client:
        client.ask("tools/call", {"name": "run", "arguments": {"command": "sleep 68.25"}})
        until(lambda: running("68.25"))
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(20) == 0
        assert client.process.stderr is not None
        assert b"Traceback" not in client.process.stderr.read()
        until(lambda: not running("68.25"))


def test_a_killed_one_leaves_nothing(served: Served) -> None:
    """Its call is stopped, and another may come."""
    with line(served, "shell") as client:
        client.ask("tools/call", {"name": "run", "arguments": {"command": "sleep 68.5"}})
        until(lambda: running("68.5"))
        client.process.kill()
        until(lambda: not running("68.5"))
    with line(served, "shell") as client:
        assert "result" in client.call("status")


def test_a_server_that_has_gone(tmp_path: Path) -> None:
    """Calls are answered with an error that says so; the stdio end lives until its client goes."""
    with toy_served(tmp_path) as served:
        lines = line(served)
        client = lines.__enter__()
    try:
        for _ in range(2):
            result = client.call("screenshot")["result"]
            assert result["isError"] is True
            assert "ended" in result["content"][0]["text"]
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(20) == 0
    finally:
        lines.__exit__(None, None, None)


def test_ctrl_c_ends_it(served: Served) -> None:
    """With no word on standard output."""
    with line(served) as client:
        client.process.send_signal(signal.SIGINT)
        assert client.process.wait(20) != 0
        assert client.process.stdout is not None
        assert client.process.stdout.read() == b""


class _Liar(BaseHTTPRequestHandler):
    """Says that it is there, and answers every question with nonsense."""

    def do_GET(self) -> None:
        self._answer(b"here\n")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"\xff\xfe log\n")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Quietly."""


def test_a_server_that_speaks_nonsense() -> None:
    """It ends with code 3 and a sentence, and nothing on standard output."""
    with HTTPServer(("127.0.0.1", 0), _Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = subprocess.run(
            bridge_command(f"http://127.0.0.1:{server.server_address[1]}", "desktop"),
            env=with_token("x"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        server.shutdown()
    assert done.returncode == 3, done.stderr
    assert done.stdout == b""
    assert b"no bridge" in done.stderr
