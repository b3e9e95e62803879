"""What a run of the benchmark found: rows with medians, ratios, and what was left out and why."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Pace", "Ratio", "Report", "Row", "p95", "say", "timed"]


@dataclass(frozen=True, slots=True)
class Pace:
    """How long to measure.

    Attributes:
        samples: of what takes milliseconds or a tenth of a second.
        rounds: of what takes seconds.
        seconds: of one round of steps.
    """

    samples: int
    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """Values of one thing, as median and p95.

    Attributes:
        machine: the kind of machine.
        many: how many at once, when the same is measured for several numbers.
        load: of the host, one minute's average.
    """

    machine: str
    part: str
    what: str
    many: int | None
    p50: float
    p95: float
    unit: str
    n: int
    load: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """One number that compares rows, or is compared with what is ``wanted``."""

    machine: str
    what: str
    many: int | None
    value: float
    wanted: str


def p95(values: Sequence[float]) -> float:
    """The value that 95 of 100 do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]


def timed(function: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"  {text}", file=sys.stderr, flush=True)


@dataclass
class Report:
    """Collects what the parts find, and prints it as it comes.

    Attributes:
        machine, part: what the rows that follow are of.
        left_out: what was not measured, and why.
    """

    host: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)
    machine: str = ""
    part: str = ""

    def begin(self, machine: str, part: str) -> None:
        """What follows is of this part, on this kind of machine."""
        self.machine, self.part = machine, part
        print(f"\n{part}, {machine:<40}{'p50':>12}{'p95':>10}  {'unit':<5}{'n':>4}", flush=True)

    def add(self, what: str, values: Sequence[float], unit: str, many: int | None = None) -> float:
        """One row; its median."""
        row = Row(
            self.machine, self.part, what, many,
            statistics.median(values), p95(values), unit, len(values), os.getloadavg()[0],
        )  # fmt: skip
        self.rows.append(row)
        name = what if many is None else f"{many} x {what}"
        print(f"{name:<52}{row.p50:>10.4g}{row.p95:>10.4g}  {unit:<5}{row.n:>4}", flush=True)
        return row.p50

    def ratio(
        self, what: str, over: float | None, under: float | None, wanted: str = "",
        many: int | None = None,
    ) -> None:  # fmt: skip
        """One ratio, unless a side of it was left out."""
        if over is not None and under:
            self.compare(what, over / under, wanted, many)

    def compare(self, what: str, value: float, wanted: str = "", many: int | None = None) -> None:
        """One number beside what it should be."""
        self.ratios.append(Ratio(self.machine, what, many, value, wanted))
        name = what if many is None else f"{many} x {what}"
        print(f"{name:<52}{value:>10.4g}  {wanted}", flush=True)

    def leave_out(self, what: str, why: str, many: int | None = None) -> None:
        """Say that it was not measured."""
        self.left_out.append(
            {"machine": self.machine, "part": self.part, "what": what, "many": many, "why": why}
        )
        print(f"{what if many is None else f'{many} x {what}'}: left out, {why}", flush=True)

    def median(self, what: str, many: int | None = None) -> float | None:
        """The median of a row of this kind of machine, if there is one."""
        for row in reversed(self.rows):
            if (row.machine, row.what, row.many) == (self.machine, what, many):
                return row.p50
        return None

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "host": self.host,
            "rows": [asdict(row) for row in self.rows],
            "ratios": [asdict(ratio) for ratio in self.ratios],
            "left_out": self.left_out,
        }
