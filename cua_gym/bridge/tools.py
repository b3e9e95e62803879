"""An MCP server made of plain functions.

Responsible for what every call has in common: arguments are checked against the function's own
signature, unknown ones refused; the function runs in a thread; a cancelled call is asked to stop
and waited for; long ones tell progress; every fault becomes an answer that says what to do. What a
tool does, and with what rights, is its function's business.
"""

from __future__ import annotations

import base64
import difflib
import importlib.metadata
import inspect
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_type_hints

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from cua_gym.bridge.access import GONE, asked
from cua_gym.bridge.pictures import Picture
from cua_gym.bridge.session import Bridge, Call, Session
from cua_gym.errors import CuaGymError
from cua_gym.steps import EpisodeOver, Step
from cua_gym.turns import Stop

__all__ = ["OURS", "Reply", "Tool", "budget", "fault", "fitting", "make_server"]

CALLS = 40
"""Calls of one bridge under way or waiting for their turn; each has a thread. More wait for one."""

ANSWER_BYTES = (1 << 20) - 8192
"""Longest answer, with room for the protocol's own words: 1 MiB is the most that the Python SDK's
client takes in one event, and a longer one ends its connection."""

OURS = "the attempt cannot go on, by no fault of yours; it is over"
"""What an agent is told of a lost machine or a full disk; the cause is the host's affair."""

PROGRESS_S = 5.0
"""How often a call that takes long says so, to clients that asked to be told."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers.

    Attributes:
        text: for the model to read.
        facts: the same as structured content; plain JSON values.
        picture: shown with it.
        error: whether what was asked for was not done.
    """

    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    picture: Picture | None = None
    error: bool = False


class Tool:
    """A function ``(call, **arguments) -> Reply`` with its name, description and schema."""

    def __init__(self, function: Callable[..., Reply]) -> None:
        self.name = function.__name__
        self._function = function
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if p.default is inspect.Parameter.empty else p.default)
            for name, p in list(inspect.signature(function).parameters.items())[1:]
        }
        self._arguments: type[BaseModel] = create_model(
            self.name, __config__=ConfigDict(extra="forbid"), **fields
        )
        schema = self._arguments.model_json_schema()
        schema.pop("title", None)
        self.schema: dict[str, Any] = schema
        self.description = inspect.cleandoc(function.__doc__ or "")
        self._switches = {
            n for n, f in self._arguments.model_fields.items() if f.annotation is bool
        }

    def parse(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The function's keyword arguments.

        Raises:
            ValueError: names each argument that is wrong, absent or unknown.
        """
        try:
            parsed = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, e['loc']))}: {e['msg']}"
                for e in error.errors(include_url=False)
            )
            known = ", ".join(self._arguments.model_fields) or "no arguments"
            raise ValueError(f"{self.name} takes {known}. {faults}") from error
        for name, value in arguments.items():
            if name not in self._switches and _holds_bool(value):  # to Pydantic it is a number
                raise ValueError(f"{self.name}: {name} cannot be true or false")
        try:
            json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:  # an infinity, or half a character
            raise ValueError(f"{self.name}: no JSON in UTF-8 can hold this: {error}") from error
        return {name: getattr(parsed, name) for name in self._arguments.model_fields}

    def run(self, call: Call, arguments: Mapping[str, Any]) -> Reply:
        """Call the function; what it raises on purpose becomes its answer.

        What it raises otherwise is a fault of ours, and no agent is judged by it.
        """
        try:
            return self._function(call, **arguments)
        except EpisodeOver:
            return Reply("the episode is over; nothing was done", error=True)
        except CuaGymError as error:
            return Reply(str(error), error=True)
        except Exception as error:
            call.session.broke(f"{self.name}: {type(error).__name__}: {error}")
            return Reply(f"{self.name} failed by a fault of ours; the episode is over", error=True)
        finally:
            call.stop.over()


def make_server(
    session: Session, bridge: Bridge, tools: Sequence[Callable[..., Reply]], instructions: str
) -> Server[Any]:
    """The MCP server of one bridge of one episode."""
    box = {tool.name: tool for tool in map(Tool, tools)}
    # Of its own: a cancellation needs a thread too, and must get one past calls that wait.
    threads = anyio.CapacityLimiter(CALLS)

    async def list_tools(
        ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        session.listed(bridge)
        return types.ListToolsResult(
            tools=[
                types.Tool(name=t.name, description=t.description, input_schema=t.schema)
                for t in box.values()
            ]
        )

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = box.get(params.name)
        if tool is None:
            near = difflib.get_close_matches(params.name, box, n=2) or sorted(box)
            return _result(
                Reply(f"no tool is called {params.name!r}; try {', '.join(near)}", error=True)
            )
        try:
            arguments = tool.parse(params.arguments or {})
        except ValueError as error:
            return _result(Reply(str(error), error=True))
        stop = Stop()
        gone = Stop() if ctx.request is None else ctx.request.scope.get(GONE, stop)
        gone.then(stop.ask)
        call = session.call(bridge, tool.name, params.arguments or {}, stop)
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(_ask_when_cancelled, stop)
                beside.start_soon(_tell_progress, ctx, tool.name)
                reply = await anyio.to_thread.run_sync(
                    partial(tool.run, call, arguments), limiter=threads
                )
                result = _result(reply)
                beside.cancel_scope.cancel()
        finally:
            session.close_call(call)
            gone.over()
        return result

    return Server(
        f"cua-gym-{bridge}",
        version=importlib.metadata.version("cua-gym"),
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: box[name].schema if name in box else None,
    )


async def _ask_when_cancelled(stop: Stop) -> None:
    # The thread itself cannot be cancelled; the call is over when it has stopped.
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await asked(stop)


async def _tell_progress(ctx: ServerRequestContext[Any], tool: str) -> None:
    began = time.monotonic()
    while True:
        await anyio.sleep(PROGRESS_S)
        seconds = time.monotonic() - began
        await ctx.session.report_progress(seconds, None, f"{tool} has run for {seconds:.0f} s")


def fault(step: Step) -> str | None:
    """What an agent is told if a step was not done; None if it was."""
    if "error" in step.info:
        return OURS
    wrong = step.info.get("action_error")
    return None if wrong is None else str(wrong)


def budget(step: Step) -> dict[str, Any]:
    """What is left after a step, and the limit that it reached, if any."""
    facts = {
        "steps_left": step.info["steps_left"],
        "seconds_left": round(step.info["seconds_left"], 1),
    }
    return facts | ({"limit": step.info["limit"]} if "limit" in step.info else {})


def fitting(items: Sequence[Any], limit_bytes: int) -> Sequence[Any]:
    """The longest beginning that takes at most ``limit_bytes`` in JSON."""
    for number, item in enumerate(items):
        limit_bytes -= len(json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")) + 2
        if limit_bytes < 0:
            return items[:number]
    return items


def _holds_bool(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, list) and any(map(_holds_bool, value)))


def _result(reply: Reply) -> types.CallToolResult:
    text = reply.text or json.dumps(reply.facts, ensure_ascii=False)
    # What a guest says may hold lone surrogates, which no message can carry.
    raw = json.dumps([text, dict(reply.facts)], ensure_ascii=False).encode("utf-8", "replace")
    size = len(raw) + (len(reply.picture.data) * 4 // 3 if reply.picture else 0)
    if size > ANSWER_BYTES:
        return _result(Reply(f"the answer has {size} bytes, too many; ask for less", error=True))
    text, facts = json.loads(raw)
    content: list[types.ContentBlock] = []
    if reply.picture is not None:
        data = base64.b64encode(reply.picture.data).decode()
        content.append(types.ImageContent(type="image", data=data, mime_type=reply.picture.mime))
    content.append(types.TextContent(type="text", text=text))
    return types.CallToolResult(
        content=content, structured_content=facts or None, is_error=reply.error
    )
