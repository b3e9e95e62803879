"""The agent on Anthropic's Messages API: its computer toolset, its bash tool, and our endings.

The environment says which model, key and endpoint: ``CUA_GYM_ANTHROPIC_MODEL``, and what the
`anthropic` package reads itself (``ANTHROPIC_API_KEY``, ``ANTHROPIC_BASE_URL``, ...). What an
answer leads to stands in `cua_gym.agent.conversation`; a refusal's reason comes from
``stop_details``, and cut off is what stops for ``max_tokens``, ``pause_turn`` or a full context
window.

The toolset is ``computer_toolset_20260801``, which needs no beta header and is the only computer
tool that the newest models take. A batch of calls is done in order; each screenshot in it is the
screen of that moment, and the last result always comes with one.

Source: ``platform.claude.com/docs``: agents-and-tools/tool-use/computer-use-tool,
build-with-claude/vision-coordinates, build-with-claude/preserved-thinking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from cua_gym import actions as a
from cua_gym.agent.base import TaskInfo
from cua_gym.agent.conversation import RETRIES, TIMEOUT_S, Answer, Call, ModelAgent, Result, sdk
from cua_gym.agent.sight import Box
from cua_gym.agent.tools import ENDINGS, function_tool, tool_name
from cua_gym.errors import ActionError, AgentError
from cua_gym.interop.actions import from_anthropic

__all__ = ["AnthropicAgent"]

MODEL = "claude-sonnet-5-5"
MAX_TOKENS = 16_000
"""Of one answer, reasoning included."""

BASH_S = 120.0
"""A command's time; the bash tool has no word for it."""

_BOX: TypeAdapter[Box] = TypeAdapter(Box)
_CUT_OFF = {"max_tokens", "pause_turn", "model_context_window_exceeded"}


class _Usage(BaseModel):
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _StopDetails(BaseModel):
    category: str | None = None
    explanation: str | None = None


class _Message(BaseModel):
    content: list[dict[str, Any]]
    stop_reason: str | None
    stop_details: _StopDetails | None = None
    usage: _Usage


class _ToolUse(BaseModel):
    id: str
    name: str
    input: dict[str, Any]
    toolset_name: str | None = None


class AnthropicAgent(ModelAgent):
    """A model of Anthropic's at the computer."""

    def start(self, task: TaskInfo) -> None:
        """Choose the tools that the task's policy allows.

        Raises:
            AgentError: the `anthropic` package is not installed.
        """
        super().start(task)
        self.model = os.environ.get("CUA_GYM_ANTHROPIC_MODEL") or MODEL
        self._sdk = sdk("anthropic")
        policy = task.action_space.tools
        self._tools: list[dict[str, Any]] = []
        if policy != "shell":
            self._tools.append({"type": "computer_toolset_20260801"})
        if policy != "gui":
            self._tools.append({"type": "bash_20250124", "name": "bash"})
        for kind in ENDINGS:
            tool = function_tool(kind)
            tool["input_schema"] = tool.pop("parameters")
            self._tools.append(tool)

    def fits(self, width: int, height: int) -> bool:
        """The standard tier's limits, which every model keeps: 1568 pixels, 1568 patches of 28x28.

        Larger ones of newer models are left unused, so that coordinates are right with any model.
        """
        columns, rows = -(-width // 28), -(-height // 28)
        return max(columns, rows) * 28 <= 1568 and columns * rows <= 1568

    def begin(self, text: str, picture: str | None) -> None:
        """Text first: with it, the model looks for the right things in the picture."""
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if picture is not None:
            content.append(_image(picture))
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": content}]

    def tell(self, results: Sequence[Result], picture: str | None) -> None:
        """One ``tool_result`` for each ``tool_use``; errors may hold no picture."""
        content = [_result(result) for result in results]
        if picture is not None and results[-1].picture is None:
            content.append(_image(picture))
        self._messages.append({"role": "user", "content": content})

    async def post(self) -> str:
        """One request to the Messages API."""
        body = {
            "model": self.model,
            "max_tokens": MAX_TOKENS,
            "tools": self._tools,
            "messages": self._messages,
            "cache_control": {"type": "ephemeral"},
        }
        try:
            async with self._sdk.AsyncAnthropic(timeout=TIMEOUT_S, max_retries=RETRIES) as client:
                # Not `messages.create`: it takes 0.1 s to find a long conversation well-formed.
                return str(await client.post("/v1/messages", cast_to=str, body=body))
        except (self._sdk.AnthropicError, TypeError) as error:  # TypeError: no credentials found
            raise AgentError(str(error)) from None

    def read(self, body: str) -> Answer:
        """See `ModelAgent.read`."""
        message = _Message.model_validate_json(body)
        text = "".join(str(b.get("text", "")) for b in message.content if b.get("type") == "text")
        uses = [
            _ToolUse.model_validate(b) for b in message.content if b.get("type") == "tool_use"
        ]  # fmt: skip
        refusal = None
        if message.stop_reason == "refusal":
            details = message.stop_details or _StopDetails()
            refusal = details.explanation or details.category or text or "no reason given"
        elif message.stop_reason in _CUT_OFF:
            text, uses = "", []
        if uses:
            self._messages.append({"role": "assistant", "content": message.content})
        usage = message.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Answer(
            tuple(map(self._call, uses)),
            text,
            refusal,
            usage.input_tokens + cached,
            usage.output_tokens,
        )

    def _call(self, use: _ToolUse) -> Call:
        def make() -> tuple[a.Action, ...]:
            if use.toolset_name == "computer":
                given = {**use.input, "action": use.name}
                return from_anthropic(given, cursor=self.cursor, scale=self.sight.scale)
            if use.name == "bash":
                command = use.input.get("command")
                if not isinstance(command, str):
                    raise ActionError("bash takes a command; each runs in a new shell")
                return (a.Shell(command, BASH_S),)
            if use.name not in map(tool_name, ENDINGS):
                raise ActionError(f"there is no tool {use.name!r:.80}")
            return (a.action_from_dict({**use.input, "type": use.name}),)

        said = f"{use.name} {json.dumps(use.input, ensure_ascii=False)}"
        return Call(use.id, said, make, _look(use), use.toolset_name)


def _look(use: _ToolUse) -> Any:
    if use.toolset_name != "computer":
        return None
    if use.name == "zoom":
        try:
            return _BOX.validate_python(use.input.get("region"))
        except ValidationError:
            return "screen"  # it will be refused before anything is shown
    return {"screenshot": "screen", "cursor_position": "cursor"}.get(use.name)


def _image(picture: str) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": picture}
    return {"type": "image", "source": source}


def _result(result: Result) -> dict[str, Any]:
    told: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call.id}
    if result.call.raw is not None:
        told["toolset_name"] = result.call.raw
    if result.failed:
        told["is_error"] = True
    text = {"type": "text", "text": result.text}
    return {**told, "content": [text if result.picture is None else _image(result.picture)]}
