"""A harness that is a program of its own: started, heard, bounded, and gone with all it started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cua_gym.agent import command, supervise
from cua_gym.agent.command import CommandAgent
from cua_gym.agent.human import HumanAgent
from cua_gym.agent.load import load_agent
from cua_gym.bridge import serve
from cua_gym.bridge.serve import Served
from cua_gym.episode import Episode
from cua_gym.errors import MachineLost
from cua_gym.grading.outcome import Outcome
from cua_gym.run.local import AgentChoice, Plan, run_local
from cua_gym.run.row import Row
from cua_gym.task import Task
from tests.bridge.clients import toy_episode
from tests.bridge.test_transports import running, until
from tests.run.conftest import suite, toy_task  # noqa: F401 - fixtures

HARNESS = '''
"""Reads its configuration, does what the instruction says, submits."""
import json, os, sys
import anyio, httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

server = json.load(open(sys.argv[1]))["mcpServers"]["cua-gym-desktop"]
word = open(sys.argv[2]).read().split()[1]

async def main():
    assert os.environ["CUA_GYM_DESKTOP_URL"] == server["url"]
    assert server["headers"]["Authorization"] == "Bearer " + os.environ["CUA_GYM_DESKTOP_TOKEN"]
    assert "CUA_GYM_SHELL_URL" not in os.environ
    print(json.dumps(server), flush=True)
    async with httpx2.AsyncClient(headers=server["headers"]) as http:
        async with Client(streamable_http_client(server["url"], http_client=http)) as client:
            await client.call_tool("type", {"text": word})
            await client.call_tool("key", {"combo": "ctrl+s"})
            answer = await client.call_tool("submit", {})
            print(answer.content[0].text)

anyio.run(main)
'''

Run = Callable[..., Row]


@pytest.fixture
def attempt(tmp_path: Path, toy_task: Task) -> Run:  # noqa: F811
    """One attempt at the toy task by a command."""

    def run(line: str, **options: Any) -> Row:
        name = f"command: {line}"
        choice = AgentChoice(name, load_agent(name))
        [row] = run_local(Plan([toy_task], [choice], tmp_path / "runs", "run", options=options))
        return row

    return run


def log_of(row: Row) -> str:
    """What the program printed."""
    assert row.folder is not None
    return (row.folder / "agent.log").read_text()


def result_of(row: Row) -> dict[str, Any]:
    """What was written down."""
    assert row.folder is not None
    result: dict[str, Any] = json.loads((row.folder / "result.json").read_text())
    return result


def test_a_harness_does_a_task(attempt: Run, tmp_path: Path) -> None:
    """End to end; what it printed is kept, and afterwards its token opens nothing."""
    script = tmp_path / "harness.py"
    script.write_text(HARNESS)
    row = attempt(f"{sys.executable} {script} {{mcp_config}} {{instruction_file}}")
    assert row.outcome.score == 1.0, log_of(row)
    assert result_of(row)["submission"]["kind"] == "submit"
    said = log_of(row).splitlines()
    assert "the attempt is over" in said[-1]
    server = json.loads(said[0])
    with pytest.raises(httpx2.ConnectError):
        httpx2.post(server["url"], headers=server["headers"], trust_env=False)


def test_the_files_it_gets_are_gone_and_were_private(attempt: Run) -> None:
    """Only our account can read the tokens."""
    row = attempt("stat -c '%a %n' {mcp_config} {mcp_config_stdio} {instruction_file} .")
    *files, folder = log_of(row).splitlines()
    assert folder == "700 ."
    assert len(files) == 3
    assert not [line for line in files if Path(line.split(" ", 1)[1]).exists()]


def test_one_that_ends_without_a_word_is_judged(attempt: Run) -> None:
    """By what it left, and the record says how it ended."""
    row = attempt("sh -c 'cat; echo done'")  # its standard input is at its end
    assert row.outcome.score == 0.0
    assert result_of(row)["submission"]["kind"] == "left"
    assert log_of(row) == "done\n"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("sh -c 'echo its last words; exit 7'", "status 7; it said last: its last words"),
        ("no-such-program-anywhere", "cannot be started: No such file"),
        ("sh -c 'kill -9 $$'", "status 137"),
        (r"sh -c 'printf \\377; exit 1'", "status 1"),
    ],
)
def test_one_that_fails_is_unscored(attempt: Run, line: str, why: str) -> None:
    """The agent's fault, with its last words."""
    row = attempt(line)
    assert (row.outcome.kind, row.outcome.reason) == ("unscored", "agent")
    assert why in (row.outcome.cause or "")


def test_one_that_does_not_end_is_killed_when_its_time_is_over(
    attempt: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything that it started, wherever that went; the attempt is judged."""
    monkeypatch.setattr(command, "GRACE_S", 0.1)
    script = "(setsid sleep 71.25 &) ; sleep 71.5 & setsid -f sleep 71.75; sleep 72.25"
    row = attempt(f"sh -c '{script}'", max_seconds=1.5)
    assert row.outcome.score == 0.0
    assert result_of(row)["submission"] == {"kind": "limit", "answer": None, "reason": "seconds"}
    until(lambda: not any(map(running, ("71.25", "71.5", "71.75", "72.25"))))


def test_what_it_left_running_is_killed(attempt: Run) -> None:
    """When it ends by itself too."""
    attempt("sh -c 'setsid -f sleep 72.5; true'")
    until(lambda: not running("72.5"))


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("", "needs a command"),
        ("   ", "needs a command"),
        ("x {config}", "not {config}"),
        ("x 'unfinished", "quotation"),
    ],
)
def test_a_command_line_that_is_wrong(template: str, why: str) -> None:
    """It is told before anything is started."""
    with pytest.raises(ValueError, match=r".") as caught:
        CommandAgent(template)
    assert why in str(caught.value)
    with pytest.raises(ValueError, match=r"."):
        load_agent(f"command: {template}")()


def test_braces_and_quotes(attempt: Run) -> None:
    """The command is split as a shell would, and run by none; other braces stay what they are."""
    odd = '{} {0} {{}} {instruction.x} {instruction!r} {instruction:>9} {"a": 1} $HOME; `id`'
    row = attempt(f"printf '%s\\n' '{odd}' {{instruction}}")
    first, second = log_of(row).splitlines()
    assert first == odd
    assert second.startswith("Type toy")


def test_it_drives_and_is_never_asked() -> None:
    """Neither a command nor a person is asked for single actions."""
    for agent in (CommandAgent("true"), HumanAgent()):
        with pytest.raises(NotImplementedError):
            agent.act({}, {})


def test_nothing_that_it_started_hides(attempt: Run) -> None:
    """Forked twice, in a session of its own, without parents or environment: it is found."""
    hidden = "setsid env -i sh -c 'sleep 73.25 & exec sleep 73.5' & sleep 0.3; exit 3"
    row = attempt(f'sh -c "{hidden}"')
    assert "status 3" in (row.outcome.cause or "")
    until(lambda: not running("73.25"))
    until(lambda: not running("73.5"))


def test_a_flood_of_words_is_bounded(attempt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept has a limit, the program is not held up by it, its last words are known."""
    monkeypatch.setattr(command, "LOG_BYTES", 100_000)
    row = attempt("sh -c 'head -c 3000000 /dev/zero | tr \\\\0 x; echo; echo the end; exit 2'")
    assert "the end" in (row.outcome.cause or "")
    log = log_of(row)
    assert len(log) < 101_000
    assert log.endswith("more bytes were not kept]\n")


def test_all_ends_when_the_run_is_killed(tmp_path: Path) -> None:
    """The supervisor hears of it, as nobody else would."""
    folder = tmp_path / "given"
    folder.mkdir()
    script = "setsid sleep 74.25 & sleep 74.5"
    words = [sys.executable, "-I", supervise.__file__, str(folder), "sh", "-c", script]
    code = f"import subprocess, time; subprocess.Popen({words!r}); time.sleep(60)"
    run = subprocess.Popen([sys.executable, "-c", code])
    until(lambda: running("74.25") and running("74.5"))
    run.kill()
    run.wait()
    until(lambda: not running("74.25") and not running("74.5") and not folder.exists())


def test_a_person_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the time is over, with a link told; there are no bridges for anybody else."""
    told: list[str] = []
    seen: list[tuple[str, ...]] = []
    enter = Served.__enter__

    def entered(served: Served) -> Served:
        seen.append(served.bridges)
        return enter(served)

    monkeypatch.setattr(Served, "__enter__", entered)
    with toy_episode(tmp_path, seconds=0.5) as episode:
        HumanAgent().drive(episode, told.append)
        assert episode.done
        assert episode.evaluate().kind == "scored"
    assert seen == [()]
    assert "/view#" in told[0]


def test_the_machine_may_be_lost_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is ended, and the machine is named."""
    monkeypatch.setattr(serve, "_HEALTH_S", 0.0)
    monkeypatch.setattr(command, "GRACE_S", 0.1)
    with toy_episode(tmp_path) as episode:
        lose_when_running(episode, MachineLost("it went away"))
        CommandAgent("sleep 72.75").drive(episode, lambda text: None)
        outcome: Outcome = episode.evaluate()
    assert (outcome.kind, outcome.reason) == ("unscored", "machine")
    until(lambda: not running("72.75"))


def lose_when_running(episode: Episode, error: Exception) -> None:
    """Let the machine go once the program runs."""

    def lose() -> None:
        until(lambda: running("72.75"))
        episode.machine.fault = error  # type: ignore[attr-defined]

    threading.Thread(target=lose, daemon=True).start()


def test_it_is_known_by_its_own_mark(attempt: Run) -> None:
    """Other programs of this account, started before or meanwhile, are left alone."""
    pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "73.25")
    try:
        attempt("true")
        assert running("73.25")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
