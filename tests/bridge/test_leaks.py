"""A thousand calls cost what ten cost: nothing piles up."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path

import pytest

from cua_gym.bridge.jobs import KEPT
from tests.bridge.clients import HTTP, Caller, Way, connect, facts_of, refusal_of, toy_served
from tests.bridge.test_transports import until

ROUNDS = 60


def one_of_each(desktop: Caller, shell: Caller, number: int) -> int:
    """A round of calls of every sort; how many."""
    for tool in ("screenshot", "cursor_position", "status"):
        facts_of(desktop.call(tool))
    facts_of(desktop.call("move", x=number % 640, y=1))
    refusal_of(desktop.call("move", x=640, y=1))
    refusal_of(desktop.call("move", x="a"))
    refusal_of(desktop.call("nosuch"))
    facts_of(shell.call("run", command="echo on; echo error >&2"))
    facts_of(shell.call("write_file", path="a", content=str(number)))
    facts_of(shell.call("read_file", path="a"))
    facts_of(shell.call("list_dir"))
    facts_of(shell.call("upload", path="b", data_base64="QQ==", last=False))
    facts_of(shell.call("upload", path="b", data_base64="QQ==", offset=1))
    pty = facts_of(shell.call("pty_open", command="echo"))["pty"]
    facts_of(shell.call("pty_close", pty=pty))
    both = [shell.begin("status"), shell.begin("status")]
    for call in both:
        facts_of(call.result(60))
    cancelled = shell.begin("run", command="sleep 60")
    cancelled.cancel()
    return 18


def state() -> dict[str, int]:
    """What this process holds."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    tasks = [o for o in gc.get_objects() if isinstance(o, asyncio.Task) and not o.done()]
    return {
        "threads": threading.active_count(),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "tasks": len(tasks),
        "kilobytes": int(status["VmRSS"].split()[0]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("way", HTTP)
def test_a_thousand_calls_leave_nothing(tmp_path: Path, way: Way) -> None:
    """No thread, descriptor, task or table grows; memory stays within what a few frames take."""
    with (
        toy_served(tmp_path) as served,
        connect(served, "desktop", way) as desktop,
        connect(served, "shell", way) as shell,
    ):
        for number in range(15):
            one_of_each(desktop, shell, number)
        facts_of(shell.call("status"))
        before = state()
        calls = sum(one_of_each(desktop, shell, number) for number in range(ROUNDS))
        facts_of(shell.call("status"))
        assert calls > 1000
        until(lambda: state()["threads"] <= before["threads"] + 2)
        until(lambda: state()["descriptors"] <= before["descriptors"] + 4)
        until(lambda: state()["tasks"] <= before["tasks"] + 2)
        # A picture that stayed with each call would be 900 MB; heaps of other tests move some MB.
        assert state()["kilobytes"] < before["kilobytes"] + 60_000
        session = served.session
        until(lambda: not session._stops)
        assert len(session.jobs._table) <= KEPT + 1
        assert not session.uploads._files
        for lease in served._guard._leases.values():
            assert len(lease._peers | lease._refused) <= 5
