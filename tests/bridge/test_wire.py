"""What is no protocol is answered with an error or not at all; the server goes on."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from cua_gym.bridge.serve import Served
from tests.bridge.clients import HTTP, Way, lines_of, toy_of, toy_served
from tests.bridge.raw import Raw, raw

DEEP = b"[" * 100_000 + b"]" * 100_000
GARBAGE = [
    b"",
    b"\0",
    b"garbage",
    b"\xff\xfe log\n",
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "\xff"}}',
    b"null",
    b"7",
    b'"text"',
    b"[]",
    b"{}",
    b"[[]]",
    DEEP,
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": ' + DEEP + b"}",
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call"',
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call"}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": []}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 7}}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
    b'{"jsonrpc": "1.0", "id": 5, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": 5, "method": "nosuch"}',
    b'{"jsonrpc": "2.0", "id": 5, "method": 7}',
    b'{"jsonrpc": "2.0", "id": 5, "result": {}}',
    b'{"jsonrpc": "2.0", "method": "notifications/nosuch"}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}',
    b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}',
    b'[{"jsonrpc": "2.0", "id": 5, "method": "tools/list"}]',
    b'{"jsonrpc": "2.0", "id": 1' + b"0" * 5000 + b', "method": "tools/list"}',
    b"x" * 5_000_000,
]
ODD: list[tuple[str, Any]] = [
    ("click", {"x": float("nan"), "y": 1}),
    ("click", {"x": float("inf"), "y": 1}),
    ("click", {"x": 10**400, "y": 1}),
    ("type", {"text": "\ud800"}),
    ("type", {"\ud800": "x"}),
    ("\ud800", {}),
    ("key", {"combo": "\udfff"}),
    ("wait", {"seconds": float("-inf")}),
    ("clipboard_set", {"text": "\ud83d"}),
    ("click", [1, 2]),
    ("click", "x"),
    ("click", 7),
    ("click", {"x": [[[[[[[[1]]]]]]]], "y": {"a": {}}}),
]


@pytest.fixture(scope="module", params=HTTP)
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, Raw]]:
    """One that has begun well, in each era of the protocol."""
    way: Way = request.param
    with (
        toy_served(tmp_path_factory.mktemp("wire")) as served,
        raw(served, "desktop", way) as client,
    ):
        assert client.begin().status_code == 200
        yield served, client


def works(served: Served, client: Raw) -> None:
    """The next call is answered, and nobody was judged."""
    answer = client.call("screen_size", {})
    assert answer["result"]["structuredContent"]["width"] == 640
    assert served.session.episode.outcome is None
    assert not served.session.ended.is_set()


@pytest.mark.parametrize("body", GARBAGE, ids=lambda body: repr(body[:60]))
def test_a_body_that_is_no_call(client: tuple[Served, Raw], body: bytes) -> None:
    """An error, and nothing was done."""
    served, sender = client
    toy_of(served).events.clear()
    answer = sender.post(body)
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        assert "error" in answer.text or "isError" in answer.text, answer.text
    works(served, sender)
    assert not toy_of(served).events


@pytest.mark.parametrize(("tool", "arguments"), ODD, ids=ascii)
def test_arguments_that_are_none(client: tuple[Served, Raw], tool: str, arguments: Any) -> None:
    """An error, and nothing was done; no such call leaves an attempt unscored."""
    served, sender = client
    toy_of(served).events.clear()
    name = tool.encode("ascii", "backslashreplace").decode()
    answer = sender.post(sender.body(tool, arguments), name)
    assert answer.status_code < 500, answer.text
    assert "error" in answer.text or '"isError":true' in answer.text
    works(served, sender)
    assert not toy_of(served).events


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Accept": "text/html"},
        {"mcp-protocol-version": "1999-01-01"},
        {"mcp-protocol-version": "\xff"},
        {"mcp-session-id": "nosuch"},
        {"Content-Encoding": "gzip"},
    ],
    ids=repr,
)
def test_headers_that_say_something_else(
    client: tuple[Served, Raw], headers: dict[str, str]
) -> None:
    """Answered one way or another, and the next call works."""
    served, sender = client
    sent = {**sender.with_call("status"), **headers}
    body = sender.body("status", {})
    encoded = {name: value.encode("latin-1") for name, value in sent.items()}
    assert sender.http.post(sender.url, content=body, headers=encoded).status_code < 500
    works(served, sender)


@pytest.mark.parametrize(
    "words",
    [
        b"\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /desktop HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /desktop HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n{",
        b"POST /desktop HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"x" * 100_000,
        b"GET /desktop HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
        b"GET /desktop HTTP/1.1\r\nHost: \xff\r\nOrigin: \xff\r\nAuthorization: \xff\xfe\r\n\r\n",
        b"GET /desktop HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n\r\n",
    ],
    ids=lambda words: repr(words[:60]),
)
def test_what_is_no_request(client: tuple[Served, Raw], words: bytes) -> None:
    """Refused or left alone; who came well goes on."""
    served, sender = client
    where = urlsplit(served.origin)
    with socket.create_connection((str(where.hostname), where.port or 0)) as wire:
        try:
            wire.sendall(words)
            wire.shutdown(socket.SHUT_WR)
            wire.settimeout(10)
            first = wire.recv(1000)
        except (ConnectionError, TimeoutError):
            first = b""
    assert first[9:10] in (b"", b"4"), first
    works(served, sender)


def test_an_unfinished_body_does_not_hold_up_others(client: tuple[Served, Raw]) -> None:
    """Half a call that never comes to its end is nobody's turn."""
    served, sender = client
    where = urlsplit(served.origin)
    body = sender.body("click", {"x": 1, "y": 1})
    head = [f"{name}: {value}" for name, value in sender.with_call("click").items()]
    with socket.create_connection((str(where.hostname), where.port or 0)) as wire:
        lines = [
            "POST /desktop HTTP/1.1",
            f"Host: {where.netloc}",
            f"Authorization: {sender.http.headers['authorization']}",
            f"Content-Length: {len(body)}",
            *head,
        ]
        wire.sendall("\r\n".join([*lines, "", ""]).encode() + body[:-5])
        works(served, sender)
    works(served, sender)


def test_none_of_this_stands_in_the_record(client: tuple[Served, Raw]) -> None:
    """Only calls that were understood are steps."""
    served, _ = client
    names = {line["call"]["tool"] for line in lines_of(served)}
    assert names <= {"screen_size", "status", "click", "wait"}
    for line in lines_of(served):
        json.dumps(line)
