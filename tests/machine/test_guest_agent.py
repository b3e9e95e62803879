"""The guest agent's protocol, with QEMU's own agent and with a scripted one."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cua_gym.errors import ActionError, MachineError, MachineLost, MachineTimeout
from cua_gym.machine.guest_agent import GuestAgent

QEMU_GA = shutil.which("qemu-ga") or "/usr/sbin/qemu-ga"
needs_agent = pytest.mark.skipif(not Path(QEMU_GA).exists(), reason="needs qemu-guest-agent")


@pytest.fixture
def agent(short_folder: Path) -> Iterator[GuestAgent]:
    """QEMU's agent on this host, listening on a socket of the test's own."""
    path = short_folder / "s"
    process = subprocess.Popen(
        [
            QEMU_GA,
            "-m",
            "unix-listen",
            "-p",
            str(path),
            "-t",
            str(short_folder),
            "-b",
            "guest-set-time",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    sock = socket.socket(socket.AF_UNIX)
    deadline = time.monotonic() + 30
    while sock.connect_ex(str(path)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)  # the agent tells nobody that it listens
    agent = GuestAgent(sock)
    yield agent
    agent.close()
    process.kill()
    process.wait()


def until(condition: Callable[[], bool]) -> None:
    """Wait for what follows a kill: it is told before it is done."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@needs_agent
class TestRealAgent:
    """Against QEMU's own agent."""

    def test_ping(self, agent: GuestAgent) -> None:
        """It answers, again and again."""
        for _ in range(20):
            agent.ping()

    def test_exec(self, agent: GuestAgent) -> None:
        """Words, input, outputs and status pass exactly."""
        data = bytes(range(256)) * 1000
        done = agent.exec(
            ["sh", "-c", 'cat; printf %s "$1" >&2; exit 3', "x", "a 'b\n"], stdin=data
        )
        assert (done.exit, done.stdout, done.stderr) == (3, data, b"a 'b\n")

    def test_empty_input_is_an_end(self, agent: GuestAgent) -> None:
        """Without input a program that reads finds the end."""
        assert agent.exec(["cat"], timeout_s=10).timed_out is False

    def test_signal(self, agent: GuestAgent) -> None:
        """Death by signal n is 128 + n."""
        assert agent.exec(["sh", "-c", "kill -TERM $$"]).exit == 143

    def test_timeout_kills_the_tree(self, agent: GuestAgent, tmp_path: Path) -> None:
        """What ran too long is dead, its children in sessions of their own too."""
        script = f"echo $$ >{tmp_path}/a; setsid sh -c 'echo $$ >{tmp_path}/b; sleep 61' & sleep 61"
        for timeout_s in (1, 5, 30):  # a busy host may not have begun both by then
            assert agent.exec(["sh", "-c", script], timeout_s=timeout_s).timed_out
            begun = [path.read_text().strip() for path in tmp_path.iterdir()]
            if len(begun) == 2 and all(begun):
                break
        assert len(begun) == 2
        for pid in begun:
            until(lambda: not Path("/proc", pid, "exe").exists())  # noqa: B023
        agent.ping()

    def test_missing_program(self, agent: GuestAgent) -> None:
        """A program that does not exist is a result, 127, as in a shell."""
        assert agent.exec(["/no/such/program"]).exit == 127
        with pytest.raises(ActionError):
            agent.exec(["a\0b"])

    def test_refusal(self, agent: GuestAgent) -> None:
        """What the agent refuses is a `MachineError` with its own words."""
        with pytest.raises(MachineError, match="guest-set-time"):
            agent.set_time(0)


@pytest.fixture
def scripted() -> Iterator[
    Callable[[Callable[[socket.socket, dict[str, object]], None]], GuestAgent]
]:
    """Makes an agent whose other end calls a function with each request."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def make(
        answer: Callable[[socket.socket, dict[str, object]], None], timeout_s: float = 30.0
    ) -> GuestAgent:
        ours, theirs = socket.socketpair()
        opened.extend((ours, theirs))

        def serve() -> None:
            # The agent's caller hangs up as soon as it has what it asked for.
            with contextlib.suppress(BrokenPipeError), theirs.makefile("rb") as lines:
                for line in lines:
                    answer(theirs, json.loads(line.lstrip(b"\xff")))

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return GuestAgent(ours, timeout_s=timeout_s)

    yield make
    for sock in opened[::2]:
        sock.close()
    for thread in threads:
        thread.join()
    for sock in opened:
        sock.close()


def _sync(sock: socket.socket, request: dict[str, object]) -> bool:
    if request["execute"] == "guest-sync-delimited":
        number = request["arguments"]["id"]  # type: ignore[index]
        sock.sendall(b"\xff" + json.dumps({"return": number}).encode() + b"\n")
        return True
    return False


def test_stale_answers_are_thrown_away(scripted) -> None:  # type: ignore[no-untyped-def]
    """Answers of older questions, whole or torn, before ours are not taken for ours."""

    def answer(sock: socket.socket, request: dict[str, object]) -> None:
        sock.sendall(b'{"return": {"pid": 7}}\n')
        if request["execute"] == "guest-sync-delimited":
            sock.sendall(b'\xff{"return": 12345}\n{"ret\xff torn\n')
        if not _sync(sock, request):
            sock.sendall(b'{"return": {}}\n')

    agent = scripted(answer)
    agent.ping()


def test_silence_is_a_timeout(scripted) -> None:  # type: ignore[no-untyped-def]
    """An agent that says nothing, or syncs and then says nothing, is a `MachineTimeout`."""
    with pytest.raises(MachineTimeout, match="guest-ping"):
        scripted(lambda sock, request: None, 0.5).ping()
    with pytest.raises(MachineTimeout, match="guest-ping"):
        scripted(_sync, 0.5).ping()


def test_late_answer_does_not_disturb_the_next(scripted) -> None:  # type: ignore[no-untyped-def]
    """After a timeout the late answer is skipped and the next call gets its own."""
    given_up = threading.Event()

    def answer(sock: socket.socket, request: dict[str, object]) -> None:
        if not given_up.is_set():
            given_up.wait(30)
            sock.sendall(b'{"return": {"pid": 7}}\n')
        if not _sync(sock, request):
            sock.sendall(b'{"error": {"desc": "its own"}}\n')

    agent = scripted(answer, 0.5)
    with pytest.raises(MachineTimeout):
        agent.ping()
    agent._timeout_s = 30.0
    given_up.set()
    with pytest.raises(MachineError, match="its own"):
        agent.ping()


def test_closed_channel_is_lost(scripted) -> None:  # type: ignore[no-untyped-def]
    """A channel that closes is `MachineLost`."""
    agent = scripted(lambda sock, request: sock.shutdown(socket.SHUT_RDWR))
    with pytest.raises(MachineLost):
        agent.ping()
    agent.close()
    agent.close()


def test_nonsense_is_a_typed_error(scripted) -> None:  # type: ignore[no-untyped-def]
    """What is not a JSON object is a `MachineError`."""

    def answer(sock: socket.socket, request: dict[str, object]) -> None:
        if not _sync(sock, request):
            sock.sendall(b"[1]\n")

    with pytest.raises(MachineError, match="no object"):
        scripted(answer).ping()
