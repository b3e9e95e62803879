"""The agents on models, with a script for a model, on a real machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.run.local import AgentChoice, Plan, run_local
from cua_gym.task import bundled_suite
from tests.agent.model_server import ModelServer, Reply
from tests.agent.wires import WIRES, Body, Wire

pytestmark = pytest.mark.vm

FIND = "awk '$4 == 200 {print $6 + 0, $5}' ~/server/access.log | sort -n | tail -n 1"
SAVED = "timeout 60 sh -c 'until grep -q {} ~/server/report.txt; do sleep 0.3; done'"


def script(wire: Wire, incident: int) -> Iterator[Reply]:
    """Asks the shell, then clicks into the report and types it anew, as its oracle does."""
    yield wire.does(("shell", {"command": FIND}))
    found: list[str] = []

    def edit(body: Body) -> Body:
        duration, request = wire.results(body)[-1][1].split()
        found.append(request)
        report = (
            f"Incident {incident}\nSlowest answered request: {request}\n"
            f"Duration: {duration} ms\nReported by: operations\n"
        )
        return wire.does(
            ("click", {"x": 600, "y": 400}),
            ("key", {"combo": "ctrl+a"}),
            ("type", {"text": report}),
            ("key", {"combo": "ctrl+s"}),
        )

    yield edit
    yield lambda _: wire.does(("shell", {"command": SAVED.format(found[0])}))
    yield wire.says("The report is complete.")


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
def test_it_does_a_bundled_task(
    wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shell, pointer and keyboard by each provider's calls: scored 1.0."""
    task = bundled_suite().task("slowest-request")
    replies: Any = script(wire, task.variation(11).params["incident"])
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ModelServer(replies) as server:
        for provider, path in (("ANTHROPIC", ""), ("OPENAI", "/v1")):
            monkeypatch.setenv(f"{provider}_API_KEY", "sk-of-nobody")
            monkeypatch.setenv(f"{provider}_BASE_URL", server.url + path)
        agent = AgentChoice("model", type(wire).make)
        (row,) = run_local(Plan([task], [agent], tmp_path, "run", [11]))
    assert row.outcome.score == 1.0, str(row.outcome)
    assert row.folder is not None
    done = [step.action["type"] for step in Replay(RunFolder(row.folder)).steps() if step.action]
    assert done == ["shell", "click", "key", "type", "key", "shell", "submit"]
    assert len(server.asked) == 4
