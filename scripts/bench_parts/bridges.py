"""What the MCP bridges cost."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from cua_gym import actions as a
from cua_gym.bridge.desktop import PICTURE_BYTES
from cua_gym.bridge.pictures import encode
from cua_gym.bridge.serve import Served
from cua_gym.episode import Episode
from cua_gym.machine.settle import Settle, settle
from cua_gym.record.layout import RunFolder
from cua_gym.steps import OWN
from cua_gym.task import bundled_suite

from .report import Pace, Report, say, timed
from .steps import CLOCK

__all__ = ["bridges"]

KILOBYTE = "head -c 1024 /dev/zero | tr '\\0' x"


def bridges(report: Report, kind: str, pace: Pace) -> None:
    """What a call over HTTP costs beside the same thing done directly, in turns."""
    count = pace.samples
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
            report.add(f"{name}, directly", [1e3 * a for a, _ in pairs], "ms")
            report.add(f"{name}, over HTTP", [1e3 * b for _, b in pairs], "ms")
            report.add(f"{name}, overhead", [1e3 * (b - a) for a, b in pairs], "ms")

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
        report.add("a picture's encoding", [1e3 * v for v in encoded], "ms")
        compare(
            "pointer step with its picture",
            lambda i: encode(episode.act(move(2 * i)).frame.rgb, limit_bytes=PICTURE_BYTES),
            lambda i: (desktop, "move", {"x": move(2 * i + 1).x, "y": move(2 * i + 1).y}),
            count,
        )
        shots = [desktop("screenshot", {}) for _ in range(count)]
        report.add("screenshot over HTTP", [1e3 * v for v in shots], "ms")


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
