"""Many short episodes while machines are killed at random: nothing leaks, hangs or goes uncounted.

python -m tests.endure --machine x11 --episodes 1000
python -m tests.endure --machine qemu --many 4 --episodes 100
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import gc
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cua_gym import actions as a
from cua_gym.errors import MachineError
from cua_gym.machine.base import MachineSpec
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.vector import DesktopVectorEnv
from tests.run.toy import make_suite

STEPS = 5


@dataclass
class Held:
    """What this process has that a leak would make grow."""

    files: int
    threads: int
    children: int
    mapped_mb: float

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free is not a leak
        statm = Path("/proc/self/statm").read_text().split()
        return cls(
            files=len(list(Path("/proc/self/fd").iterdir())),
            threads=threading.active_count(),
            children=len(below(os.getpid())),
            mapped_mb=int(statm[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6,
        )


def below(pid: int) -> list[int]:
    """Processes that descend from one."""
    found = [pid]
    for one in found:
        for thread in Path(f"/proc/{one}/task").glob("*"):
            with contextlib.suppress(OSError):  # it has just ended
                found += map(int, (thread / "children").read_text().split())
    return found[1:]


class Killer(threading.Thread):
    """Kills the machine of a random slot, or a program of it, every now and then."""

    def __init__(self, env: DesktopVectorEnv, every_s: float, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self.kills = 0
        self.over = threading.Event()
        self._env, self._every_s, self._rng = env, every_s, rng

    def run(self) -> None:
        while not self.over.wait(self._rng.expovariate(1 / self._every_s)):
            with contextlib.suppress(MachineError, RuntimeError, ProcessLookupError):
                victim = self._rng.choice(self._env.envs).machine.pid  # type: ignore[attr-defined]
                if self._rng.random() < 0.3:
                    victim = self._rng.choice([victim, *below(victim)])
                os.kill(victim, signal.SIGKILL)
                self.kills += 1


def endure(
    kind: str, runs: Path, *, episodes: int, many: int, every_s: float, seed: int = 0
) -> dict[str, int]:
    """How the episodes ended: ``scored``, or why not.

    Raises:
        AssertionError: one is not accounted for, or something is left behind.
    """
    rng = random.Random(seed)
    task = make_suite(runs / "suite").task("type-word")
    task = replace(task, spec=MachineSpec(backend=kind, screen=(640, 480)))  # type: ignore[arg-type]
    before = Held.now()
    ends: collections.Counter[str] = collections.Counter()
    begun = 0
    early: Held | None = None
    env = DesktopVectorEnv(many, task, runs=runs, run="endure", film_every=20, max_steps=STEPS)
    killer = Killer(env, every_s, rng)
    try:
        _, infos = env.reset(seed=seed)
        begun += many
        killer.start()
        while sum(ends.values()) < episodes:
            kinds = [a.Move(rng.randrange(640), 99), a.Click(9, 470), a.Type("toy"), a.Key("x")]
            *_, terminations, truncations, infos = env.step(rng.choices(kinds, k=many))
            over = terminations | truncations
            for i in np.flatnonzero(over):
                outcome = infos["outcome"][i] if "outcome" in infos else None
                # A slot that got no machine at its reset has no outcome of its own.
                ends["no machine" if outcome is None else outcome["reason"] or outcome["kind"]] += 1
            if over.any():
                env.reset(options={"reset_mask": over})
                begun += int(over.sum())
                if early is None and sum(ends.values()) > episodes // 5:
                    early = Held.now()
        late = Held.now()
    finally:
        killer.over.set()
        env.close()
    results = [Replay(RunFolder(p.parent)).result for p in runs.rglob("episode.json")]
    there = collections.Counter("open" if r is None else r["kind"] for r in results)
    print(f"{begun} begun, {killer.kills} kills, {dict(ends)}; on disk {dict(there)}", flush=True)
    print(f"before {before}\nearly  {early}\nlate   {late}", flush=True)
    end = time.monotonic() + 20
    while (after := Held.now()).children > before.children and time.monotonic() < end:
        time.sleep(0.2)  # the last ones are being reaped
    print(f"after  {after}", flush=True)
    assert killer.kills, "nothing was tried"
    assert ends["scored"], "nothing came to its end"
    assert early is not None
    assert len(results) == begun, "an episode left no record"
    assert there["open"] <= many, "an episode that ended has no result"
    assert there["scored"] == ends["scored"], "the record counts otherwise"
    # Either moment may be one at which many machines had just been killed, or made ready. What is
    # lost with each episode shows in a thousand of them here, and in a few at the end.
    assert late.files <= early.files + 40 * many, "open files grow"
    assert late.threads <= early.threads + 10 * many, "threads grow"
    assert late.mapped_mb <= early.mapped_mb * 1.2, "memory grows"
    assert after.children <= before.children, "processes are left"
    assert after.threads <= before.threads + 1, "threads are left"
    assert after.files <= before.files + 2, "open files are left"
    return dict(ends)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--machine", choices=["qemu", "x11"], default="x11")
    parser.add_argument("--many", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--every-s", type=float, default=5.0, help="mean time between kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        ends = endure(
            options.machine, Path(folder), episodes=options.episodes, many=options.many,
            every_s=options.every_s,
        )  # fmt: skip
        json.dump({"ends": ends, "seconds": round(time.monotonic() - begun)}, sys.stdout)
        print()


if __name__ == "__main__":
    main()
