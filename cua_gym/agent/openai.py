"""The agents on OpenAI's API, and on every endpoint that speaks like it.

The environment says which model, key and endpoint: ``CUA_GYM_OPENAI_MODEL``, and what the `openai`
package reads itself (``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, ...). ``CUA_GYM_OPENAI_API`` says how
it is spoken to:

- ``responses``, also when unset: the Responses API with its ``computer`` tool, for models that have
  it, and functions for shell and endings;
- ``chat``: Chat Completions, every action of ours a function. It asks for vision and function
  calls, no more; the model is told the picture's size and gives pixels of it.

What an answer leads to stands in `cua_gym.agent.conversation`; filtered content counts as refused,
and cut off is what stops for its length. Nothing is stored with the provider (``store=False``): the
conversation, with the model's encrypted reasoning, is sent again each time, so it can be bounded
and leaves nothing behind. **Safety checks** (``pending_safety_checks``) ask a person to agree; here
nobody is asked and all are acknowledged, because the computer is thrown away afterwards and reaches
no network.

Source: ``developers.openai.com/api/docs/guides``: tools-computer-use, images-vision; the types of
the `openai` package.
"""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from cua_gym import actions as a
from cua_gym.agent.base import TaskInfo
from cua_gym.agent.conversation import RETRIES, TIMEOUT_S, Answer, Call, ModelAgent, Result, sdk
from cua_gym.agent.tools import ENDINGS, function_tool, offered, tool_name
from cua_gym.errors import ActionError, AgentError
from cua_gym.interop.actions import from_openai

__all__ = ["ChatAgent", "ResponsesAgent", "openai_agent"]

MODEL = "gpt-5.6-sol"


def openai_agent() -> ModelAgent:
    """The agent that ``CUA_GYM_OPENAI_API`` asks for.

    Raises:
        AgentError: it asks for one that there is not.
    """
    kinds = {"responses": ResponsesAgent, "chat": ChatAgent}
    name = os.environ.get("CUA_GYM_OPENAI_API") or "responses"
    if name not in kinds:
        raise AgentError(f"CUA_GYM_OPENAI_API is {' or '.join(kinds)}, not {name!r}")
    return kinds[name]()


class _OpenAIAgent(ModelAgent):
    """What both have in common: the client, and our own actions as functions."""

    kinds: tuple[type[a.Action], ...]

    def start(self, task: TaskInfo) -> None:
        """Nothing is asked yet.

        Raises:
            AgentError: the `openai` package is not installed.
        """
        super().start(task)
        self.model = os.environ.get("CUA_GYM_OPENAI_MODEL") or MODEL
        self._sdk = sdk("openai")
        self._messages: list[dict[str, Any]] = []

    @abstractmethod
    def request(self) -> tuple[str, dict[str, Any]]:
        """Path and body of the request, without the model's name."""

    async def post(self) -> str:
        """One request."""
        path, body = self.request()
        body["model"] = self.model
        try:
            async with self._sdk.AsyncOpenAI(timeout=TIMEOUT_S, max_retries=RETRIES) as client:
                # Not `responses.create`: it takes 0.1 s to find a long conversation well-formed.
                return str(await client.post(path, cast_to=str, body=body))
        except self._sdk.OpenAIError as error:
            raise AgentError(str(error)) from None

    def function_call(self, id_: str, name: str, arguments: str) -> Call:
        """A call of one of our own functions."""

        def make() -> tuple[a.Action, ...]:
            if name not in map(tool_name, self.kinds):
                raise ActionError(f"there is no function {name!r:.80}")
            given = _object(arguments)
            if given is None:
                raise ActionError(f"the arguments are no JSON object: {arguments:.200}")
            action = a.action_from_dict({**given, "type": name})
            return (self.sight.to_native(action),)

        return Call(id_, f"{name} {arguments}", make)


class _Tokens(BaseModel):
    input_tokens: int = 0
    output_tokens: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


# Responses


class _Part(BaseModel):
    type: str
    text: str = ""
    refusal: str = ""


class _MessageItem(BaseModel):
    content: list[_Part]


class _FunctionItem(BaseModel):
    call_id: str
    name: str
    arguments: str


class _ComputerItem(BaseModel):
    call_id: str
    action: dict[str, Any] | None = None
    actions: list[dict[str, Any]] | None = None
    pending_safety_checks: list[dict[str, Any]] | None = None


class _Fault(BaseModel):
    message: str = ""
    reason: str = ""


class _Response(BaseModel):
    status: str = "completed"
    output: list[dict[str, Any]]
    error: _Fault | None = None
    incomplete_details: _Fault | None = None
    usage: _Tokens | None = None


class ResponsesAgent(_OpenAIAgent):
    """A model that has OpenAI's computer tool."""

    def start(self, task: TaskInfo) -> None:
        """Choose the tools that the task's policy allows."""
        super().start(task)
        shell = (a.Shell,) if task.action_space.tools != "gui" else ()
        self.kinds = (*shell, *ENDINGS)
        self._tools: list[dict[str, Any]] = [{"type": "computer"}] if self.sees else []
        self._tools += [{"type": "function", **function_tool(kind)} for kind in self.kinds]

    def fits(self, width: int, height: int) -> bool:
        """The limits of high detail: 2048 pixels, 2500 patches of 32x32."""
        return max(width, height) <= 2048 and -(-width // 32) * -(-height // 32) <= 2500

    def begin(self, text: str, picture: str | None) -> None:
        """See `ModelAgent.begin`."""
        content = [{"type": "input_text", "text": text}]
        if picture is not None:
            content.append(_input_image(picture))
        self._messages = [{"role": "user", "content": content}]

    def tell(self, results: Sequence[Result], picture: str | None) -> None:
        """A computer call's output is a picture; why it failed is said after it."""
        notes: list[dict[str, Any]] = []
        shown = False
        for result in results:
            told: dict[str, Any] = {"call_id": result.call.id}
            if result.call.raw is None:
                told |= {"type": "function_call_output", "output": result.text}
            else:
                shown = True
                shot = {"type": "computer_screenshot", "image_url": _url(result.picture or picture)}
                told |= {"type": "computer_call_output", "output": {**shot, "detail": "original"}}
                if result.call.raw:
                    told["acknowledged_safety_checks"] = result.call.raw
                if result.failed:
                    text = f"The computer call {result.call.id} failed: {result.text}"
                    notes.append({"type": "input_text", "text": text})
            self._messages.append(told)
        if picture is not None and not shown:
            notes.append(_input_image(picture))
        if notes:
            self._messages.append({"role": "user", "content": notes})

    def request(self) -> tuple[str, dict[str, Any]]:
        """To the Responses API."""
        return "/responses", {
            "input": self._messages,
            "tools": self._tools,
            "store": False,
            "include": ["reasoning.encrypted_content"],
        }

    def read(self, body: str) -> Answer:
        """See `ModelAgent.read`."""
        response = _Response.model_validate_json(body)
        if response.error is not None:
            raise AgentError(f"the model failed: {response.error.message}")
        why = response.incomplete_details.reason if response.incomplete_details else ""
        refusal = "filtered by the provider" if why == "content_filter" else None
        text, calls = "", []
        for item in response.output:
            if item.get("type") == "message":
                parts = _MessageItem.model_validate(item).content
                text += "".join(part.text for part in parts)
                refusal = "".join(part.refusal for part in parts) or refusal
            elif item.get("type") == "function_call":
                call = _FunctionItem.model_validate(item)
                calls.append(self.function_call(call.call_id, call.name, call.arguments))
            elif item.get("type") == "computer_call":
                calls.append(self._computer_call(item))
        if response.status != "completed":
            text, calls = "", []
        if calls:
            self._messages += response.output
        usage = response.usage or _Tokens()
        return Answer(tuple(calls), text, refusal, usage.input_tokens, usage.output_tokens)

    def _computer_call(self, item: dict[str, Any]) -> Call:
        if not self.sees:
            raise ValueError("a computer call, where no computer tool was offered")
        call = _ComputerItem.model_validate(item)
        given = call.actions or [call.action or {}]
        only_look = all(action.get("type") == "screenshot" for action in given)
        return Call(
            call.call_id,
            f"computer {json.dumps(given, ensure_ascii=False)}",
            lambda: from_openai(item, scale=self.sight.scale),
            "screen" if only_look else None,
            call.pending_safety_checks or [],
        )


# Chat Completions


class _Function(BaseModel):
    name: str
    arguments: str


class _ToolCall(BaseModel):
    id: str
    function: _Function


class _ChatMessage(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


class _Choice(BaseModel):
    message: _ChatMessage
    finish_reason: str | None = None


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Tokens | None = None


class ChatAgent(_OpenAIAgent):
    """Any model with vision and function calls."""

    def start(self, task: TaskInfo) -> None:
        """Offer every action that the task's policy allows."""
        super().start(task)
        self.kinds = offered(task.action_space.tools)

    def fits(self, width: int, height: int) -> bool:
        """The narrowest documented limits: 2048 pixels, 768 for the shorter edge."""
        return max(width, height) <= 2048 and min(width, height) <= 768

    def begin(self, text: str, picture: str | None) -> None:
        """See `ModelAgent.begin`."""
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if picture is not None:
            content.append(_image_url(picture))
        self._messages = [{"role": "user", "content": content}]

    def tell(self, results: Sequence[Result], picture: str | None) -> None:
        """Results are text in this API, so the picture comes as the user's."""
        for result in results:
            text = f"Error: {result.text}" if result.failed else result.text
            self._messages.append(
                {"role": "tool", "tool_call_id": result.call.id, "content": text}
            )  # fmt: skip
        if picture is not None:
            self._messages.append({"role": "user", "content": [_image_url(picture)]})

    def request(self) -> tuple[str, dict[str, Any]]:
        """To Chat Completions."""
        tools = [{"type": "function", "function": function_tool(kind)} for kind in self.kinds]
        return "/chat/completions", {"messages": self._messages, "tools": tools}

    def read(self, body: str) -> Answer:
        """See `ModelAgent.read`."""
        completion = _Completion.model_validate_json(body)
        if not completion.choices:
            raise ValueError("it has no choices")
        choice = completion.choices[0]
        message, raw = choice.message, choice.message.tool_calls or []
        text = message.content or ""
        refusal = message.refusal
        if choice.finish_reason == "content_filter":
            refusal = refusal or text or "filtered by the provider"
        if choice.finish_reason == "length":
            text, raw = "", []
        calls = []
        for given in raw:
            call = _ToolCall.model_validate(given)
            calls.append(self.function_call(call.id, call.function.name, call.function.arguments))
            if _object(call.function.arguments) is None:
                given["function"]["arguments"] = "{}"  # servers refuse to read their own nonsense
        if calls:
            self._messages.append(
                {"role": "assistant", "content": message.content, "tool_calls": raw}
            )  # fmt: skip
        usage = completion.usage or _Tokens()
        return Answer(tuple(calls), text, refusal, usage.prompt_tokens, usage.completion_tokens)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _url(picture: str | None) -> str:
    return f"data:image/png;base64,{picture}"


def _input_image(picture: str) -> dict[str, Any]:
    return {"type": "input_image", "image_url": _url(picture), "detail": "high"}


def _image_url(picture: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": _url(picture), "detail": "high"}}
