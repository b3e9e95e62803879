"""Taking evidence into a folder, by the probes that a task declares: what, when, and whole or not.

How one thing is taken is `collector`'s business; what was there at the start is `start`'s.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import GradingError
from cua_gym.grading.collector import Collector, Found, store
from cua_gym.grading.items import MANIFEST, VERSION
from cua_gym.grading.probes import Asks, Probe
from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import Machine
from cua_gym.machine.settle import Settle, settle

__all__ = ["collect"]

SECOND_LOOK = Settle(first_s=1.0, quiet_s=0.5, max_s=5.0)
"""How long a program gets to finish a file that was caught half-written."""


def collect(
    machine: Machine,
    asked: Asks,
    folder: Path,
    submission: Mapping[str, Any],
    start: StartEvidence | None = None,
    *,
    clock: Clock | None = None,
) -> None:
    """Collect everything that ``asked.probes`` names from a frozen machine.

    The folder appears whole or not at all, and replaces an earlier one. The machine is frozen
    again when this returns.

    Args:
        submission: ``{"kind": ..., "answer": str | None, "reason": str | None}``, how the
            attempt ended; it becomes the evidence ``submission`` and ``answer``.
        start: what the probes of the start brought then.

    Raises:
        MachineError: the machine failed.
        GradingError: a probe could not be carried out, or the start's evidence is not there.
    """
    start = start or StartEvidence()
    if not start.answers(asked.probes):
        raise GradingError("the evidence of the start was not taken then, or by other probes")
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    found = _submission(partial, submission)
    ending = [p for p in asked.probes if p.at == "end"]
    found += _take(machine, ending, Collector(machine, partial), clock or SystemClock())
    items = [*start.put(partial), *(f.record() for f in found)]
    (partial / MANIFEST).write_text(
        json.dumps({"version": VERSION, "items": items}, indent=1) + "\n"
    )
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def _take(machine: Machine, probes: list[Probe], collector: Collector, clock: Clock) -> list[Found]:
    still = [p for p in probes if not p.live]
    live = [p for p in probes if p.live]
    results = {p.name: collector.take(p) for p in still}
    torn = [p for p in still if results[p.name].torn]
    if torn or live:
        # Everything that can be taken from stopped programs is safe by now.
        machine.thaw()
        try:
            if torn:
                settle(machine.screen, machine.screen.serial, SECOND_LOOK, clock)
            for probe in live:
                results[probe.name] = collector.take(probe)
        finally:
            machine.freeze()
    for probe in torn:
        results[probe.name] = collector.take(probe)
    return [results[p.name] for p in probes]


def _submission(folder: Path, submission: Mapping[str, Any]) -> list[Found]:
    def item(name: str, data: bytes, suffix: str) -> Found:
        return Found(Probe(name, "file", name), entries=[store(folder, name, data, name + suffix)])

    found = [item("submission", json.dumps(dict(submission), indent=1).encode(), ".json")]
    answer = submission.get("answer")
    if answer is None:
        found.append(Found(Probe("answer", "file", "answer"), "absent", "no answer was submitted"))
    else:
        found.append(item("answer", str(answer).encode("utf-8", "replace"), ".txt"))
    return found
