"""What an agent or a fault does to a real machine while bridges are used: told, and judged."""

from __future__ import annotations

import base64
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cua_gym.bridge.serve import Served
from cua_gym.episode import Episode
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.base import Machine
from cua_gym.record.layout import RunFolder
from cua_gym.task import bundled_suite
from tests.vm.conftest import until
from tests.vm.mcp_harness import End, Remote, Transport, connected

pytestmark = pytest.mark.vm

TASK = "slowest-request"
BOUND_S = 90.0
"""Longest that a call may take whose machine or guest does not answer."""


class Attempt:
    """An episode in this process, with a client at each bridge."""

    def __init__(self, served: Served, stack: ExitStack, transport: Transport) -> None:
        self.served = served
        ends = {b: End(served.url(b), served.session.token(b)) for b in served.bridges}
        self.desktop, self.shell = (
            stack.enter_context(connected(ends[b], transport)) for b in ("desktop", "shell")
        )

    @property
    def machine(self) -> Machine:
        """What no agent sees."""
        return self.served.session.episode.machine

    def root(self, command: str) -> str:
        """What a command says that root runs."""
        return self.machine.shell.run(command, user="root").text.strip()

    def running(self, pattern: str) -> bool:
        """Whether a process with such a command line runs in the guest."""
        return self.root(f"pgrep -f -c '{pattern}' || true") != "0"

    def submitted(self) -> Outcome:
        """The outcome after the agent's submission; nobody else ended it."""
        self.shell.facts("submit")
        return self.served.judged()


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    """An attempt under way, over HTTP."""
    variation = bundled_suite().task(TASK).variation(0)
    episode = Episode(variation, RunFolder.create(tmp_path, "run", TASK, "outside"))
    try:
        episode.prepare()
        with Served(episode) as served, ExitStack() as stack:
            yield Attempt(served, stack, "http")
            episode.close()  # first: what its programs hold is not taken back one by one
    finally:
        episode.close()


def told(remote: Remote, tool: str, **arguments: object) -> str:
    """What is answered within the bound, whether it could be done or not."""
    began = time.monotonic()
    result = remote.call(tool, **arguments)
    assert time.monotonic() - began < BOUND_S
    text = str(result.content[-1])
    assert "fault of ours" not in text
    return text


def test_the_shell_has_the_rights_of_its_account(attempt: Attempt) -> None:
    """No tool of it reads or writes what the desktop's account may not; sudo fails at once."""
    shell = attempt.shell
    assert shell.facts("run", command="id -un")["stdout"] == "user\n"
    assert shell.facts("run", command="cat /etc/shadow")["exit"] != 0
    shell.facts("run", command="ln -s /etc/shadow link; ln -s /root folder")
    for tool in ("read_file", "download"):
        for path in ("/etc/shadow", "link", "/root/.bashrc", "folder/.bashrc"):
            assert "ermission" in shell.refused(tool, path=path)
    assert "ermission" in shell.refused("list_dir", path="folder")
    assert "ermission" in shell.refused("write_file", path="/etc/planted", content="x")
    data = base64.b64encode(b"x").decode()
    assert "ermission" in shell.refused("upload", path="/root/planted", data_base64=data)
    assert "ermission" in shell.refused("edit_file", path="/etc/hostname", old="c", new="k")
    began = time.monotonic()
    asked = shell.facts("run", command="sudo id", timeout_s=60)
    assert (asked["exit"] != 0, asked["timed_out"]) == (True, False)
    assert time.monotonic() - began < 30
    shell.facts("write_file", path="new/written", content="x")
    shell.facts("upload", path="new/uploaded", data_base64=data)
    shell.facts("run", command="touch new/touched")
    owners = attempt.root("stat -c '%U %G' /home/user/new /home/user/new/*")
    assert set(owners.splitlines()) == {"user user"}


def test_a_killed_file_server_is_the_agents_doing(attempt: Attempt) -> None:
    """However often it is killed: answered, files work again, and the attempt is scored."""
    shell = attempt.shell
    assert shell.facts("read_file", path="server/report.txt")["size"] > 0
    kill = "while :; do pkill -9 -f sftp-server; sleep 0.1; done"
    job = shell.facts("start", command=kill)["job"]
    for _ in range(3):
        told(shell, "read_file", path="server/report.txt")
        told(shell, "upload", path="big", data_base64=base64.b64encode(bytes(500_000)).decode())
    shell.facts("kill", job=job)
    told(shell, "read_file", path="server/report.txt")  # the last that was hit, perhaps
    assert shell.facts("read_file", path="server/report.txt")["size"] > 0
    assert attempt.submitted().kind == "scored"


def test_a_full_disk_is_the_agents_doing(attempt: Attempt) -> None:
    """A file that does not fit is refused with the reason, and the attempt is scored."""
    shell = attempt.shell
    fill = "fallocate -l $(($(df --output=avail -B1 ~ | tail -1) - 100000)) full; df ~"
    assert shell.facts("run", command=fill)["exit"] == 0
    data = base64.b64encode(bytes(1_000_000)).decode()
    for tool, arguments in (
        ("upload", {"data_base64": data}),
        ("write_file", {"content": data}),
    ):
        shell.refused(tool, path="big", **arguments)
    assert "big" not in shell.facts("run", command="ls")["stdout"]
    assert shell.facts("read_file", path="server/report.txt")["size"] > 0
    assert attempt.submitted().kind == "scored"


def test_a_fork_bomb_is_the_agents_doing(attempt: Attempt) -> None:
    """With its account at the limit of processes each tool answers, and the attempt is scored."""
    shell, desktop = attempt.shell, attempt.desktop
    bomb = "bomb() { bomb | bomb & }; bomb; sleep 60"
    assert shell.facts("run", command=bomb, timeout_s=5)["timed_out"]
    shell.facts("start", command=bomb)
    told(shell, "run", command="id", timeout_s=5)
    told(shell, "read_file", path="server/report.txt")
    told(shell, "pty_open")
    told(desktop, "screenshot")
    told(desktop, "clipboard_get")
    assert attempt.submitted().kind == "scored"


def test_no_more_jobs_than_there_is_room_for(attempt: Attempt) -> None:
    """One too many is refused by name; files and the end go on beside them."""
    shell = attempt.shell
    jobs = [shell.facts("start", command="sleep 3000")["job"] for _ in range(16)]
    assert "16 jobs" in shell.refused("run", command="true")
    assert "16 jobs" in shell.refused("pty_open")
    assert shell.facts("read_file", path="server/report.txt")["size"] > 0
    shell.facts("kill", job=jobs[0])
    assert shell.facts("run", command="echo there")["stdout"] == "there\n"
    assert attempt.submitted().kind == "scored"


def test_more_output_than_anybody_reads(attempt: Attempt) -> None:
    """Both streams at once: no deadlock, a beginning, the sizes, and the rest by poll."""
    one = "yes 0123456 | head -c 16000000"
    facts = attempt.shell.facts("run", command=f"{one} & {one} >&2; wait", timeout_s=300)
    assert (facts["exit"], facts["timed_out"]) == (0, False)
    for name in ("stdout", "stderr"):
        assert facts[f"{name}_size"] == 16_000_000
        assert facts[f"{name}_next"] == len(facts[name]) == 30_000
    end = attempt.shell.facts("poll", job=facts["job"], stdout_from=15_999_000)
    assert (end["stdout_size"], end["stdout"][-9:]) == (16_000_000, "\n0123456\n")


def test_a_timeout_ends_the_whole_tree(attempt: Attempt) -> None:
    """Also what left the session; what was printed until then is told."""
    tree = "echo before; sleep 3001 & setsid sleep 3002 & (sleep 3003; true)"
    facts = attempt.shell.facts("run", command=tree, timeout_s=2)
    assert (facts["timed_out"], facts["stdout"]) == (True, "before\n")
    assert not attempt.running("[s]leep 300")


def test_a_cancelled_call_leaves_nothing_running(attempt: Attempt) -> None:
    """The client gives a call up: its tree in the guest ends, and the next call is served."""
    call = attempt.shell.begin("run", command="setsid sleep 3004 & sleep 3004")
    until(lambda: attempt.running("[s]leep 3004"), "the command")
    call.cancel()
    until(lambda: not attempt.running("[s]leep 3004"), "its end", 20)
    assert attempt.shell.facts("run", command="echo there")["stdout"] == "there\n"


def test_the_end_stops_what_runs(attempt: Attempt) -> None:
    """A job that goes on writing stands still before the evidence is taken."""
    shell = attempt.shell
    shell.facts("start", command="while :; do date +%N >>ticks; sleep 0.05; done")
    until(lambda: attempt.root("wc -l </home/user/ticks || true") > "2", "some ticks")
    assert attempt.submitted().kind == "scored"
    seen = attempt.root("wc -c </home/user/ticks")
    time.sleep(1)
    assert attempt.root("wc -c </home/user/ticks") == seen


def test_a_stopped_x_server(attempt: Attempt) -> None:
    """What needs the desktop says in time that it is silent; the shell goes on; it is scored."""
    shell, desktop = attempt.shell, attempt.desktop
    assert shell.facts("run", command="pkill -STOP -x Xorg")["exit"] == 0
    assert desktop.facts("screenshot")["frame"]
    assert "gave no answer" in desktop.refused("clipboard_get")
    assert "keymap" in desktop.refused("type", text="abc")
    assert shell.facts("run", command="echo there")["stdout"] == "there\n"
    assert attempt.submitted().kind == "scored"


@pytest.mark.parametrize(
    ("bridge", "tool", "arguments"),
    [("desktop", "wait", {"seconds": 60}), ("shell", "run", {"command": "sleep 60"})],
)
def test_a_machine_lost_in_a_call(
    attempt: Attempt, bridge: str, tool: str, arguments: dict[str, object]
) -> None:
    """SIGKILL of QEMU: the call answers soon, what follows is refused, unscored for the machine."""
    remote = getattr(attempt, bridge)
    call = remote.begin(tool, **arguments)
    remote.call("no_such_tool")  # answered by then, so the other is under way
    os.kill(attempt.machine.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    result = call.result(30)
    assert result.is_error
    assert "over" in remote.refused(tool, **arguments)
    assert attempt.served.wait(5)
    outcome = attempt.served.judged()
    assert (outcome.kind, outcome.reason) == ("unscored", "machine")
