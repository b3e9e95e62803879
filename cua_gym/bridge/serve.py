"""The bridges of one episode on a loopback port, in a thread of their own.

Responsible for the server's life and for ending the attempt when its time is over, its machine is
lost or its client has gone for good. Whoever serves an episode evaluates it afterwards.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

import anyio
import anyio.to_thread
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from cua_gym.bridge import desktop, ending, files, shell, view
from cua_gym.bridge.access import Guard, Peer
from cua_gym.bridge.session import Bridge, Session
from cua_gym.bridge.stdio import TOKEN_VARIABLE
from cua_gym.bridge.tools import make_server
from cua_gym.episode import Episode
from cua_gym.errors import MachineError
from cua_gym.grading.outcome import Outcome

__all__ = ["HOST", "Served", "bound", "configuration", "stdio_configuration"]

HOST = "127.0.0.1"
LEAVE_S = 5.0
"""A stdio end that is gone for so long does not come back."""
LAST_WORDS_S = 2.0
QUIET_S = 0.2
_PRESENCE_S = 1.0
_WATCH_S = 0.25
_HEALTH_S = 2.0
_TOOLS: dict[Bridge, Any] = {
    "desktop": (*desktop.TOOLS, *ending.TOOLS),
    "shell": (*shell.PROGRAMS, *files.FILES, *ending.TOOLS),
}
_CALLED = {"desktop": "Screen, mouse and keyboard", "shell": "Shell and files"}


def configuration(served: Served) -> dict[str, Any]:
    """What MCP clients take as their ``mcpServers``: bridges over HTTP, tokens in a header."""
    return {
        "mcpServers": {
            f"cua-gym-{bridge}": {
                "type": "http",
                "url": served.url(bridge),
                "headers": {"Authorization": f"Bearer {served.session.token(bridge)}"},
            }
            for bridge in served.bridges
        }
    }


def stdio_configuration(served: Served) -> dict[str, Any]:
    """The same for clients that only start programs; `cua-gym bridge` is the program."""
    return {
        "mcpServers": {
            f"cua-gym-{bridge}": {
                "command": sys.executable,
                "args": ["-m", "cua_gym.cli", "bridge", bridge, "--episode", served.origin],
                "env": {TOKEN_VARIABLE: served.session.token(bridge)},
            }
            for bridge in served.bridges
        }
    }


def bound(port: int) -> socket.socket:
    """A port of the loopback interface; 0 takes a free one.

    Raises:
        OSError: it cannot be had.
    """
    # Named TCP, or asyncio leaves Nagle's algorithm on: 40 ms a call.
    one = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind((HOST, port))
    except OSError as error:
        one.close()
        why = f"port {port} cannot be had ({error.strerror}); choose another, or 0 for any"
        raise OSError(error.errno, why) from error
    return one


class Served:
    """A context manager: bridges and live view of an episode while it is entered.

    Args:
        at: where to listen, from `bound`; None takes a free port.
        only_view: no bridges; the agent is in this process, or a person.
        until_left: end the attempt when every stdio end that had come is gone.

    Attributes:
        session: tokens, calls, and the end.
        left: whether it ended because its clients had gone.
    """

    def __init__(
        self,
        episode: Episode,
        *,
        at: socket.socket | None = None,
        only_view: bool = False,
        until_left: bool = False,
    ) -> None:
        self.session = Session(episode)
        self._only_view = only_view
        self.left = False
        self._until_left = until_left
        self._present = 0
        self._came = False
        self._away_since = 0.0
        self._socket = bound(0) if at is None else at
        self.origin = f"http://{HOST}:{self._socket.getsockname()[1]}"
        self._guard = self._app()
        config = uvicorn.Config(
            self._guard,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws="none",
            proxy_headers=False,  # or a header would say which client asks
            timeout_keep_alive=3600,  # a model may think for long between two calls
            timeout_graceful_shutdown=2,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="cua-gym-bridges", daemon=True
        )
        self._started = threading.Event()

    @property
    def bridges(self) -> tuple[Bridge, ...]:
        """The bridges that are served; none for a view alone."""
        return () if self._only_view else self.session.bridges

    def url(self, bridge: Bridge) -> str:
        """Where a bridge or the view is."""
        return f"{self.origin}/{bridge}"

    @property
    def view_link(self) -> str:
        """For a browser; what stands behind ``#`` never leaves it."""
        return f"{self.url('view')}#{self.session.token('view')}"

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until nobody can act any more."""
        return self.session.ended.wait(timeout_s)

    def revoke(self) -> None:
        """Void the tokens, before the freeze.

        Whoever submitted gets his answer first: clients ask for the list of tools to check it by,
        if they have not before. Nothing but such questions is answered meanwhile.
        """
        self.session.end()
        end = time.monotonic() + LAST_WORDS_S
        while time.monotonic() < end:
            # One on a busy host asked 0.6 s after its answer, and lost it by that.
            if self._guard.quiet_for(LAST_WORDS_S if self.session.unlisted else QUIET_S):
                break
            time.sleep(QUIET_S / 4)
        self.session.revoke()

    def judged(self) -> Outcome:
        """Void the tokens, freeze and judge; an attempt whose client just went is unscored."""
        self.revoke()
        episode = self.session.episode
        if self.left and episode.outcome is None:
            cause = "the client went away without submit or give_up"
            episode.fail(Outcome.unscored("agent", "act", cause))
        return episode.evaluate()

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(30):
            raise MachineError("the server of the bridges did not start in 30 s")
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving and give the port back; idempotent."""
        self.session.end()
        self.session.revoke()
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(10)
        self._socket.close()
        self.session.close()  # last: until then a page may ask what came of it

    def _app(self) -> Guard:
        servers: list[Server[Any]] = []
        routes: list[BaseRoute] = list(view.routes(self.session))
        instruction = self.session.episode.variation.instruction
        for bridge in self.bridges:
            about = ending.instructions(_CALLED[bridge], instruction)
            server = make_server(self.session, bridge, _TOOLS[bridge], about)
            app = server.streamable_http_app(
                streamable_http_path=f"/{bridge}",
                # The guard does it, for everything that is served.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            routes += [*app.routes, Route(f"/{bridge}/presence", self._presence)]
            servers.append(server)

        @asynccontextmanager
        async def life(app: Starlette) -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                for server in servers:
                    await stack.enter_async_context(server.session_manager.run())
                beside = await stack.enter_async_context(anyio.create_task_group())
                beside.start_soon(self._watch)
                self._started.set()
                yield
                beside.cancel_scope.cancel()

        app = Starlette(routes=routes, lifespan=life)
        return Guard(app, self.session, self.origin, self._open_now)

    def _open_now(self) -> set[Peer]:
        state = self._server.server_state
        # uvicorn keeps its connections; each knows its peer.
        return {c.client for c in state.connections if c.client is not None}  # type: ignore[union-attr]

    async def _watch(self) -> None:
        """End the attempt when its time is over, its machine is lost, or its clients have gone."""
        episode, session = self.session.episode, self.session
        checked = time.monotonic()
        while not session.ended.is_set():
            await anyio.sleep(_WATCH_S)
            if episode.seconds_left <= 0:
                episode.expire()
            elif self._has_left():
                self.left = True
                episode.leave("the client went away")
            over = episode.done
            if not over and time.monotonic() - checked >= _HEALTH_S:
                checked = time.monotonic()
                try:
                    await anyio.to_thread.run_sync(episode.machine.check)
                except MachineError:
                    over = True  # the evaluation meets the same fault and names it
            if over:
                # In a thread: a call under way may have a command to kill.
                await anyio.to_thread.run_sync(session.end)

    def _has_left(self) -> bool:
        gone = self._came and not self._present
        return self._until_left and gone and time.monotonic() - self._away_since > LEAVE_S

    async def _presence(self, request: Request) -> Response:
        """A response that lasts as long as the stdio end that asked for it.

        With ``?look=1`` it says only that there is something to come to.
        """
        if request.query_params.get("look"):
            return Response("here")

        async def stay() -> AsyncIterator[bytes]:
            self._present += 1
            self._came = True
            try:
                while not self.session.ended.is_set():
                    yield b"\n"
                    await anyio.sleep(_PRESENCE_S)
            finally:
                self._present -= 1
                self._away_since = time.monotonic()

        return StreamingResponse(stay(), media_type="text/plain")
