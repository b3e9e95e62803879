"""Whole answers in each provider's shape, by their public references, and requests read back."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from PIL import Image

from cua_gym.agent.anthropic import AnthropicAgent
from cua_gym.agent.conversation import ModelAgent
from cua_gym.agent.openai import ChatAgent, ResponsesAgent

Body = dict[str, Any]
Do = tuple[str, Mapping[str, Any]]
"""What a model does, in our own words: an action's name and fields, or ``raw`` and a tool call."""

CLICK = ("click", {"x": 10, "y": 20})
DONE = ("submit", {"answer": "42"})
"""Calls that many tests make."""

_IDS = itertools.count(1)


def image(picture: str) -> Image.Image:
    """The picture that a model got."""
    return Image.open(io.BytesIO(base64.b64decode(picture)))


class Anthropic:
    """The Messages API."""

    make: Callable[[], ModelAgent] = AnthropicAgent
    path = "/v1/messages"
    base = ""
    overloaded = (
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    )

    def _message(self, content: list[Body], stop: str, **more: Any) -> Body:
        return {
            "id": f"msg_{next(_IDS):024}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 3,
                "output_tokens": 10,
                "service_tier": "standard",
            },
            **more,
        }

    tokens = (123, 10)

    def does(self, *dos: Do) -> Body:
        """Tool calls, with reasoning before them."""
        thinking = {"type": "thinking", "thinking": "", "signature": "EqQBCkYIBhgC"}
        return self._message([thinking, *(self._use(*do) for do in dos)], "tool_use")

    def _use(self, name: str, given: Mapping[str, Any]) -> Body:
        use: Body = {"type": "tool_use", "id": f"toolu_{next(_IDS):024}", "name": name}
        point = [given.get("x"), given.get("y")]
        match name:
            case "raw":
                return use | given
            case "type":
                return use | {"toolset_name": "computer", "input": {"text": given["text"]}}
            case "key":
                return use | {"toolset_name": "computer", "input": {"text": given["combo"]}}
            case "click":
                computer = {"toolset_name": "computer", "input": {"coordinate": point}}
                return use | {"name": "left_click"} | computer
            case "screenshot":
                return use | {"toolset_name": "computer", "input": {}}
            case "shell":
                return use | {"name": "bash", "input": {"command": given["command"]}}
        return use | {"input": dict(given)}

    def malformed(self) -> Body:
        """A call whose input is of another shape than the tool's."""
        call = {"name": "left_click", "toolset_name": "computer", "input": {"coordinate": "left"}}
        return self.does(("raw", call))

    def says(self, text: str) -> Body:
        """Words, the turn ended."""
        return self._message([{"type": "text", "text": text, "citations": None}], "end_turn")

    def refuses(self, reason: str) -> Body:
        """A refusal."""
        details = {"type": "refusal", "category": "cyber", "explanation": reason}
        return self._message([], "refusal", stop_details=details)

    def breaks_off(self) -> Body:
        """Cut off in the middle of a call."""
        return self._message([self._use("raw", {"name": "type", "input": {}})], "max_tokens")

    def wrong_types(self) -> Body:
        """Something like an answer."""
        return self._message([], "end_turn") | {"content": "hello"}

    def empty(self) -> Body:
        """Nothing said."""
        return self._message([], "end_turn")

    def pictures(self, body: Body) -> list[str]:
        """All screenshots of a request, PNG in base64."""
        blocks = [b for m in body["messages"] for b in m["content"] if m["role"] == "user"]
        inner = [c for b in blocks for c in b.get("content", [b])]
        return [c["source"]["data"] for c in inner if c["type"] == "image"]

    def first_text(self, body: Body) -> str:
        """What the conversation begins with."""
        return str(body["messages"][0]["content"][0]["text"])

    def results(self, body: Body) -> list[tuple[bool, str]]:
        """Whether each call of the last answer failed, and what was said of it."""
        blocks = [b for b in body["messages"][-1]["content"] if b["type"] == "tool_result"]
        return [
            (b.get("is_error", False), "".join(c.get("text", "") for c in b["content"]))
            for b in blocks
        ]

    def tools(self, body: Body) -> set[str]:
        """Names of the tools."""
        return {tool.get("name") or tool["type"] for tool in body["tools"]}


class Responses:
    """The Responses API with its computer tool."""

    make: Callable[[], ModelAgent] = ResponsesAgent
    path = "/v1/responses"
    base = "/v1"
    overloaded = (503, {"error": {"message": "Overloaded", "type": "server_error", "code": None}})
    tokens = (120, 10)

    def _response(self, output: list[Body], **more: Any) -> Body:
        return {
            "id": f"resp_{next(_IDS):048}",
            "object": "response",
            "created_at": 1_764_460_800,
            "status": "completed",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "model": "gpt-5.6-sol",
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {"effort": "medium", "summary": None},
            "store": False,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": {
                "input_tokens": 120,
                "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 0},
                "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 4},
                "total_tokens": 130,
            },
            "user": None,
            "metadata": {},
            **more,
        }

    def does(self, *dos: Do) -> Body:
        """One computer call for what follows one another on the screen; functions for the rest."""
        output: list[Body] = [
            {"id": f"rs_{next(_IDS):048}", "type": "reasoning", "summary": [],
             "encrypted_content": "gAAAAABo"}
        ]  # fmt: skip
        for kind, group in itertools.groupby(dos, lambda do: do[0] in _ON_SCREEN):
            if kind:
                output.append(self.computer_call([_openai(*do) for do in group]))
            else:
                output += [self._function(*do) for do in group]
        return self._response(output)

    def computer_call(self, actions: list[Body], **more: Any) -> Body:
        """A batch of actions."""
        return {
            "id": f"cu_{next(_IDS):048}",
            "type": "computer_call",
            "call_id": f"call_{next(_IDS):024}",
            "status": "completed",
            "actions": actions,
            "pending_safety_checks": [],
            **more,
        }

    def _function(self, name: str, given: Mapping[str, Any]) -> Body:
        call = {
            "id": f"fc_{next(_IDS):048}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_{next(_IDS):024}",
        }
        return call | (
            dict(given) if name == "raw" else {"name": name, "arguments": json.dumps(given)}
        )

    def malformed(self) -> Body:
        """A call whose input is of another shape than the tool's."""
        return self._response([self.computer_call([{"type": "click", "x": "left"}])])

    def _words(self, *parts: Body) -> Body:
        return {
            "id": f"msg_{next(_IDS):048}",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": list(parts),
        }

    def says(self, text: str) -> Body:
        """Words, the turn ended."""
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return self._response([self._words(part)])

    def refuses(self, reason: str) -> Body:
        """A refusal."""
        return self._response([self._words({"type": "refusal", "refusal": reason})])

    def breaks_off(self) -> Body:
        """Cut off in the middle of a call."""
        call = self._function(
            "raw", {"name": "submit", "arguments": '{"ans', "status": "incomplete"}
        )
        details = {"reason": "max_output_tokens"}
        return self._response([call], status="incomplete", incomplete_details=details)

    def wrong_types(self) -> Body:
        """Something like an answer."""
        return self._response([]) | {"output": "hello"}

    def empty(self) -> Body:
        """Nothing said."""
        return self._response([])

    def pictures(self, body: Body) -> list[str]:
        """All screenshots of a request, PNG in base64."""
        parts = [p for i in body["input"] for p in (i.get("output"), *(i.get("content") or []))]
        urls = [p["image_url"] for p in parts if isinstance(p, dict) and "image_url" in p]
        return [url.removeprefix("data:image/png;base64,") for url in urls]

    def first_text(self, body: Body) -> str:
        """What the conversation begins with."""
        return str(body["input"][0]["content"][0]["text"])

    def results(self, body: Body) -> list[tuple[bool, str]]:
        """Whether each call of the last answer failed, and what was said of it."""
        told: list[tuple[bool, str]] = []
        for item in reversed(body["input"]):
            if item.get("type") == "function_call_output":
                told.insert(0, (item["output"] not in ("OK",), item["output"]))
            elif item.get("type") == "computer_call_output":
                note = [p["text"] for p in body["input"][-1].get("content") or []
                        if item["call_id"] in p.get("text", "")]  # fmt: skip
                told.insert(0, (bool(note), note[0] if note else "OK"))
            elif item.get("role") != "user":
                break
        return told

    def tools(self, body: Body) -> set[str]:
        """Names of the tools."""
        return {tool.get("name") or tool["type"] for tool in body["tools"]}


class Chat:
    """Chat Completions with functions."""

    make: Callable[[], ModelAgent] = ChatAgent
    path = "/v1/chat/completions"
    base = "/v1"
    overloaded = Responses.overloaded
    tokens = (120, 10)

    def _completion(self, message: Body, finish: str) -> Body:
        return {
            "id": f"chatcmpl-{next(_IDS):024}",
            "object": "chat.completion",
            "created": 1_764_460_800,
            "model": "vision-model",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": None, "refusal": None} | message,
                    "logprobs": None,
                    "finish_reason": finish,
                }
            ],
            "usage": {"prompt_tokens": 120, "completion_tokens": 10, "total_tokens": 130},
            "system_fingerprint": None,
        }

    def does(self, *dos: Do) -> Body:
        """Tool calls."""
        return self._completion({"tool_calls": [self._call(*do) for do in dos]}, "tool_calls")

    def _call(self, name: str, given: Mapping[str, Any]) -> Body:
        if name == "screenshot":
            name, given = "wait", {"seconds": 0}
        if name != "raw":
            given = {"name": name, "arguments": json.dumps(given)}
        return {"id": f"call_{next(_IDS):024}", "type": "function", "function": dict(given)}

    def malformed(self) -> Body:
        """A call whose input is of another shape than the tool's."""
        return self.does(("raw", {"name": "click", "arguments": '{"x": 1, "y": '}))

    def says(self, text: str) -> Body:
        """Words, the turn ended."""
        return self._completion({"content": text}, "stop")

    def refuses(self, reason: str) -> Body:
        """A refusal."""
        return self._completion({"refusal": reason}, "stop")

    def breaks_off(self) -> Body:
        """Cut off in the middle of a call."""
        call = self._call("raw", {"name": "submit", "arguments": '{"ans'})
        return self._completion({"tool_calls": [call]}, "length")

    def wrong_types(self) -> Body:
        """Something like an answer."""
        return self._completion({}, "stop") | {"choices": "hello"}

    def empty(self) -> Body:
        """Nothing said."""
        return self._completion({"content": ""}, "stop")

    def pictures(self, body: Body) -> list[str]:
        """All screenshots of a request, PNG in base64."""
        parts = [p for m in body["messages"] if m["role"] == "user" for p in m["content"]]
        urls = [p["image_url"]["url"] for p in parts if p["type"] == "image_url"]
        return [url.removeprefix("data:image/png;base64,") for url in urls]

    def first_text(self, body: Body) -> str:
        """What the conversation begins with."""
        return str(body["messages"][0]["content"][0]["text"])

    def results(self, body: Body) -> list[tuple[bool, str]]:
        """Whether each call of the last answer failed, and what was said of it."""
        told: list[tuple[bool, str]] = []
        for message in reversed(body["messages"]):
            if message["role"] == "tool":
                text = message["content"]
                told.insert(0, (text.startswith("Error: "), text.removeprefix("Error: ")))
            elif message["role"] == "assistant":
                break
        return told

    def tools(self, body: Body) -> set[str]:
        """Names of the tools."""
        return {tool["function"]["name"] for tool in body["tools"]}


Wire = Anthropic | Responses | Chat
WIRES: tuple[Wire, ...] = (Anthropic(), Responses(), Chat())
_ON_SCREEN = {"type", "key", "click", "screenshot"}


def _openai(name: str, given: Mapping[str, Any]) -> Body:
    match name:
        case "type":
            return {"type": "type", "text": given["text"]}
        case "key":
            return {"type": "keypress", "keys": given["combo"].split("+")}
        case "click":
            return {"type": "click", "button": "left", "x": given["x"], "y": given["y"]}
    return {"type": name}
