"""What is left of light desktops when they end, however they end: nothing."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cua_gym.cache import cache_root
from cua_gym.errors import MachineLost, StateMismatch
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.identity import start_time
from cua_gym.machine.x11.machine import X11Machine
from tests.machine.x11.conftest import start, until

pytestmark = [pytest.mark.x11, pytest.mark.slow]

OWNER = """
import sys, time
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import start_machine
print("starting", flush=True)
machine = start_machine(MachineSpec(backend="x11"))
print(machine.pid, flush=True)
time.sleep(600)
"""

FORKS = """
import os, sys
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import start_machine
machine = start_machine(MachineSpec(backend="x11"))
machine.shell.write("/home/user/kept", b"kept")
for end in (lambda: None, machine.close):
    child = os.fork()
    if not child:
        end()
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
    machine.check()
    serial = machine.screen.grab().serial
    machine.input.pointer(child % 100, 9)
    assert machine.screen.wait_change(serial, 20)
    assert machine.shell.read("/home/user/kept") == b"kept"
    assert machine.shell.run(["true"]).exit == 0
machine.close()
"""


def below(pid: int) -> dict[int, int | None]:
    """Processes that descend from one, each with its start time: together they are unique."""
    found = [pid]
    for one in found:
        for thread in Path(f"/proc/{one}/task").glob("*"):
            with contextlib.suppress(OSError):  # it has just ended
                found += [int(child) for child in (thread / "children").read_text().split()]
    return {one: start_time(one) for one in found[1:]}


def living(processes: dict[int, int | None]) -> set[int]:
    """Those that are still there."""
    return {pid for pid, started in processes.items() if started and start_time(pid) == started}


def kept() -> set[str]:
    """Files of saved light desktops in the cache."""
    return {str(path) for path in (cache_root() / "light").rglob("*") if path.is_file()}


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with the images of the real one, into which no other test saves desktops."""
    folder = tmp_path_factory.mktemp("cache")
    (folder / "cua-gym").mkdir()
    (folder / "cua-gym/images").symlink_to(cache_root() / "images")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("when", ["starting", "running"])
def test_a_killed_owner_leaves_nothing(when: str, tmp_path: Path) -> None:
    """No process, mount or file, whether it was killed while it started one or later."""
    mounts, left = Path("/proc/self/mounts").read_text(), kept()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == "starting\n"
        if when == "running":
            assert int(owner.stdout.readline())
        until(lambda: len(below(owner.pid)) > 1, "a sandbox", 60)
        processes = below(owner.pid)
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    until(lambda: not living(processes), "the sandbox gone")
    assert Path("/proc/self/mounts").read_text() == mounts
    assert kept() - left == set()
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_ends_nothing() -> None:
    """Its parent's desktop is looked at, clicked and asked as before."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def counted() -> tuple[int, int, int]:
    """Descriptors, threads and descendants of this process."""
    fds = len(list(Path("/proc/self/fd").iterdir()))
    return fds, threading.active_count(), len(below(os.getpid()))


@pytest.mark.usefixtures("own_cache")
def test_starts_and_ends_leak_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty of them leave no descriptor, thread, process or folder, and look all the same."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    start().close()
    gc.collect()
    before, left = counted(), kept()
    first = None
    for _ in range(20):
        with start() as machine:
            frame = machine.screen.grab().rgb
            processes = below(machine.pid)
        assert len(processes) > 5
        assert living(processes) == set()
        first = frame if first is None else first
        rows, columns = np.nonzero((first != frame).any(axis=2))
        assert not rows.size, (
            f"rows {rows.min()}-{rows.max()}, columns {columns.min()}-{columns.max()}"
        )
    gc.collect()
    assert counted() == before
    assert kept() == left
    assert list(tmp_path.iterdir()) == []


def test_several_threads_start_desktops_at_once() -> None:
    """Each gets its own."""
    with ThreadPoolExecutor(4) as pool:
        machines = list(pool.map(lambda _: start(), range(4)))
        try:
            for number, machine in enumerate(machines):
                machine.shell.write("/tmp/number", str(number).encode())
            assert [m.shell.read("/tmp/number") for m in machines] == [b"0", b"1", b"2", b"3"]
        finally:
            list(pool.map(lambda m: m.close(), machines))


@pytest.mark.parametrize("victim", ["python3", "Xvfb"])
def test_a_dead_part_is_named(victim: str) -> None:
    """When the sandbox or its X server has died, users hear of it, and closing is clean."""
    with start() as machine:
        names = {}
        for pid in below(machine.pid):
            with contextlib.suppress(OSError):  # it has just ended
                names[Path(f"/proc/{pid}/comm").read_text().strip()] = pid
        os.kill(names[victim], signal.SIGKILL)
        until(lambda: _lost(machine), "told that it is gone")


def test_a_state_is_its_files(shared: X11Machine) -> None:
    """A saved state is files; another machine begins a fresh session over them."""
    shared.shell.write("/home/user/Documents/kept.txt", b"kept")
    shared.shell.write("/etc/kept.conf", b"too", user="root")
    shared.shell.remove("/home/user/Music")
    program = shared.shell.start(["sleep", "7177"])
    state = shared.snapshot("files")
    assert program.exit is None
    program.close()
    with start(state=state) as other:
        assert other.shell.read("/home/user/Documents/kept.txt") == b"kept"
        assert other.shell.read("/etc/kept.conf") == b"too"
        with pytest.raises(FileNotFoundError):
            other.shell.stat("/home/user/Music")
        assert other.shell.run(["pgrep", "-f", "sleep 7177$"]).exit == 1
        assert other.shell.stat("/home/user/Documents/kept.txt").kind == "file"
        owner = other.shell.run(["stat", "-c", "%U", "/home/user/Documents/kept.txt"]).text
        assert owner == "user\n"
        shared.discard(state)
        assert other.shell.read("/etc/kept.conf") == b"too"
    with pytest.raises(StateMismatch, match="make it again"):
        shared.restore(state)


def test_a_state_of_another_size_is_refused(shared: X11Machine) -> None:
    """Found before anything is ended."""
    state = shared.snapshot("refused")
    other = type(state)(MachineSpec(backend="x11", screen=(800, 600)), state.key, state.folder)
    with pytest.raises(StateMismatch):
        shared.restore(other)
    assert shared.shell.run("echo on").text == "on\n"
    shared.discard(state)


def test_prepare_runs_for_each_desktop() -> None:
    """Nothing but doing it again brings back what it launched."""
    calls = []

    def prepare(machine: object) -> None:
        calls.append(machine)

    for _ in range(2):
        start(key="again", prepare=prepare).close()
    assert len(calls) == 2


def _lost(machine: X11Machine) -> bool:
    try:
        machine.check()
        machine.screen.grab()
    except MachineLost as error:
        return "gone" in str(error)
    return False
