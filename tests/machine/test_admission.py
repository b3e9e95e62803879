"""Promises of admission: what does not fit is refused with numbers, across processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cua_gym.errors import MachineError, OutOfMemory
from cua_gym.machine import admission
from cua_gym.machine.admission import VARIABLE, available_mb, need_room, room_for, take_room
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import machine_mb, start_machine

ROOT = Path(__file__).parents[2]
FAKE = MachineSpec(backend="fake", screen=(64, 48))


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, in which all machines may take 40 MB; the folder of the notes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "40")
    return tmp_path / "cua-gym/run/rooms"


def test_a_machine_that_does_not_fit_is_refused_before_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The numbers and the way out are said; once another one is closed, it fits."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = start_machine(FAKE), start_machine(FAKE)
    folders = sorted(tmp_path.iterdir())
    with pytest.raises(
        OutOfMemory,
        match=f"takes 16 MB; 8 MB are free.*{VARIABLE} allows 40 MB.*run: 2, with 32 MB",
    ):
        start_machine(FAKE)
    assert sorted(tmp_path.iterdir()) == folders
    first.close()
    first.close()
    start_machine(FAKE).close()
    second.close()
    assert room_for(machine_mb(FAKE)) == 2


def test_every_kind_says_what_one_costs():
    """A virtual machine costs more the larger it is, and less than all its memory."""
    small, large = (machine_mb(MachineSpec(memory_mb=mb)) for mb in (2048, 4096))
    assert 660 < small < 2048
    assert small < large < 4096


def test_what_several_machines_map_counts_once():
    """The memory of a state is one file, however many machines stand on it."""
    rooms = [take_room(4, shared="state", shared_mb=20) for _ in range(3)]
    assert room_for(1) == 40 - 3 * 4 - 20
    rooms.pop(0).close()  # the file is still in use by the others
    assert room_for(1) == 40 - 2 * 4 - 20
    with pytest.raises(OutOfMemory, match="takes 4 MB and 20 MB for its saved memory; 12 MB"):
        take_room(4, shared="other", shared_mb=20)


def test_many_at_once_are_refused_before_the_first():
    """With what they take together, and what each takes."""
    need_room([16, 16])
    with pytest.raises(OutOfMemory, match="3 machines take 48 MB, each 16 MB at most; 40 MB"):
        need_room([16] * 3)


@pytest.fixture
def owner() -> Callable[[str], subprocess.Popen[str]]:
    """Starts a process that takes 30 MB and goes on as told, by source text."""

    def start(then: str) -> subprocess.Popen[str]:
        script = f"""
from cua_gym.machine.admission import take_room
room = take_room(30)
print("taken", flush=True)
{then}
"""
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        return process

    return start


def test_other_processes_are_counted_and_dead_ones_swept(
    owner: Callable[[str], subprocess.Popen[str]], notes: Path
):
    """A killed owner leaves a note that whoever comes next removes."""
    with owner("input()") as process:
        assert room_for(1) == 10
        process.kill()
        process.wait()
        assert len(list(notes.iterdir())) == 1
        assert room_for(1) == 40
        assert list(notes.iterdir()) == []


def test_a_program_that_ends_gives_back_what_it_forgot(
    owner: Callable[[str], subprocess.Popen[str]], notes: Path
):
    """Also one that ends by an error of its own."""
    with owner("raise SystemExit(3)") as process:
        assert process.wait() == 3
    assert list(notes.iterdir()) == []


def test_what_a_machine_has_taken_by_now_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch):
    """Its process's own memory is gone from what the host has available."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(admission, "available_mb", lambda: 100_000)
    room = take_room(50_000)
    before = room_for(1)
    assert before == 100_000 - admission.HOST_MB - 50_000
    room.used_by(os.getpid())
    assert before < room_for(1) < before + 50_000
    with pytest.raises(OutOfMemory, match=r"100000 MB are available, 512 MB stay.*run: 1"):
        take_room(60_000)


def test_a_variable_that_is_no_number_is_told(monkeypatch: pytest.MonkeyPatch):
    """It is not taken for "no limit"."""
    monkeypatch.setenv(VARIABLE, "8G")
    with pytest.raises(MachineError, match="whole number of MB, not '8G'"):
        take_room(1)


MIB = 1 << 20


def host(folder: Path, cgroup: str, files: dict[str, object]) -> tuple[Path, Path]:
    """A ``/proc`` with 1000 MB available and a ``/sys/fs/cgroup``, both made up."""
    proc, cgroups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: 9 kB\nMemAvailable:  {1000 << 10} kB\n")
    (proc / "self/cgroup").write_text(cgroup)
    for name, value in files.items():
        (cgroups / name).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / name).write_text(f"{value}\n")
    return proc, cgroups


@pytest.mark.parametrize(
    ("cgroup", "files", "free_mb"),
    [
        ("", {}, 1000),
        ("0::/\n", {}, 1000),
        (
            "0::/job/inner\n",
            {
                "job/memory.max": 600 * MIB,
                "job/memory.current": 500 * MIB,
                "job/memory.stat": f"anon 9\nactive_file {100 * MIB}\ninactive_file {50 * MIB}",
                "job/inner/memory.max": "max",
                "job/inner/memory.current": 1,
                "job/inner/memory.stat": "active_file 0",
            },
            250,
        ),
        (
            "3:cpu:/job\n2:memory:/job\n0::/\n",
            {
                "memory/job/memory.limit_in_bytes": 400 * MIB,
                "memory/job/memory.usage_in_bytes": 100 * MIB,
                "memory/job/memory.stat": f"active_file 7\ntotal_active_file {20 * MIB}",
            },
            320,
        ),
        (  # a container that is told the host's path
            "2:memory:/docker/0123\n",
            {
                "memory/memory.limit_in_bytes": 300 * MIB,
                "memory/memory.usage_in_bytes": 100 * MIB,
                "memory/memory.stat": "total_active_file 0",
            },
            200,
        ),
        (  # no limit is a very large one
            "2:memory:/\n",
            {
                "memory/memory.limit_in_bytes": 9223372036854771712,
                "memory/memory.usage_in_bytes": 100 * MIB,
                "memory/memory.stat": "total_active_file 0",
            },
            1000,
        ),
    ],
)
def test_the_least_of_host_and_control_groups(
    tmp_path: Path, cgroup: str, files: dict[str, object], free_mb: int
):
    """Both versions; limits above count too, and pages of files are free."""
    assert available_mb(*host(tmp_path, cgroup, files)) == free_mb
