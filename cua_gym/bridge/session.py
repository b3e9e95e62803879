"""One episode, open to agents outside: who may call, what a call is, and when it is over.

Calls come from any thread; the episode gives them their turns. How they travel (MCP, HTTP) and
what the single tools do is left to the other modules.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Literal

from cua_gym import actions as a
from cua_gym.bridge.jobs import Jobs
from cua_gym.bridge.uploads import Uploads
from cua_gym.episode import Episode
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.base import Machine
from cua_gym.steps import Origin, Step
from cua_gym.turns import By, Stop

__all__ = ["BRIDGES", "Bridge", "Call", "Session"]

Bridge = Literal["desktop", "shell", "view"]
BRIDGES: Mapping[str, tuple[Bridge, ...]] = {
    "gui": ("desktop",),
    "shell": ("shell",),
    "both": ("desktop", "shell"),
}
"""Which bridges exist under a task's tool policy."""

PATIENCE_S = 20.0
"""How long a call waits while a person has the machine; MCP clients give up after 30 s or more."""

RECORDED_TEXT = 4096
"""Longest text of a call's arguments that is recorded as it is; longer ones by their sum."""


class Session:
    """Tokens, calls and the end of one prepared episode.

    Args:
        episode: prepared; whoever made it evaluates and closes it.

    Attributes:
        jobs: programs that outlive the call that started them.
        uploads: files on their way into the guest.
        ended: set when nobody can act any more.
    """

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.bridges = BRIDGES[episode.actions.tools]
        self.jobs = Jobs()
        self.uploads = Uploads()
        self.ended = threading.Event()
        self._tokens: dict[Bridge, str] = {
            bridge: secrets.token_urlsafe(32) for bridge in (*self.bridges, "view")
        }
        self._lock = threading.Lock()
        self._stops: set[Stop] = set()
        self._called: set[Bridge] = set()
        self._listed: set[Bridge] = set()

    def token(self, bridge: Bridge) -> str:
        """The secret of one bridge, or of the live view.

        Raises:
            KeyError: the policy has no such bridge, or the episode is over.
        """
        return self._tokens[bridge]

    def admits(self, bridge: Bridge, token: str) -> bool:
        """Whether ``token`` opens ``bridge`` now."""
        wanted = self._tokens.get(bridge)
        # Bytes: text that is not ASCII cannot be compared in constant time.
        return wanted is not None and hmac.compare_digest(wanted.encode(), token.encode())

    @property
    def unlisted(self) -> bool:
        """Whether a client has called tools of a bridge that never told which ones it has.

        Clients ask for the list to check their first answer by, when it has come.
        """
        return bool(self._called - self._listed)

    def listed(self, bridge: Bridge) -> None:
        """A bridge has told its tools."""
        self._listed.add(bridge)

    def call(self, bridge: Bridge, tool: str, arguments: Mapping[str, Any], stop: Stop) -> Call:
        """Begin a call; `close_call` ends it."""
        with self._lock:
            self._stops.add(stop)
        if bridge != "view":
            self._called.add(bridge)
        if self.ended.is_set():
            stop.ask()
        by: By = "human" if bridge == "view" else "agent"
        call = {"bridge": bridge, "tool": tool, "arguments": recordable(arguments)}
        return Call(self, Origin(by, call), stop)

    def close_call(self, call: Call) -> None:
        """The call has returned."""
        with self._lock:
            self._stops.discard(call.stop)

    def after(self, step: Step) -> None:
        """Learn from every step whether it was the last."""
        if step.terminated or step.truncated:
            self.end()

    def end(self) -> None:
        """Nobody may act any more; calls under way stop. Idempotent."""
        self.ended.set()  # first: a call that begins now sees it, or is among these
        with self._lock:
            stops = list(self._stops)
        for stop in stops:
            stop.ask()

    def revoke(self) -> None:
        """The bridges' tokens are void from now on; the view goes on showing."""
        self._tokens = {k: v for k, v in self._tokens.items() if k == "view"}

    def broke(self, cause: str) -> None:
        """End it because this program failed; to be called while handling the exception."""
        outcome = Outcome.unscored("bridge", "act", cause)
        self.episode.fail(outcome, traceback.format_exc())
        self.end()

    def close(self) -> None:
        """Give everything of the host back; idempotent. Programs end with the machine."""
        self._tokens = {}
        self.uploads.close()


class Call:
    """One call of a tool: what it does to the episode becomes a step of it."""

    def __init__(self, session: Session, origin: Origin, stop: Stop) -> None:
        self.session = session
        self.origin = origin
        self.stop = stop

    @property
    def episode(self) -> Episode:
        """The episode that is driven."""
        return self.session.episode

    def act(self, action: a.Action, frame: int | None = None) -> Step:
        """Do a typed action; see `Episode.act`."""
        step = self.episode.act(
            action, self.origin, frame=frame, stop=self.stop, patience_s=self._patience_s
        )
        self.session.after(step)
        return step

    def use(
        self,
        work: Callable[[Machine], Mapping[str, Any]],
        *,
        acts: bool,
        action: a.Action | None = None,
    ) -> Step:
        """Do what no action can say; see `Episode.use`."""
        step = self.episode.use(
            self.origin,
            work,
            acts=acts,
            action=action,
            stop=self.stop,
            patience_s=self._patience_s,
        )
        self.session.after(step)
        return step

    @property
    def _patience_s(self) -> float:
        # Behind another call there is nothing to be gained by giving up; its own limits end it.
        return PATIENCE_S if self.episode.turns.held else max(PATIENCE_S, self.episode.seconds_left)


def recordable(value: Any) -> Any:
    """Arguments for the record: long texts by length, sum and beginning."""
    if isinstance(value, str) and len(value) > RECORDED_TEXT:
        data = value.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        return {"characters": len(value), "sha256": digest, "beginning": value[:200]}
    if isinstance(value, Mapping):
        return {key: recordable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [recordable(item) for item in value]
    return value
