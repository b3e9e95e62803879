"""After SIGKILL nothing of ours is left and the partial run is readable."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import av
import pytest

from cua_gym.cache import cache_root
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from tests.vm.conftest import until

pytestmark = pytest.mark.vm

RUNNER = Path(__file__).with_name("killed_run.py")
TASK = "write-many-scripts"


def machines_of(pid: int) -> list[int]:
    """QEMU processes that say in their name that ``pid`` owns them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(w.startswith(b"guest=cua-gym-") and b"-%d-" % pid in w for w in words):
                found.append(int(entry.name))
    return found


def listing() -> set[str]:
    """Every file of the cache but the templates and states that are meant to stay."""
    root = cache_root()
    # The note of what a killed program's machines took is swept by the next one's.
    kept = ("states/", "images/", "host.json", "run/rooms/")
    return {
        name
        for path in root.rglob("*")
        if not (name := str(path.relative_to(root))).startswith(kept) and path.is_file()
    }


@pytest.mark.parametrize("moment", range(10))
def test_nothing_is_left_after_a_kill(tmp_path: Path, moment: int) -> None:
    """Killed at a random moment: in a reset, as soon as it is done, or between steps."""
    rng = random.Random(moment)
    before = listing()
    process = subprocess.Popen(
        [sys.executable, str(RUNNER), TASK, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "resetting\n"
    if moment >= 3:
        process.stdout.readline()
    if moment != 3:
        time.sleep(rng.uniform(0.0, 0.6 if moment < 3 else 3.0))
    process.kill()
    process.wait()
    process.stdout.close()
    until(lambda: machines_of(process.pid) == [], "no machine of the killed process", 10)
    assert {p for p in listing() - before if not p.startswith("run/empty-")} == set()
    mounts = Path("/proc/self/mounts").read_text()
    assert str(cache_root()) not in mounts
    if moment >= 3:
        folder = RunFolder(next(tmp_path.rglob("traj.jsonl")).parent)
        steps = list(Replay(folder).steps())
        assert [step.index for step in steps] == list(range(len(steps)))
        with av.open(str(folder.video)) as video:
            frames = sum(1 for _ in video.decode(video=0))
        assert frames >= max(1, len(steps) - 8)


def test_nothing_that_is_not_ours_is_touched() -> None:
    """A QEMU of somebody else survives our machines' starts and ends."""
    from cua_gym.machine.base import MachineSpec
    from cua_gym.machine.qemu.reaper import reap
    from cua_gym.machine.start import start_machine

    other = subprocess.Popen(
        ["qemu-system-x86_64", "-name", "guest=cua-gym-of-somebody", "-display", "none",
         "-nodefaults", "-S", "-accel", "tcg"],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        start_machine(MachineSpec()).close()
        assert other.pid not in reap()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert machines_of(os.getpid()) == []
