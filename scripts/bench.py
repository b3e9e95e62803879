"""Measures what cua_gym promises, in one run, and writes ``bench.json``.

Each row is ``{p50, p95, unit, n}``. Machines are shared and noisy: compare rows of one run, not
numbers of two. ``--quick`` takes fewer samples and leaves out the cold boot.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import numpy as np
from bench_light import light
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from cua_gym import actions as a
from cua_gym.bridge.desktop import PICTURE_BYTES
from cua_gym.bridge.pictures import encode
from cua_gym.bridge.serve import Served
from cua_gym.clock import SystemClock
from cua_gym.episode import Episode
from cua_gym.image.store import ImageStore
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.hands import Hands
from cua_gym.machine.qemu.accelerator import probe
from cua_gym.machine.qemu.machine import QemuMachine
from cua_gym.machine.settle import Settle, settle
from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder
from cua_gym.steps import OWN
from cua_gym.task import bundled_suite

SPEC = MachineSpec()
CLOCK = SystemClock()
TEXT = (
    """The quick brown fox! (jumps) over_the [lazy] dog; #42 & 3 < 5 > 1, a@b.org? {x|y} ~/n"'=%"""
)
TEXT = (TEXT * 3)[:200]
MANY = 20
KILOBYTE = "head -c 1024 /dev/zero | tr '\\0' x"


class Table:
    """Rows by name, printed as they come."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        print(f"{'what':<44}{'p50':>10}{'p95':>10}  {'unit':<5}{'n':>4}")

    def add(self, name: str, values: list[float], unit: str) -> float:
        """One row; its median."""
        ordered = sorted(values)
        p95 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        p50 = statistics.median(ordered)
        self.rows[name] = {"p50": p50, "p95": p95, "unit": unit, "n": len(values)}
        print(f"{name:<44}{p50:>10.4g}{p95:>10.4g}  {unit:<5}{len(values):>4}", flush=True)
        return p50


def timed(function: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"  {text}", file=sys.stderr, flush=True)


def cold_boots(count: int) -> Iterator[float]:
    """Seconds from power-on to a saved desktop at rest, in caches of their own."""
    for _ in range(count):
        with tempfile.TemporaryDirectory(dir=ImageStore().root) as scratch:
            start = time.perf_counter()
            QemuMachine.start(SPEC, cache=Path(scratch), progress=say).close()
            yield time.perf_counter() - start


def resets(table: Table, count: int) -> np.ndarray[Any, Any]:
    """A fresh process with the right first frame; now and then to the first command."""
    with QemuMachine.start(SPEC) as machine:
        reference = machine.screen.grab().rgb
    frames, commands = [], []
    for i in range(count):
        start = time.perf_counter()
        with QemuMachine.start(SPEC) as machine:
            right = np.array_equal(machine.screen.grab().rgb, reference)
            frames.append(time.perf_counter() - start)
            if not right:
                raise SystemExit("a restored machine showed another first frame")
            if i % 4 == 0:
                machine.shell.run("true", user="root")
                commands.append(time.perf_counter() - start)
    table.add("reset to first correct frame", frames, "s")
    table.add("reset to first shell command", commands, "s")
    return reference


def loadvm(table: Table, reference: np.ndarray[Any, Any], count: int) -> None:
    """QEMU's own snapshots in the same machine, for comparison."""
    with QemuMachine.start(SPEC) as machine:
        qmp = machine._running().qmp  # this measures past the machine's own road

        def hmp(line: str) -> None:
            said = qmp.execute("human-monitor-command", {"command-line": line}, timeout_s=120.0)
            if said:
                raise SystemExit(f"{line}: {said}")

        table.add("savevm", [timed(lambda: hmp("savevm bench"))], "s")
        values = []
        for i in range(count):
            machine.input.pointer(200 + i, 200)
            machine.screen.wait_change(machine.screen.serial, 0.2)
            start = time.perf_counter()
            hmp("loadvm bench")
            while not np.array_equal(machine.screen.grab().rgb, reference):
                machine.screen.wait_change(machine.screen.serial, 0.05)
                if time.perf_counter() - start > 30:
                    raise SystemExit("loadvm never brought the first frame back")
            values.append(time.perf_counter() - start)
        table.add("loadvm to first correct frame", values, "s")


def steps(table: Table, count: int) -> None:
    """What one step is made of, on one machine."""
    with QemuMachine.start(SPEC) as machine, tempfile.TemporaryDirectory() as runs:
        machine.shell.run("true")
        hands = Hands(machine.input, machine.screen, CLOCK)

        def still() -> None:
            settle(machine.screen, machine.screen.serial, Settle(0.5, 0.5, 20.0), CLOCK)

        still()
        anonymous = [_anonymous_mb(machine.pid)]
        table.add("private memory at rest", anonymous, "MB")
        grabs = []
        for i in range(count):
            # A changed row or two is converted with each frame, as in a real step.
            hands.perform(a.Move(300 + i % 50, 300))
            machine.screen.wait_change(machine.screen.serial, 0.1)
            grabs.append(timed(machine.screen.grab))
        table.add("screenshot (RGB array of its own)", [v * 1e3 for v in grabs], "ms")
        moves, settles = [], []
        for i in range(count):
            start = time.perf_counter()
            serial = machine.screen.serial
            hands.perform(a.Move(400 + 7 * (i % 40), 300 + 5 * (i % 30)))
            rest = settle(machine.screen, serial, Settle(0.25, 0.025, 3.0), CLOCK)
            moves.append(time.perf_counter() - start)
            settles.append(rest.seconds)
        table.add("pointer step (move, settle, frame)", [v * 1e3 for v in moves], "ms")
        table.add("  of it settling", [v * 1e3 for v in settles], "ms")
        clicks = [timed(lambda: hands.perform(a.Click(700, 400))) for _ in range(10)]
        table.add("click (events sent)", [v * 1e3 for v in clicks], "ms")
        frame = machine.screen.grab()
        folder = RunFolder.create(Path(runs), "bench", "bench", "bench")
        with Recorder(folder, machine.screen.size) as recorder:
            recorder.start({}, frame, {})
            writes = []
            for i in range(count):
                writes.append(
                    timed(lambda i=i: recorder.step(i + 1, {}, frame, {}, False, False))  # type: ignore[misc]
                )
                time.sleep(0.02)  # steps are never nearer to each other
        table.add("recording, on the step's path", [v * 1e3 for v in writes], "ms")
        machine.shell.write("/home/user/bench.txt", b"")
        machine.shell.run("setsid -f mousepad bench.txt >/dev/null 2>&1 </dev/null")
        while "bench.txt" not in machine.shell.run("wmctrl -l").text:
            time.sleep(0.5)
        still()
        typing = []
        for _ in range(5):
            typing.append(timed(lambda: hands.perform(a.Type(TEXT))))
            still()
        table.add(f"type {len(TEXT)} mixed characters", typing, "s")


def bridges(table: Table, count: int) -> None:
    """What a call over HTTP costs beside the same thing done directly, in turns."""
    variation = bundled_suite().task("slowest-request").variation(0)
    with ExitStack() as stack:
        runs = stack.enter_context(tempfile.TemporaryDirectory())
        place = RunFolder.create(Path(runs), "bench", "bench", "bench")
        episode = Episode(variation, place, max_steps=10**6, max_seconds=3600.0)
        stack.callback(episode.close)
        episode.prepare(say)
        settle(episode.machine.screen, episode.machine.screen.serial, Settle(0.5, 0.5, 20.0), CLOCK)
        served = stack.enter_context(Served(episode))
        desktop, shell = (
            stack.enter_context(_caller(served.url(b), served.session.token(b)))
            for b in served.bridges
        )

        def compare(name: str, direct: Callable[[int], object], over: Any, n: int) -> None:
            pairs = []
            for i in range(n):
                first = timed(lambda i=i: direct(i))  # type: ignore[misc]
                call, tool, arguments = over(i)
                pairs.append((first, call(tool, arguments)))
            table.add(f"{name}, directly", [1e3 * a for a, _ in pairs], "ms")
            table.add(f"{name}, over HTTP", [1e3 * b for _, b in pairs], "ms")
            table.add("  overhead", [1e3 * (b - a) for a, b in pairs], "ms")

        def move(i: int) -> a.Move:
            return a.Move(300 + 7 * (i % 40), 300 + 5 * (i % 30))

        compare(
            "look without a picture",
            lambda i: episode.use(OWN, lambda machine: {}, acts=False),
            lambda i: (desktop, "cursor_position", {}),
            count * 3,
        )
        compare(
            "1 KB from a command",
            lambda i: episode.machine.shell.run(KILOBYTE),
            lambda i: (shell, "run", {"command": KILOBYTE}),
            count,
        )
        encoded = []
        for i in range(count):
            frame = episode.act(move(i)).frame.rgb
            encoded.append(timed(lambda f=frame: encode(f, limit_bytes=PICTURE_BYTES)))  # type: ignore[misc]
        table.add("a picture's encoding", [1e3 * v for v in encoded], "ms")
        compare(
            "pointer step with its picture",
            lambda i: encode(episode.act(move(2 * i)).frame.rgb, limit_bytes=PICTURE_BYTES),
            lambda i: (desktop, "move", {"x": move(2 * i + 1).x, "y": move(2 * i + 1).y}),
            count,
        )
        shots = [desktop("screenshot", {}) for _ in range(count)]
        table.add("screenshot over HTTP", [1e3 * v for v in shots], "ms")


@contextmanager
def _caller(url: str, token: str) -> Iterator[Callable[[str, dict[str, Any]], float]]:
    """Seconds of a call by a client in a process of its own, as clients are."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_client, args=(its, url, token), daemon=True)
    process.start()
    ours.recv()

    def call(tool: str, arguments: dict[str, Any]) -> float:
        ours.send((tool, arguments))
        seconds: float = ours.recv()
        return seconds

    yield call
    process.kill()
    process.join()


def _client(pipe: Any, url: str, token: str) -> None:
    async def main() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60.0, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await client.list_tools()  # or the first call asks for it
            pipe.send("ready")
            while True:
                tool, arguments = await anyio.to_thread.run_sync(pipe.recv)
                start = time.perf_counter()
                result = await client.call_tool(tool, arguments)
                pipe.send(time.perf_counter() - start)
                assert not result.is_error, result.content

    anyio.run(main)


def many(table: Table, reference: np.ndarray[Any, Any]) -> None:
    """Twenty machines at once, all with the right frame."""
    with ExitStack() as stack, ThreadPoolExecutor(MANY) as pool:
        start = time.perf_counter()
        machines = list(pool.map(lambda _: QemuMachine.start(SPEC), range(MANY)))
        for machine in machines:
            stack.enter_context(machine)
        right = sum(np.array_equal(m.screen.grab().rgb, reference) for m in machines)
        table.add(f"{MANY} machines at once, all restored", [time.perf_counter() - start], "s")
        if right != MANY:
            raise SystemExit(f"only {right} of {MANY} machines show the right frame")
        table.add(
            f"{MANY} machines, private memory each", [_anonymous_mb(m.pid) for m in machines], "MB"
        )


def _anonymous_mb(pid: int) -> float:
    """Memory that only this process has; Private_Dirty would count shared file pages too."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    match = re.search(r"^Anonymous:\s+(\d+) kB", text, re.MULTILINE)
    assert match is not None
    return int(match[1]) / 1000


def main() -> None:
    """Run it all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples, no cold boot")
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    args = parser.parse_args()
    image = ImageStore().get(SPEC.image)
    host = probe(ImageStore().root.parent)
    kind = {
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "cpu": host.cpu_model,
        "accelerator": host.accelerator(),
        "qemu": host.version,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "image": image.folder.name,
        "load": os.getloadavg()[0],
    }
    print(", ".join(f"{name} {value}" for name, value in kind.items()))
    table = Table()
    count = 20 if args.quick else 60
    QemuMachine.start(SPEC, progress=say).close()
    reference = resets(table, count)
    loadvm(table, reference, 3 if args.quick else 6)
    steps(table, count)
    bridges(table, count)
    many(table, reference)
    light(table.add, 5 if args.quick else 10)
    if not args.quick:
        table.add("cold boot to a desktop at rest", list(cold_boots(2)), "s")
    rows = table.rows
    reset = rows["reset to first correct frame"]["p50"]
    ratios = {"loadvm / reset": rows["loadvm to first correct frame"]["p50"] / reset}
    if not args.quick:
        ratios["cold boot / reset"] = rows["cold boot to a desktop at rest"]["p50"] / reset
    for name, value in ratios.items():
        print(f"{name}: {value:.1f}")
    result = rows | {"machine": kind, "ratios": ratios}
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {args.out}")


if __name__ == "__main__":
    main()
