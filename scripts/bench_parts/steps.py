"""What one step is made of, on one machine."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

from cua_gym import actions as a
from cua_gym.clock import SystemClock
from cua_gym.machine.hands import Hands
from cua_gym.machine.qemu.machine import QemuMachine
from cua_gym.machine.settle import Settle, settle
from cua_gym.machine.start import start_machine
from cua_gym.performing import POINTER_QUIET_S
from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder

from .machines import do, open_editor, performer, spec, steps
from .memory import anonymous_mb
from .report import Pace, Report, timed

__all__ = ["of_a_step"]

CLOCK = SystemClock()
TEXT = (
    """The quick brown fox! (jumps) over_the [lazy] dog; #42 & 3 < 5 > 1, a@b.org? {x|y} ~/n"'=%"""
)
TEXT = (TEXT * 3)[:200]


def of_a_step(report: Report, kind: str, pace: Pace) -> None:
    """Memory at rest, a frame, pointer steps, a click, the record, typing, a mixture."""
    with start_machine(spec(kind)) as machine, tempfile.TemporaryDirectory() as runs:
        machine.shell.run("true")
        hands = Hands(machine.input, machine.screen, CLOCK)
        quiet_s = min(POINTER_QUIET_S, machine.settle.quiet_s)

        def still() -> None:
            settle(machine.screen, machine.screen.serial, Settle(0.5, 0.5, 20.0), CLOCK)

        still()
        if isinstance(machine, QemuMachine):
            report.add("private memory at rest", [anonymous_mb(machine.pid)], "MB")
        grabs = []
        for i in range(pace.samples):
            # A changed row or two is converted with each frame, as in a real step.
            hands.perform(a.Move(300 + i % 50, 300))
            machine.screen.wait_change(machine.screen.serial, 0.1)
            grabs.append(timed(machine.screen.grab))
        report.add("screenshot (RGB array of its own)", [v * 1e3 for v in grabs], "ms")
        moves, settles = [], []
        for i in range(pace.samples):
            start = time.perf_counter()
            serial = machine.screen.serial
            hands.perform(a.Move(400 + 7 * (i % 40), 300 + 5 * (i % 30)))
            rest = settle(machine.screen, serial, Settle(0.25, quiet_s, 3.0), CLOCK)
            moves.append(time.perf_counter() - start)
            settles.append(rest.seconds)
        report.add("pointer step (move, settle, frame)", [v * 1e3 for v in moves], "ms")
        report.add("of it settling", [v * 1e3 for v in settles], "ms")
        clicks = [timed(lambda: hands.perform(a.Click(700, 400))) for _ in range(10)]
        report.add("click (events sent)", [v * 1e3 for v in clicks], "ms")
        frame = machine.screen.grab()
        folder = RunFolder.create(Path(runs), "bench", "bench", "bench")
        with Recorder(folder, machine.screen.size) as recorder:
            recorder.start({}, frame, {})
            writes = []
            for i in range(pace.samples):
                writes.append(
                    timed(lambda i=i: recorder.step(i + 1, {}, frame, {}, False, False))  # type: ignore[misc]
                )
                time.sleep(0.02)  # steps are never nearer to each other
        report.add("recording, on the step's path", [v * 1e3 for v in writes], "ms")
        open_editor(machine)
        still()
        mixed = steps(partial(do, performer(machine)), pace.seconds)
        report.add("a step of a mixture (click, key, move)", [v * 1e3 for v in mixed], "ms")
        typing = []
        for _ in range(5):
            typing.append(timed(lambda: hands.perform(a.Type(TEXT))))
            still()
        report.add(f"type {len(TEXT)} mixed characters", typing, "s")
