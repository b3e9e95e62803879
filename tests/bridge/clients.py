"""A toy episode with its bridges served in this process, and clients over each transport."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, TextContent

from cua_gym.bridge.serve import Served
from cua_gym.bridge.session import Bridge
from cua_gym.bridge.stdio import TOKEN_VARIABLE
from cua_gym.episode import Episode
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.record.layout import RunFolder
from tests.run.toy import make_suite, on_toy_computer

Way = Literal["modern", "legacy", "stdio"]
"""HTTP since protocol 2026-07-28, HTTP with sessions (2025-11-25), and `cua-gym bridge`."""

HTTP: tuple[Way, ...] = ("modern", "legacy")
WAYS: tuple[Way, ...] = ("modern", "legacy", "stdio")
QUICK = Settle(first_s=0.02, quiet_s=0.01, max_s=20.0)  # a busy host is no restless screen


@contextmanager
def toy_episode(
    folder: Path, *, tools: str = "both", steps: int = 100_000, seconds: float = 600.0
) -> Iterator[Episode]:
    """A prepared episode of the toy task."""
    task = on_toy_computer(make_suite(folder / "suite").task("type-word"))
    task = dataclasses.replace(task, tool_policy=tools)
    place = RunFolder.create(folder / "runs", "run", "toy", "outside")
    episode = Episode(
        task.variation(0), place, agent="outside", rule=QUICK, max_steps=steps, max_seconds=seconds
    )
    episode.prepare()
    try:
        yield episode
    finally:
        episode.close()


@contextmanager
def toy_served(folder: Path, **options: Any) -> Iterator[Served]:
    """The same, served."""
    with toy_episode(folder, **options) as episode, Served(episode) as served:
        yield served


def toy_of(served: Served) -> FakeMachine:
    """The machine behind the bridges."""
    machine = served.session.episode.machine
    assert isinstance(machine, FakeMachine)
    return machine


class Caller:
    """An MCP client of one bridge, for tests that are no coroutines."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool and wait for its answer."""
        return self.begin(tool, **arguments).result(60)

    def begin(self, tool: str, **arguments: Any) -> Future[CallToolResult]:
        """Call a tool; cancelling the future cancels the call."""
        return self.portal.start_task_soon(self.client.call_tool, tool, arguments)

    def tools(self) -> list[str]:
        """What the bridge has."""
        return [tool.name for tool in self.portal.call(self.client.list_tools).tools]


@contextmanager
def connect(served: Served, bridge: Bridge, way: Way) -> Iterator[Caller]:
    """A client that has connected."""
    origin, token = served.origin, served.session.token(bridge)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_client(origin, bridge, token, way)) as client,
    ):
        yield Caller(portal, client)


def bridge_command(origin: str, bridge: str) -> list[str]:
    """The stdio end as a client starts it."""
    return [sys.executable, "-m", "cua_gym.cli", "bridge", bridge, "--episode", origin]


def with_token(token: str) -> dict[str, str]:
    """The environment of a stdio end."""
    return {**os.environ, TOKEN_VARIABLE: token}


@asynccontextmanager
async def _client(origin: str, bridge: str, token: str, way: Way) -> AsyncIterator[Client]:
    if way == "stdio":
        program, *words = bridge_command(origin, bridge)
        parameters = StdioServerParameters(command=program, args=words, env=with_token(token))
        async with Client(parameters) as client:
            yield client
        return
    headers = {"Authorization": f"Bearer {token}"}
    mode = "auto" if way == "modern" else "legacy"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{origin}/{bridge}", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(answer: CallToolResult) -> str:
    """What a model reads."""
    last = answer.content[-1]
    assert isinstance(last, TextContent)
    return last.text


def facts_of(answer: CallToolResult) -> dict[str, Any]:
    """The structured content of an answer to something that was done."""
    assert not answer.is_error, text_of(answer)
    assert answer.structured_content is not None
    return answer.structured_content


def refusal_of(answer: CallToolResult) -> str:
    """Why something was not done."""
    assert answer.is_error, answer.structured_content
    return text_of(answer)


def picture_of(answer: CallToolResult) -> ImageContent:
    """The frame in an answer."""
    first = answer.content[0]
    assert isinstance(first, ImageContent)
    return first


def lines_of(served: Served) -> list[dict[str, Any]]:
    """The recorded steps after the first frame."""
    lines = served.session.episode.folder.traj.read_text().splitlines()
    return [json.loads(line) for line in lines][1:]
