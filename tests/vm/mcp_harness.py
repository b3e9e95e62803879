"""Clients for the bridges' tests: the MCP SDK's own, driven from plain functions.

Nothing here knows the bridges from within: a server is `cua-gym serve` in a process of its own, or
any URL and token, and what comes back is what an agent outside would get.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

CLI = (sys.executable, "-m", "cua_gym.cli")

Transport = Literal["http", "stdio"]
TRANSPORTS: tuple[Transport, ...] = ("http", "stdio")


@dataclass(frozen=True, slots=True)
class End:
    """One bridge of an episode, as `cua-gym serve --json` tells it."""

    url: str
    token: str


class Remote:
    """A client of one bridge.

    Attributes:
        calls: names of the tools that were called, in order.
    """

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client
        self.calls: list[str] = []

    def tools(self) -> list[str]:
        """Names of the tools that it lists."""
        return [tool.name for tool in self._portal.call(self._client.list_tools).tools]

    def begin(self, tool: str, **arguments: Any) -> Future[types.CallToolResult]:
        """Begin a call; cancelling the future cancels it as a client does."""
        self.calls.append(tool)
        return self._portal.start_task_soon(self._client.call_tool, tool, arguments)

    def call(self, tool: str, **arguments: Any) -> types.CallToolResult:
        """A call and its answer, an error too."""
        return self.begin(tool, **arguments).result(300)

    def facts(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a call that must not fail."""
        result = self.call(tool, **arguments)
        assert not result.is_error, said(result)
        assert result.structured_content is not None
        return result.structured_content

    def refused(self, tool: str, **arguments: Any) -> str:
        """What is said of a call that must fail, as a tool's error and not a protocol's."""
        result = self.call(tool, **arguments)
        assert result.is_error, said(result)
        return said(result)


def said(result: types.CallToolResult) -> str:
    """The text of an answer."""
    return "\n".join(c.text for c in result.content if isinstance(c, types.TextContent))


@contextmanager
def connected(end: End, transport: Transport = "http") -> Iterator[Remote]:
    """A client of an end."""
    with start_blocking_portal() as portal:
        opened = _over_http(end) if transport == "http" else _over_stdio(end)
        with portal.wrap_async_context_manager(opened) as client:
            yield Remote(portal, client)


@asynccontextmanager
async def _over_http(end: End) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {end.token}"}
    timeout = httpx2.Timeout(30.0, read=300.0)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(end.url, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def _over_stdio(end: End) -> AsyncIterator[Client]:
    origin, _, bridge = end.url.rpartition("/")
    command, *args = (*CLI, "bridge", bridge, "--episode", origin)
    env = {**os.environ, "CUA_GYM_TOKEN": end.token}
    async with Client(StdioServerParameters(command=command, args=args, env=env)) as c:
        yield c


class Server:
    """A `cua-gym serve` process that is ready."""

    def __init__(self, process: subprocess.Popen[str], ready: dict[str, Any]) -> None:
        self.process = process
        self.ends = {b: End(**ready[b]) for b in ("desktop", "shell") if ready[b] is not None}
        self.folder = Path(ready["folder"])

    def outcome(self) -> dict[str, Any]:
        """Its last line, once it has ended."""
        assert self.process.stdout is not None
        outcome: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.process.wait(60)
        return outcome

    @contextmanager
    def connected(self, transport: Transport = "http") -> Iterator[dict[str, Remote]]:
        """A client of each bridge that there is, by the bridge's name."""
        with ExitStack() as stack:
            yield {b: stack.enter_context(connected(e, transport)) for b, e in self.ends.items()}


@contextmanager
def serving(task: str, runs: Path, seed: int = 0) -> Iterator[Server]:
    """`cua-gym serve TASK --json`; it is told to end if it has not ended by itself."""
    command = (*CLI, "serve", task, "--json", "--seed", str(seed), "--runs", str(runs))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        assert ready, f"cua-gym serve {task} ended with status {process.wait(60)}"
        yield Server(process, json.loads(ready))
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
