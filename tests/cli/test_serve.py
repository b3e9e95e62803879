"""`cua-gym serve` and `cua-gym bridge`, as real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cua_gym.bridge.stdio import TOKEN_VARIABLE
from cua_gym.cli import main
from cua_gym.task import Suite
from tests.bridge.test_stdio import Line
from tests.bridge.test_transports import running, until
from tests.cli.test_process import ROOT, hear_ctrl_c

pytestmark = pytest.mark.slow

CLIENT = """
import json, sys
import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

async def work():
    server = json.loads(sys.argv[1])
    async with Client(StdioServerParameters(**server)) as client:
        await client.call_tool("run", {"command": sys.argv[2]})

anyio.run(work)
"""


@contextmanager
def serving(tmp_path: Path, *words: str, tools: str = "both") -> Iterator[subprocess.Popen[str]]:
    """`cua-gym serve` of the toy task."""
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "tests.cli.toy_program", str(tmp_path / "suite"), "serve"]
    with subprocess.Popen(
        [*command, "type-word", "--runs", str(tmp_path / "runs"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=hear_ctrl_c,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp"), "TOY_TOOLS": tools},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The first line, when it has come."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Code, the rest of standard output, standard error."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def server(told: dict[str, Any], bridge: str) -> dict[str, Any]:
    """How a client that starts programs reaches a bridge."""
    url, token = told[bridge]["url"], told[bridge]["token"]
    words = ["-m", "cua_gym.cli", "bridge", bridge, "--episode", url.rpartition("/")[0]]
    return {"command": sys.executable, "args": words, "env": {TOKEN_VARIABLE: token}}


@contextmanager
def client(config: dict[str, Any]) -> Iterator[Line]:
    """A client that starts the program that it was told to start."""
    with subprocess.Popen(
        [config["command"], *config["args"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **config["env"]},
        cwd=ROOT,
    ) as process:
        line = Line(process)
        parameters = {"protocolVersion": "2025-11-25", "capabilities": {},
                      "clientInfo": {"name": "line", "version": "1"}}  # fmt: skip
        assert "result" in line.answer(line.ask("initialize", parameters))
        line.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        try:
            yield line
        finally:
            process.kill()


def test_an_attempt_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    """Two lines of JSON: where to go, and what became of it; the code says it too."""
    with serving(tmp_path, "--json", "--seed", "3", "--agent", "mine") as process:
        told = ready(process)
        assert told.keys() == {"desktop", "shell", "view", "folder"}
        assert told["view"].startswith(told["desktop"]["url"].replace("/desktop", "/view#"))
        with client(server(told, "desktop")) as desktop, client(server(told, "shell")) as shell:
            status = desktop.call("status")["result"]["structuredContent"]
            word = status["instruction"].split()[1]
            desktop.call("type", {"text": word})
            desktop.call("key", {"combo": "ctrl+s"})
            shell.call("run", {"command": "cat note.txt"})
            assert desktop.call("submit")["result"]["structuredContent"] == {"over": True}
            code, out, err = ended(process)
    assert code == 0, err
    row = json.loads(out)
    assert (row["task"], row["agent"], row["seed"], row["score"]) == ("type-word", "mine", 3, 1.0)
    assert Path(row["folder"]).resolve() == Path(told["folder"])
    assert "Traceback" not in err
    assert not list((tmp_path / "tmp").iterdir())


def test_what_it_prints_can_be_pasted(tmp_path: Path) -> None:
    """Both configurations are JSON as clients take it, and the stdio one works as it stands."""
    with serving(tmp_path, tools="gui") as process:
        assert process.stdout is not None
        text = ""
        while "waiting for" not in text:
            text += process.stdout.readline()
        http, stdio = (json.loads(found) for found in re.findall(r"^\{.*?^\}", text, re.M | re.S))
        assert set(http["mcpServers"]) == set(stdio["mcpServers"]) == {"cua-gym-desktop"}
        over_http = http["mcpServers"]["cua-gym-desktop"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/desktop", over_http["url"])
        assert over_http["headers"]["Authorization"].startswith("Bearer ")
        assert "Type toy" in text
        assert re.search(r"http://127\.0\.0\.1:\d+/view#\S{43}\n", text)
        with client(stdio["mcpServers"]["cua-gym-desktop"]) as desktop:
            desktop.call("give_up", {"reason": "enough"})
            code, out, _ = ended(process)
    assert code == 1
    assert "scored 0.0" in out
    assert re.search(r"^run: /.*/001$", out, re.M)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    """Code 130, the outcome says so in answer and record, and nothing is left."""
    with serving(tmp_path, "--json") as process:
        told = ready(process)
        with client(server(told, "shell")) as shell:
            shell.ask("tools/call", {"name": "run", "arguments": {"command": "sleep 69.25"}})
            until(lambda: running("69.25"))
            process.send_signal(number)
            code, out, err = ended(process)
    assert code == 130, err
    assert json.loads(out)["reason"] == "stopped"
    assert json.loads(Path(told["folder"], "result.json").read_text())["reason"] == "stopped"
    assert "Traceback" not in err
    until(lambda: not running("69.25"))
    assert not list((tmp_path / "tmp").iterdir())


def test_a_client_that_is_killed(tmp_path: Path) -> None:
    """The stdio end goes with it, and then the server, which judges nobody; nothing is left."""
    with serving(tmp_path, "--json") as process:
        told = ready(process)
        origin = told["shell"]["url"].rpartition("/")[0]
        words = [json.dumps(server(told, "shell")), "sleep 69.5"]
        with subprocess.Popen([sys.executable, "-c", CLIENT, *words], cwd=ROOT) as killed:
            until(lambda: running("69.5"))
            killed.kill()
        code, out, err = ended(process)
    assert code == 3, err
    row = json.loads(out)
    assert (row["score"], row["reason"]) == (None, "agent")
    assert "went away" in row["cause"]
    until(lambda: not running("69.5"))
    look = ["pgrep", "-f", f"episode {origin}"]
    until(lambda: subprocess.run(look, check=False).returncode == 1)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_server_that_is_killed(tmp_path: Path) -> None:
    """Its client's calls are answered with an error, the one under way too."""
    with serving(tmp_path, "--json") as process:
        told = ready(process)
        with client(server(told, "shell")) as shell:
            number = shell.ask(
                "tools/call", {"name": "run", "arguments": {"command": "sleep 2; echo"}}
            )
            process.kill()
            process.communicate(timeout=60)
            for answer in (shell.answer(number), shell.call("status")):
                assert answer["result"]["isError"] is True
            assert shell.process.stdin is not None
            shell.process.stdin.close()
            assert shell.process.wait(20) == 0


# in this process, for what ends before anything is served


def call(*words: str) -> Result:
    """What a command led to."""
    return CliRunner().invoke(main, list(words), prog_name="cua-gym")


def test_an_unknown_task(suite: Suite) -> None:
    """Code 2, and nothing was served."""
    result = call("serve", "no-such-task")
    assert result.exit_code == 2
    assert not result.stdout


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("0.0.0.0:8000", "only this machine"),
        ("example.org:80", "only this machine"),
        ("[::]:80", "only this machine"),
        (":80", "only this machine"),
        ("127.0.0.1:http", "no address"),
        ("127.0.0.1", "no address"),
        ("127.0.0.1:65536", "no port 65536"),
        ("127.0.0.1:-1", "no address"),
    ],
)
def test_addresses_that_are_refused(suite: Suite, address: str, why: str) -> None:
    """Code 2 and a sentence; nothing is recorded."""
    result = call("serve", "type-word", "--http", address)
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())
    assert not Path("runs").exists()


def test_a_port_that_is_taken(suite: Suite) -> None:
    """Code 2, before a machine is started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = call("serve", "type-word", "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == 2
    assert "in use" in result.stderr
    assert not list(Path("runs").rglob("episode.json"))


@pytest.mark.parametrize("command", ["serve", "bridge"])
def test_help_has_examples(command: str) -> None:
    """That can be pasted."""
    result = call(command, "--help")
    assert result.exit_code == 0
    assert f"cua-gym {command} " in result.stdout.partition("Examples:")[2]
