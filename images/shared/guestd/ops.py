"""What the host may ask of the guest: requests in JSON, one answer each.

Clock, entropy, identity and the freezer are done here; whatever needs X is a job of `desk.Desk`,
on its own thread, because X may be frozen, restarting or not there yet.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import desk

RNDADDENTROPY = 0x40085203
RNDRESEEDCRNG = 0x5207
FREEZE_S = 5.0
# Longest wait for X in one job; a host that wants less says so and goes away by itself.
JOB_S = 30.0
BUSY = 0.35


class Ops:
    """Parses requests, runs them, and collects the answers for the loop of `Guestd`."""

    def __init__(self, uid: int, display: str) -> None:
        self.wake_fd, self._wake = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._wake, False)
        self._slice = Path(f"/sys/fs/cgroup/user.slice/user-{uid}.slice")
        self._answers: deque[tuple[int, bytes]] = deque()
        self._desk = desk.Desk(display, uid)
        self._jobs: list[desk.Job] = []
        self._lock = threading.Lock()
        self._cpu = (0.0, 0, 0)
        self._own: dict[str, Callable[..., dict[str, Any]]] = {
            "ping": lambda: {"time_ns": time.time_ns()},
            "hello": hello,
            "freeze": lambda: self._freeze(True),
            "thaw": lambda: self._freeze(False),
        }

    def request(self, stream: int, line: bytes) -> None:
        """Take one request; its answer appears in `answers`, now or later."""
        number: Any = None
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise TypeError("a request is a JSON object")
            number = request.pop("id", None)
            name = request.pop("op", None)
            if name in self._own:
                self._answer(stream, number, self._own[name](**request))
            elif name in desk.JOBS:
                job = desk.Job(name, request, time.monotonic() + JOB_S)
                job.done = lambda: self._job_done(stream, number, job)
                with self._lock:
                    self._jobs.append(job)
                self._desk.submit(job)
            else:
                raise ValueError(f"no operation is called {name!r}")
        except (ValueError, TypeError, OSError, RecursionError) as error:
            self._answer(stream, number, None, f"{type(error).__name__}: {error}")

    def answers(self) -> list[tuple[int, bytes]]:
        """Answers since the last call, as (stream, line)."""
        self._expire()
        found = []
        while self._answers:
            found.append(self._answers.popleft())
        return found

    def next_deadline(self) -> float | None:
        """Seconds until a job of X is overdue; None when there is none."""
        with self._lock:
            ends = [job.deadline for job in self._jobs]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def drain_wake(self) -> None:
        """Swallow the bytes that other threads wrote to wake the loop."""
        try:
            os.read(self.wake_fd, 4096)
        except BlockingIOError:
            pass

    def _answer(
        self, stream: int, number: Any, result: dict[str, Any] | None, error: str = ""
    ) -> None:
        body = {"id": number, "ok": False, "error": error}
        if result is not None:
            body = {"id": number, "ok": True, **result}
        line = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        self._answers.append((stream, line))
        try:
            os.write(self._wake, b"x")
        except BlockingIOError:
            pass  # the pipe is full, so the loop wakes anyway

    def _job_done(self, stream: int, number: Any, job: desk.Job) -> None:
        with self._lock:
            if job not in self._jobs:
                return  # overdue: answered already
            self._jobs.remove(job)
        result = job.result
        if job.name == "ready" and result is not None:
            result = self._with_load(result)
        self._answer(stream, number, result, job.error)

    def _expire(self) -> None:
        now = time.monotonic()
        with self._lock:
            late = [job for job in self._jobs if job.deadline <= now]
        for job in late:
            job.fail(f"X did not answer within {JOB_S:g} s; is the desktop frozen or busy?")
            self._desk.interrupt(job)

    def _with_load(self, result: dict[str, Any]) -> dict[str, Any]:
        """Not ready while the processors still work off the session's start."""
        fields = [int(v) for v in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        total, idle = sum(fields), fields[3] + fields[4]
        then, total0, idle0 = self._cpu
        now = time.monotonic()
        if not result["ready"] or now - then > 5.0:
            self._cpu = (now, total, idle)
            return result if not result["ready"] else {"ready": False, "waiting_for": "load"}
        if now - then >= 1.0:
            self._cpu = (now, total, idle)
            busy = 1 - (idle - idle0) / max(1, total - total0)
            if busy < BUSY:
                return result
        return {"ready": False, "waiting_for": "load"}

    def _freeze(self, stop: bool) -> dict[str, Any]:
        """Cgroup v2's freezer on everything of the desktop account, X included."""
        (self._slice / "cgroup.freeze").write_text("1" if stop else "0")
        end = time.monotonic() + FREEZE_S
        wanted = f"frozen {int(stop)}"
        while wanted not in (self._slice / "cgroup.events").read_text():
            if time.monotonic() > end:
                raise TimeoutError(f"{self._slice.name} is not '{wanted}' after {FREEZE_S:g} s")
            time.sleep(0.002)
        return {}


def hello(
    time_ns: int | None = None, entropy_hex: str | None = None, machine_id: str | None = None
) -> dict[str, Any]:
    """Make a restored guest a computer of its own: clock, random pool, identity."""
    if time_ns is not None:
        time.clock_settime_ns(time.CLOCK_REALTIME, time_ns)
    if entropy_hex:
        add_entropy(bytes.fromhex(entropy_hex))
    if machine_id:
        if len(bytes.fromhex(machine_id)) != 16:
            raise ValueError("a machine-id is 32 hexadecimal digits")
        # In place: on some guests the file is a mount of its own, which cannot be replaced.
        Path("/etc/machine-id").write_text(machine_id + "\n")
    return {"time_ns": time.time_ns()}


def add_entropy(seed: bytes) -> None:
    """Credit ``seed`` to the kernel's pool and make its generator take it at once.

    Source: random(4), ``struct rand_pool_info``.
    """
    with Path("/dev/urandom").open("wb", buffering=0) as device:
        pool = struct.pack("ii", len(seed) * 8, len(seed)) + seed
        fcntl.ioctl(device, RNDADDENTROPY, pool)
        fcntl.ioctl(device, RNDRESEEDCRNG)
