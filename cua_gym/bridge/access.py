"""Who may come in over HTTP: this machine only, with the right token, one client at a time.

An ASGI middleware around everything that is served. Host and Origin are checked against DNS
rebinding and foreign pages; a bearer token opens one bridge of one episode; a second client of a
bridge is refused while the first is there. What a client may do inside is the bridges' business.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import get_args

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cua_gym.bridge.session import Bridge, Session
from cua_gym.turns import Stop

__all__ = ["GONE", "Guard", "Lease", "Peer", "asked"]

Peer = tuple[str, int]

GONE = "cua_gym.gone"
"""In the scope of a request: a `Stop` that is asked when its client goes away before the answer."""

_PARALLEL_S = 2.0
"""A client that asks two things at once opens a second connection because the first is busy, and
may be answered on the first before it has asked on the second."""

_VANISH_S = 0.3
"""A client's old connection may be closed a moment after its new one is opened."""


class Lease:
    """Which client has a bridge.

    Clients since protocol 2026-07-28 have no session, so a client is told by its connections and,
    where there is one, its session's name. It begins with ``initialize`` or ``server/discover``.
    It has the bridge while one of its connections is open; then the next that begins gets it.

    Args:
        open_now: the peers of all connections that are open now.
    """

    def __init__(self, open_now: Callable[[], set[Peer]]) -> None:
        self._open_now = open_now
        self._peers: set[Peer] = set()
        self._refused: set[Peer] = set()
        self._session: str | None = None
        self._busy = 0
        self._answered = 0.0

    async def admit(self, peer: Peer, session: str | None, begins: bool) -> bool:
        """Whether a request may pass."""
        deadline = time.monotonic() + _VANISH_S
        while not self._admits(peer, session, begins):
            if time.monotonic() >= deadline:
                self._refused = (self._refused & self._open_now()) | {peer}
                return False
            await anyio.sleep(0.02)
        if not self._here() and begins:
            self._session = None
        self._peers = (self._peers & self._open_now()) | {peer}
        return True

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A question is under way."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._answered = time.monotonic()

    def quiet_for(self, seconds: float) -> bool:
        """Whether no question is under way or was so recently."""
        return not self._busy and time.monotonic() - self._answered > seconds

    def named(self, session: str) -> None:
        """The client that has the bridge got a session."""
        self._session = session

    def _here(self) -> bool:
        return bool(self._peers & self._open_now())

    def _admits(self, peer: Peer, session: str | None, begins: bool) -> bool:
        if peer in self._peers or not self._here():
            return True
        if session is not None:
            return session == self._session
        # A client that asks two things at once needs two connections; an idle one does not.
        return not begins and peer not in self._refused and not self.quiet_for(_PARALLEL_S)


class Guard:
    """The middleware.

    Args:
        app: what is guarded; its paths begin with the name of a bridge or ``view``.
        origin: ``http://host:port`` of the server.
        open_now: see `Lease`.
    """

    def __init__(
        self, app: ASGIApp, session: Session, origin: str, open_now: Callable[[], set[Peer]]
    ) -> None:
        self._app = app
        self._session = session
        port = origin.rpartition(":")[2]
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
        self._leases = {bridge: Lease(open_now) for bridge in session.bridges}

    def quiet_for(self, seconds: float) -> bool:
        """Whether no client asks anything."""
        return all(lease.quiet_for(seconds) for lease in self._leases.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if headers.get("host") not in self._hosts or not (
            origin is None or origin.removeprefix("http://") in self._hosts
        ):
            await _refuse(403, "only this machine is served, by its own name")(scope, receive, send)
            return
        name = scope["path"].strip("/").split("/")[0]
        bridge: Bridge | None = next((b for b in get_args(Bridge) if b == name), None)
        if bridge is None or (bridge == "view" and scope["path"] == "/view"):  # the bare page
            await self._app(scope, receive, send)
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not self._session.admits(bridge, token.strip()):
            await _refuse(401, "no valid token for this; a token ends with its episode")(
                scope, receive, send
            )
            return
        if bridge == "view" or scope["path"] == f"/{bridge}/presence":
            await self._app(scope, receive, send)
            return
        await self._lend(self._leases[bridge], scope, receive, send)

    async def _lend(self, lease: Lease, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        session = headers.get("mcp-session-id")
        method = headers.get("mcp-method")
        begins = method == "server/discover" or (
            method is None and session is None and "mcp-protocol-version" not in headers
        )
        host, port = scope["client"]
        if not await lease.admit((host, port), session, begins):
            await _refuse(409, "another client has this bridge; one at a time")(
                scope, receive, send
            )
            return
        gone = Stop()
        scope[GONE] = gone

        async def hear() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                await asked(gone)
            return message

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = Headers(raw=message["headers"]).get("mcp-session-id")
                if given is not None and begins:
                    lease.named(given)
            await send(message)

        # Other methods hold streams open and ask nothing.
        with lease.asking() if scope["method"] == "POST" else nullcontext():
            await self._app(scope, hear, tell)


async def asked(stop: Stop) -> None:
    """Ask it; in a thread when a call under way is to be ended, which may take its time."""
    if stop.calls:
        await anyio.to_thread.run_sync(stop.ask)
    else:
        stop.ask()


def _refuse(status: int, why: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    body = json.dumps({"error": why})
    return Response(body, status, headers, media_type="application/json")
