"""The bridges of a real machine, for clients that we did not write and programs of their own."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import av
import httpx2
import pytest

from cua_gym.agent.load import load_agent
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.run.local import AgentChoice, Plan, run_local
from cua_gym.run.row import Row
from cua_gym.task import bundled_suite
from tests.vm.bridge_desk import picture
from tests.vm.conftest import until
from tests.vm.mcp_harness import TRANSPORTS, Remote, Transport, serving
from tests.vm.test_kill import machines_of

pytestmark = pytest.mark.vm

TASK = "slowest-request"
HARNESS = Path(__file__).with_name("external_harness.py")
TEXT = 'Grüße an 你好, "Łódź" <a@b.org> 🙂\n'
CHUNK = 2_000_000


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_does_all_that_there_is(transport: Transport, tmp_path: Path) -> None:
    """Look, click, type, run, move files, submit: recorded in order with frames, and scored."""
    with serving(TASK, tmp_path) as server:
        with server.connected(transport) as remotes:
            made = _work(remotes, megabytes=20)
        outcome = server.outcome()
    assert (outcome["outcome"], outcome["score"]) == ("scored", 0.0), outcome
    replay = Replay(RunFolder(server.folder))
    assert (replay.result or {})["kind"] == "scored"
    steps = list(replay.steps())
    assert [step.index for step in steps] == list(range(len(steps)))
    assert [(s.call["bridge"], s.call["tool"]) for s in steps[1:] if s.call] == made
    assert all(step.frame.exists() for step in steps)
    assert replay.changed_frames() == []
    with av.open(str(replay.folder.video)) as video:
        assert sum(1 for _ in video.decode(video=0)) == len(steps)


def _work(remotes: Mapping[str, Remote], megabytes: int) -> list[tuple[str, str]]:
    """Some work by both bridges, and the calls it took."""
    desktop, shell = remotes["desktop"], remotes["shell"]
    assert {"screenshot", "click", "type", "submit"} <= set(desktop.tools())
    assert {"run", "upload", "download", "submit"} <= set(shell.tools())
    shot = picture(desktop.call("screenshot"))
    assert shot.shape == (800, 1280, 3)
    assert shot.std() > 5
    facts = desktop.facts("click", x=325, y=282)
    assert facts["cursor"] == [325, 282]
    desktop.facts("key", combo="ctrl+a")
    assert (picture(desktop.call("type", text=TEXT)) != shot).any()
    desktop.facts("key", combo="ctrl+s")
    calls = [("desktop", tool) for tool in desktop.calls]
    saved = "until grep -q Łódź server/report.txt; do sleep 0.2; done; cat server/report.txt"
    assert shell.facts("run", command=saved)["stdout"] == TEXT
    data = random.Random(0).randbytes(megabytes * 1_000_000)
    digest = hashlib.sha256(data).hexdigest()
    for start in range(0, len(data), CHUNK):
        chunk = base64.b64encode(data[start : start + CHUNK]).decode()
        last = start + CHUNK >= len(data)
        facts = shell.facts("upload", path="big", data_base64=chunk, offset=start, last=last)
    assert facts["sha256"] == digest
    assert shell.facts("run", command="sha256sum big")["stdout"].split()[0] == digest
    got = b""
    while len(got) < len(data):
        facts = shell.facts("download", path="big", offset=len(got))
        got += base64.b64decode(facts["data_base64"])
    assert hashlib.sha256(got).hexdigest() == digest
    calls += [("shell", tool) for tool in shell.calls]
    desktop.facts("submit")
    return [*calls, ("desktop", "submit")]


def test_marks_lead_to_what_they_name(tmp_path: Path) -> None:
    """A mark's middle can be clicked: the menu that it names opens."""
    with serving(TASK, tmp_path) as server, server.connected() as remotes:
        desktop = remotes["desktop"]
        listed = desktop.facts("marks")["marks"]
        (box,) = (m["box"] for m in listed if (m["role"], m["name"]) == ("menu", "File"))
        desktop.facts("click", x=box[0] + box[2] // 2, y=box[1] + box[3] // 2)
        shown = desktop.facts("accessibility_tree", app="mousepad", name="Save As")["nodes"]
        assert [node["role"] for node in shown] == ["menu item"]


def test_a_killed_server_leaves_no_machine(tmp_path: Path) -> None:
    """SIGKILL of `cua-gym serve` in the middle of a call: QEMU ends, the client is told."""
    with serving(TASK, tmp_path) as server, server.connected("stdio") as remotes:
        pid = server.process.pid
        assert len(machines_of(pid)) == 1
        call = remotes["shell"].begin("run", command="sleep 60")
        remotes["shell"].call("no_such_tool")  # answered by then, so the other is under way
        server.process.kill()
        assert call.result(30).is_error
        until(lambda: machines_of(pid) == [], "no machine of the killed server", 10)


def test_a_program_does_a_task(tmp_path: Path) -> None:
    """A client in forty lines solves a task by both bridges; then its tokens open nothing."""
    kept = tmp_path / "config.json"
    program = f"{sys.executable} {HARNESS} {{mcp_config}} {{instruction_file}}"
    row = _run(tmp_path, f"sh -c 'cp {{mcp_config}} {kept}; exec {program}'")
    assert row.outcome.score == 1.0, str(row.outcome)
    assert row.folder is not None
    assert "over" in RunFolder(row.folder).agent_log.read_text()
    _refused(kept)


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    """At the deadline it goes with all its children, also those that left its session."""
    kept, pids = tmp_path / "config.json", tmp_path / "pids"
    hang = f"setsid sleep 3000 & echo $! $$ >{pids}; exec sleep 3000"
    began = time.monotonic()
    row = _run(tmp_path, f"sh -c 'cp {{mcp_config}} {kept}; {hang}'", max_seconds=5)
    assert (row.outcome.kind, row.outcome.score) == ("scored", 0.0)
    assert time.monotonic() - began < 120
    assert row.folder is not None
    result = json.loads(RunFolder(row.folder).result.read_text())
    assert result["submission"] == {"kind": "limit", "answer": None, "reason": "seconds"}
    assert [p for p in pids.read_text().split() if Path("/proc", p).exists()] == []
    _refused(kept)


def _run(runs: Path, command: str, **options: object) -> Row:
    agent = AgentChoice("program", load_agent(f"command: {command}"))
    plan = Plan([bundled_suite().task(TASK)], [agent], runs / "runs", "run", options=options)
    (row,) = run_local(plan)
    return row


def _refused(config: Path) -> None:
    """Nobody serves any more what a client's configuration names."""
    servers = json.loads(config.read_text())["mcpServers"]
    assert len(servers) == 2
    for server in servers.values():
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(server["url"], headers=server["headers"], trust_env=False)
