"""The stdio end of a bridge, for MCP clients that speak only over standard input and output.

It forwards to the HTTP end, where the episode lives; a cancelled call is cancelled there. Standard
output carries protocol messages alone. It ends when its client closes standard input, or is killed;
the server sees it go by a request that stays open as long as this process lives.
"""

from __future__ import annotations

import json
import os
import select
import signal
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.abc
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from cua_gym.errors import CuaGymError

__all__ = ["TOKEN_VARIABLE", "Unreachable", "serve_stdio", "split_link"]

TOKEN_VARIABLE = "CUA_GYM_TOKEN"
_LISTEN_S = 1.0
_LONG_S = 900.0
"""Longer than any call takes; the server's own limits end calls."""


class Unreachable(CuaGymError):
    """No episode answers there, or it is over, or another client has the bridge."""


def split_link(link: str) -> tuple[str, str]:
    """``scheme://host:port`` and the token of a link as `cua-gym serve` prints it.

    The token stands behind ``#`` or, better, in ``CUA_GYM_TOKEN``: a command line can be seen by
    everyone on a machine.

    Raises:
        ValueError: no such link, or no token.
    """
    parts = urlsplit(link)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(f"{link!r} is no link like http://127.0.0.1:8000; cua-gym serve prints it")
    token = parts.fragment or os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise ValueError(f"no token: set {TOKEN_VARIABLE}, or put it behind # in the link")
    return f"{parts.scheme}://{parts.netloc}", token


def serve_stdio(url: str, token: str) -> None:
    """Serve on standard input and output what is at ``url`` until the client goes.

    Raises:
        Unreachable: there is nothing to forward to.
    """
    # Python's own way would wait for the thread that reads standard input; nothing is held here.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_forward, url, token)
    except BaseExceptionGroup as group:
        if group.split(BrokenPipeError)[1] is None:
            return  # the client went while it was being answered
        expected, rest = group.split((Unreachable, MCPError, httpx2.HTTPError))
        if expected is None or rest is not None:
            raise
        error: BaseException = expected
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, Unreachable):
            raise error from group
        raise Unreachable(
            f"{url} lets nobody in: another client has it, it is over, or it is no bridge"
        ) from group


async def _forward(url: str, token: str) -> None:
    timeout = httpx2.Timeout(30.0, read=_LONG_S)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http:
        await _knock(http, url)
        async with anyio.create_task_group() as beside:
            beside.start_soon(_end_unheard, os.dup(1))
            await beside.start(_stay, http, f"{url}/presence")
            remote, lost = await beside.start(_keep, http, url)
            async with stdio_server() as (incoming, outgoing):
                server = _mirror(remote, lost)
                await server.run(incoming, outgoing, server.create_initialization_options())
            beside.cancel_scope.cancel()


async def _end_unheard(output: int) -> None:
    """End when nobody reads our answers any more, though standard input stays open."""
    reader = select.poll()
    reader.register(output, 0)  # errors and hang-ups are always told
    while not reader.poll(0):
        await anyio.sleep(_LISTEN_S)
    os._exit(0)  # a thread still reads standard input, and nothing else is held here


async def _knock(http: httpx2.AsyncClient, url: str) -> None:
    """Find out in plain words what would be wrong."""
    try:
        answer = await http.get(f"{url}/presence", params={"look": "1"})
    except httpx2.HTTPError as error:
        raise Unreachable(f"no episode answers at {url}: {error}") from error
    if answer.status_code == 404:
        raise Unreachable(f"there is no such bridge: {url}; the task's tool policy decides")
    if answer.status_code != 200:
        raise Unreachable(f"{url} answers {answer.status_code}: {answer.text[:200]}")


async def _stay(
    http: httpx2.AsyncClient,
    url: str,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    try:
        async with http.stream("GET", url) as answer:
            task_status.started()
            async for _ in answer.aiter_raw():
                pass
    except httpx2.HTTPError:
        pass  # the server went; the next call says so to the client


async def _keep(
    http: httpx2.AsyncClient,
    url: str,
    *,
    task_status: anyio.abc.TaskStatus[tuple[Client, anyio.Event]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """A client of the HTTP end, and an event for its loss.

    In a task of its own: a server that dies ends it, and the answers that say so must still be
    written. Standard input is read by a thread, which nothing but its end could end.
    """
    lost = anyio.Event()
    began = False
    try:
        async with Client(streamable_http_client(url, http_client=http)) as remote:
            task_status.started((remote, lost))
            began = True
            await anyio.sleep_forever()
    except BaseExceptionGroup as group:
        _, rest = group.split((MCPError, httpx2.HTTPError))
        if not began or rest is not None:
            raise
    finally:
        lost.set()


def _mirror(remote: Client, lost: anyio.Event) -> Server[Any]:
    async def list_tools(
        ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await remote.list_tools()

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        async def tell(progress: float, total: float | None, message: str | None) -> None:
            await ctx.session.report_progress(progress, total, message)

        try:
            # What cannot be written as JSON in UTF-8, such as NaN, would end the connection.
            json.dumps(params.arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            return _failed(f"the arguments cannot be sent on: {error}")
        if lost.is_set():
            return _failed("the server of this episode has ended")
        try:
            return await remote.call_tool(
                params.name, params.arguments or {}, progress_callback=tell
            )
        except MCPError as error:
            return _failed(f"no answer ({error}); perhaps the episode is over or its server ended")

    info = remote.server_info
    return Server(
        info.name if info else "cua-gym",
        version=info.version if info else "",
        instructions=remote.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
