"""From nothing to a machine at rest, and QEMU's own ways for comparison."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from cua_gym.image.store import ImageStore
from cua_gym.machine.base import Rgb
from cua_gym.machine.qemu.machine import QemuMachine
from cua_gym.machine.start import start_machine

from .machines import spec
from .memory import anonymous_mb
from .report import Pace, Report, say, timed

__all__ = ["cold", "crowd", "resets", "savevm"]

MANY = 20

FIRST = "reset to first correct frame"
LOADVM = "loadvm to first correct frame"
COLD = "cold boot to a desktop at rest"


def resets(report: Report, kind: str, pace: Pace) -> None:
    """A fresh machine with the right first frame; now and then to the first command; its end."""
    start_machine(spec(kind), progress=say).close()
    with start_machine(spec(kind)) as machine:
        reference = machine.screen.grab().rgb
    frames, commands, ends = [], [], []
    for i in range(pace.samples):
        start = time.perf_counter()
        with start_machine(spec(kind)) as machine:
            right = np.array_equal(machine.screen.grab().rgb, reference)
            frames.append(time.perf_counter() - start)
            if not right:
                raise SystemExit("a fresh machine showed another first frame")
            if i % 4 == 0:
                machine.shell.run("true", user="root")
                commands.append(time.perf_counter() - start)
            ends.append(timed(machine.close))
    report.add(FIRST, frames, "s")
    report.add("reset to first shell command", commands, "s")
    report.add("end of a machine", ends, "s")


def savevm(report: Report, kind: str, pace: Pace) -> None:
    """QEMU's own snapshots in the same machine."""
    with QemuMachine.start(spec(kind)) as machine:
        reference: Rgb = machine.screen.grab().rgb
        qmp = machine._running().qmp  # this measures past the machine's own road

        def hmp(line: str) -> None:
            said = qmp.execute("human-monitor-command", {"command-line": line}, timeout_s=120.0)
            if said:
                raise SystemExit(f"{line}: {said}")

        report.add("savevm", [timed(lambda: hmp("savevm bench"))], "s")
        values = []
        for i in range(2 * pace.rounds):
            machine.input.pointer(200 + i, 200)
            machine.screen.wait_change(machine.screen.serial, 0.2)
            start = time.perf_counter()
            hmp("loadvm bench")
            while not np.array_equal(machine.screen.grab().rgb, reference):
                machine.screen.wait_change(machine.screen.serial, 0.05)
                if time.perf_counter() - start > 30:
                    raise SystemExit("loadvm never brought the first frame back")
            values.append(time.perf_counter() - start)
        report.ratio("loadvm / reset", report.add(LOADVM, values, "s"), report.median(FIRST))


def crowd(report: Report, kind: str, pace: Pace) -> None:
    """Twenty machines at once, all with the right frame."""
    with start_machine(spec(kind)) as machine:
        reference = machine.screen.grab().rgb
    with ExitStack() as stack, ThreadPoolExecutor(MANY) as pool:
        start = time.perf_counter()
        machines = list(pool.map(lambda _: QemuMachine.start(spec(kind)), range(MANY)))
        for machine in machines:
            stack.enter_context(machine)
        right = sum(np.array_equal(m.screen.grab().rgb, reference) for m in machines)
        report.add(f"{MANY} machines at once, all restored", [time.perf_counter() - start], "s")
        if right != MANY:
            raise SystemExit(f"only {right} of {MANY} machines show the right frame")
        private = [anonymous_mb(m.pid) for m in machines]
        report.add(f"{MANY} machines, private memory each", private, "MB")


def cold(report: Report, kind: str, pace: Pace) -> None:
    """From power-on to a saved desktop at rest, in caches of their own."""
    seconds = report.add(COLD, list(_cold_boots(kind, 2)), "s")
    report.ratio("cold boot / reset", seconds, report.median(FIRST))


def _cold_boots(kind: str, count: int) -> Iterator[float]:
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir=ImageStore().root) as scratch:
            start = time.perf_counter()
            QemuMachine.start(spec(kind), cache=Path(scratch), progress=say).close()
            yield time.perf_counter() - start
