"""A person has the machine: one at a time, while the person's page is there.

Responsible for who holds it, for giving it back when the page is gone, and for letting go of what
the person left down. The person's actions are steps of the episode like an agent's.
"""

from __future__ import annotations

import time
from functools import partial

import anyio
import anyio.to_thread

from cua_gym import actions as a
from cua_gym.bridge.session import Session
from cua_gym.errors import CuaGymError
from cua_gym.steps import EpisodeOver, Step
from cua_gym.turns import Stop

__all__ = ["LAPSE_S", "Hold", "NotHeld"]

LAPSE_S = 8.0
"""A page that was not heard of for so long is gone."""
_WATCH_S = 0.25


class NotHeld(Exception):
    """The caller has not taken the machine over."""


class Hold:
    """Who has taken the machine over. All methods belong to the server's event loop."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._who: str | None = None
        self._heard = 0.0
        self._down: list[a.KeyUp | a.MouseUp] = []  # what lets go of what the person left down
        self._alone = anyio.Lock()
        # Apart from the threads that agents' calls run in.
        self._threads = anyio.CapacityLimiter(1)
        self._stop = Stop()

    @property
    def taken(self) -> bool:
        """Whether a person's page has it."""
        return self._who is not None

    def has(self, who: str) -> bool:
        """Whether ``who`` has it."""
        return self._who == who

    def hear(self, who: str) -> None:
        """The page of ``who`` is there."""
        if self.has(who):
            self._heard = time.monotonic()

    def take(self, who: str) -> bool:
        """Take it over, unless another person has it; see that `watch` runs then."""
        if self._who not in (None, who) or self._session.ended.is_set():
            return False
        self._who, self._heard = who, time.monotonic()
        self._session.episode.turns.take_over()
        return True

    async def watch(self, who: str) -> None:
        """Give it back when the page of ``who`` is gone or the episode is over."""
        try:
            while self.has(who) and not self._session.ended.is_set():
                if time.monotonic() - self._heard > LAPSE_S:
                    break
                await anyio.sleep(_WATCH_S)
            await self.give_back(who)
        finally:  # the server ends
            self._free(who)

    async def give_back(self, who: str) -> None:
        """After the action under way, with nothing of the person's left down."""
        if not self.has(who):
            return
        self._stop.ask()
        async with self._alone:
            try:
                while self.has(who) and self._down:
                    await self._do(self._down[-1])
            except (EpisodeOver, CuaGymError):
                pass  # over: the freeze lets go of everything
            finally:
                self._free(who)

    async def act(self, who: str, action: a.Action) -> Step:
        """Do a person's action, in the order of asking.

        Raises:
            NotHeld: ``who`` has not taken it over.
            EpisodeOver, MachineBusy: as for `Episode.act`.
        """
        async with self._alone:
            if not self.has(who):
                raise NotHeld
            return await self._do(action)

    def _free(self, who: str) -> None:
        if self.has(who):
            self._who, self._down = None, []
            self._session.episode.turns.give_back()

    async def _do(self, action: a.Action) -> Step:
        self._stop = Stop()
        step = await anyio.to_thread.run_sync(
            partial(self._step, action, self._stop), limiter=self._threads
        )
        if "action_error" not in step.info:
            self._note(action)
        elif action in self._down:
            self._down.remove(action)
        return step

    def _step(self, action: a.Action, stop: Stop) -> Step:
        said = a.action_to_dict(action)
        call = self._session.call("view", said.pop("type"), said, stop)
        try:
            return call.act(action)
        except (EpisodeOver, CuaGymError):
            raise
        except Exception as error:
            # A fault of ours: nobody is judged by it.
            self._session.broke(f"view: {type(error).__name__}: {error}")
            raise
        finally:
            self._session.close_call(call)

    def _note(self, action: a.Action) -> None:
        match action:
            case a.KeyDown(key):
                self._down.append(a.KeyUp(key))
            case a.MouseDown(button):
                self._down.append(a.MouseUp(button))
            case a.KeyUp() | a.MouseUp():
                self._down = [up for up in self._down if up != action]
            case a.Type():  # lets go of every key
                self._down = [up for up in self._down if not isinstance(up, a.KeyUp)]
