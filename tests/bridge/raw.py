"""Requests byte by byte, as clients send them that nobody should trust."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2

from cua_gym.bridge.serve import Served
from cua_gym.bridge.session import Bridge
from tests.bridge.clients import Way

_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_VERSION = {"modern": "2026-07-28", "legacy": "2025-11-25"}
_TYPES = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_BEGIN: Mapping[str, dict[str, Any]] = {
    "modern": {"method": "server/discover", "params": {"_meta": _META}},
    "legacy": {
        "method": "initialize",
        "params": {
            "protocolVersion": _VERSION["legacy"],
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    },
}


class Raw:
    """One client's HTTP connection."""

    def __init__(self, http: httpx2.Client, url: str, way: Way) -> None:
        self.http = http
        self.url = url
        self.way = way
        self.headers: dict[str, str] = dict(_TYPES)

    def begin(self) -> httpx2.Response:
        """The first question of a client."""
        message = {"jsonrpc": "2.0", "id": 1, **_BEGIN[self.way]}
        headers = dict(self.headers)
        if self.way == "modern":
            headers |= {"mcp-protocol-version": _VERSION["modern"], "mcp-method": message["method"]}
        answer = self.http.post(self.url, json=message, headers=headers)
        if answer.status_code == 200:
            self.headers["mcp-protocol-version"] = _VERSION[self.way]
            if session := answer.headers.get("mcp-session-id"):
                self.headers["mcp-session-id"] = session
                done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                self.http.post(self.url, json=done, headers=self.headers)
        return answer

    def body(self, tool: str, arguments: Any, number: int = 2) -> bytes:
        """A call; arguments may be what no client's library would send, as ASCII."""
        params = {"name": tool, "arguments": arguments}
        if self.way == "modern":
            params["_meta"] = _META
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        return json.dumps(message).encode()

    def with_call(self, tool: str) -> dict[str, str]:
        """The headers of a call."""
        named = {"mcp-method": "tools/call", "mcp-name": tool} if self.way == "modern" else {}
        return self.headers | named

    def post(self, body: bytes, tool: str = "status") -> httpx2.Response:
        """Send a body as a call of a tool."""
        return self.http.post(self.url, content=body, headers=self.with_call(tool))

    def call(self, tool: str, arguments: Any) -> dict[str, Any]:
        """The JSON-RPC answer to a call."""
        return message_of(self.post(self.body(tool, arguments), tool))

    def drop(self, tool: str, arguments: Any) -> socket.socket:
        """Send a call over a connection of its own, to be closed before the answer."""
        where = urlsplit(self.url)
        body = self.body(tool, arguments)
        headers = {
            "Host": where.netloc,
            "Authorization": str(self.http.headers["authorization"]),
            "Content-Length": str(len(body)),
            **self.with_call(tool),
        }
        lines = [f"POST {where.path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        wire = socket.create_connection((str(where.hostname), where.port or 0))
        wire.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return wire


@contextmanager
def raw(served: Served, bridge: Bridge, way: Way, token: str | None = None) -> Iterator[Raw]:
    """A client that has said nothing yet."""
    secret = served.session.token(bridge) if token is None else token
    with httpx2.Client(
        headers={"Authorization": f"Bearer {secret}"}, timeout=60, trust_env=False
    ) as http:
        yield Raw(http, served.url(bridge), way)


def message_of(answer: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message of an answer, alone or as the last event of a stream."""
    text = answer.text
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        events = [line[5:] for line in text.splitlines() if line.startswith("data:")]
        text = next(event for event in reversed(events) if event.strip())
    message: dict[str, Any] = json.loads(text)
    return message
