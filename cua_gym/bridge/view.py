"""The live view: a page that shows an episode as it goes on, and lets a person take over.

Responsible for the page and for the HTTP behind it. Who may ask is checked before (`access`).
Answers wait for news for a while (long polls): waiting takes no thread, except one for the screen.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import anyio
import anyio.to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cua_gym import actions as a
from cua_gym.bridge.brief import brief
from cua_gym.bridge.hold import Hold, NotHeld
from cua_gym.bridge.live import Live
from cua_gym.bridge.session import Session
from cua_gym.errors import ActionError, CuaGymError, MachineBusy, MachineError
from cua_gym.record.lines import LineTail
from cua_gym.record.replay import Replay
from cua_gym.steps import EpisodeOver

__all__ = ["VIEWER", "routes"]

VIEWER = "x-viewer"
"""The header by which a page says who it is; what it says is its own secret."""

WAIT_S = 10.0
HELD_WAIT_S = 2.5
"""The page that has the machine asks so often, which shows that it is there."""
_LOOK_S = 0.1
_PICTURE_S = 5.0
_LONGEST_BODY = 256 * 1024


def routes(session: Session) -> Sequence[BaseRoute]:
    """What is served of a session below ``/view``."""
    view = _View(session)
    return [
        Route("/view", _page()),
        Route("/view/state", view.state),
        Route("/view/steps", view.steps),
        Route("/view/frame", view.frame),
        Route("/view/frames/{step:int}", view.recorded),
        Route("/view/hold", view.hold, methods=["POST"]),
        Route("/view/act", view.act, methods=["POST"]),
    ]


class _Refused(Exception):
    """What was asked for is not done."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class _View:
    """The answers of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._episode = session.episode
        self._live = Live(lambda: session.episode.machine.screen)
        self._hold = Hold(session)
        self._tail = LineTail(session.episode.folder.traj)
        self._read = anyio.Lock()
        self._threads = anyio.CapacityLimiter(2)
        self._steps: list[dict[str, Any]] = []
        self._count = itertools.count()

    async def state(self, request: Request) -> Response:
        """How the episode stands."""
        await self._read_steps()
        return _json(self._state(_who(request)))

    async def steps(self, request: Request) -> Response:
        """Steps from number ``after`` on, waited for; and how the episode stands, if ``seen``.

        ``seen`` is the ``version`` of a state: another one is news as well.
        """
        try:
            after, seen = _number(request, "after"), request.query_params.get("seen")
        except _Refused as refused:
            return _refusal(refused)
        who = _who(request)
        self._hold.hear(who)
        wait_s = HELD_WAIT_S if self._hold.has(who) else WAIT_S
        until = time.monotonic() + wait_s
        while True:
            await self._read_steps()
            state = self._state(who)
            news = len(self._steps) > after + 1 or state["version"] != seen
            if news or time.monotonic() >= until or not self._open():
                return _json({"steps": self._steps[max(0, after + 1) :], "state": state})
            await anyio.sleep(_LOOK_S)

    async def frame(self, request: Request) -> Response:
        """The screen once it is newer than the serial ``after``; 204 when it stayed the same."""
        try:
            after = _number(request, "after")
            until = time.monotonic() + WAIT_S
            shot = await self._live.after(after, until, self._open)
        except _Refused as refused:
            return _refusal(refused)
        except MachineError as error:
            return _refusal(_Refused(503, str(error)))
        if shot is None:
            return Response(status_code=204, headers=_HEADERS)
        headers = {
            "X-Serial": str(shot.serial),
            "X-Cursor": "{},{}".format(*shot.cursor),
            "X-Screen": "{},{}".format(*shot.screen),
        }
        picture = shot.picture
        return Response(picture.data, headers=_HEADERS | headers, media_type=picture.mime)

    async def recorded(self, request: Request) -> Response:
        """The picture recorded with a step."""
        step = request.path_params["step"]
        await self._read_steps()
        path = self._episode.folder.frame(step)
        until = time.monotonic() + _PICTURE_S
        # Pictures are written a moment after their step.
        while not path.is_file():
            if step >= len(self._steps) or time.monotonic() > until or not self._open():
                return _refusal(_Refused(404, f"there is no picture of step {step}"))
            await anyio.sleep(_LOOK_S)
        data = await anyio.to_thread.run_sync(path.read_bytes, limiter=self._threads)
        return Response(data, headers=_HEADERS, media_type="image/png")

    async def hold(self, request: Request) -> Response:
        """Take the machine over, or give it back: ``{"held": bool}``."""
        who = _who(request)
        try:
            body = await _body(request)
            if not isinstance(body.get("held"), bool):
                raise _Refused(400, 'wanted {"held": true} or {"held": false}')
            if not body["held"]:
                await self._hold.give_back(who)
                return _json(self._state(who))
            if self._session.ended.is_set():
                raise _Refused(409, "the episode is over")
            begins = not self._hold.has(who)
            if not self._hold.take(who):
                raise _Refused(409, "another person has the machine")
        except _Refused as refused:
            return _refusal(refused)
        after = BackgroundTask(self._hold.watch, who) if begins else None
        return _json(self._state(who), background=after)

    async def act(self, request: Request) -> Response:
        """Do a person's action: ``{"action": {...}}``; what came of it."""
        who = _who(request)
        self._hold.hear(who)
        try:
            action = a.action_from_dict((await _body(request)).get("action", {}))
            step = await self._hold.act(who, action)
        except _Refused as refused:
            return _refusal(refused)
        except ActionError as error:
            return _refusal(_Refused(400, str(error)))
        except NotHeld:
            return _refusal(_Refused(409, "take the machine over first"))
        except EpisodeOver:
            return _refusal(_Refused(409, "the episode is over"))
        except MachineBusy as error:
            return _refusal(_Refused(409, str(error)))
        except CuaGymError as error:
            return _refusal(_Refused(503, str(error)))
        fault = step.info.get("action_error") or step.info.get("error")
        return _json({"error": fault, "over": step.terminated or step.truncated})

    def _open(self) -> bool:
        try:
            self._session.token("view")
        except KeyError:
            return False
        return True

    async def _read_steps(self) -> None:
        if self._read.locked():
            return  # another request does it; what it finds will be seen at the next look
        async with self._read:
            try:
                more = await anyio.to_thread.run_sync(self._tail.more, limiter=self._threads)
            except FileNotFoundError:
                return  # the folder was removed; the episode notices, and its outcome says so
            self._steps += map(brief, more)

    def _state(self, who: str) -> dict[str, Any]:
        episode = self._episode
        outcome, over = episode.outcome, episode.done or self._session.ended.is_set()
        state = {
            "task": episode.variation.task.name,
            "seed": episode.variation.seed,
            "agent": episode.agent,
            "instruction": episode.variation.instruction,
            "screen": episode.variation.task.spec.screen,
            "max_steps": episode.max_steps,
            "held": episode.turns.held,
            "mine": self._hold.has(who),
            "over": over,
            "ending": self._ending() if over else None,
            "outcome": None,
        }
        if outcome is not None:
            state["outcome"] = {
                "kind": outcome.kind,
                "score": outcome.score,
                "success": outcome.success,
                "text": str(outcome),
            }
        version = hashlib.sha256(json.dumps(state).encode()).hexdigest()[:16]
        passing = {
            "steps_left": max(0, episode.max_steps - episode.steps),
            "seconds_left": round(episode.seconds_left, 1),
        }
        # Two answers may overtake each other; the page believes the later one.
        return {**state, **passing, "version": version, "at": next(self._count)}

    def _ending(self) -> str:
        """What ended it, as far as it can be told by now."""
        last = self._steps[-1]["end"] if self._steps else None
        if last is not None:
            return str(last)
        result = Replay(self._episode.folder).result if self._episode.outcome else None
        submission = (result or {}).get("submission", {})
        if submission.get("kind") == "left":
            return str(submission["reason"])
        if self._episode.seconds_left <= 0:
            return "no seconds are left"
        return "it was ended"


def _page() -> Callable[[Request], Awaitable[Response]]:
    """The page in one piece: only the bare path is served without a token."""
    files = resources.files("cua_gym.bridge")
    parts = {
        "style": (files / "view.css").read_text("utf-8"),
        "script": "\n".join(
            (files / name).read_text("utf-8") for name in ("view_hands.js", "view.js")
        ),
    }
    page = (files / "view.html").read_text("utf-8")
    rules = ["default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'",
             "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
             "trusted-types 'none'"]  # fmt: skip
    for name, text in parts.items():
        page = page.replace(f"<!-- {name} -->", f"<{name}>{text}</{name}>")
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rules.append(f"{name}-src 'sha256-{digest}'")
    headers = _HEADERS | {
        "Content-Security-Policy": "; ".join(rules),
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=(), display-capture=()",
    }

    async def show(request: Request) -> Response:
        return Response(page, headers=headers, media_type="text/html")

    return show


_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def _who(request: Request) -> str:
    return request.headers.get(VIEWER, "")


def _number(request: Request, name: str) -> int:
    try:
        return int(request.query_params.get(name, "-1"))
    except ValueError:
        raise _Refused(400, f"{name} must be a whole number") from None


async def _body(request: Request) -> Mapping[str, Any]:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _LONGEST_BODY:
            raise _Refused(413, f"a body has at most {_LONGEST_BODY} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, Mapping):
        raise _Refused(400, "wanted a JSON object")
    return body


def _json(
    value: Mapping[str, Any], status: int = 200, background: BackgroundTask | None = None
) -> Response:
    # ASCII, since the record may hold lone surrogates.
    return Response(json.dumps(value), status, _HEADERS, "application/json", background)


def _refusal(refused: _Refused) -> Response:
    return _json({"error": str(refused)}, refused.status)
