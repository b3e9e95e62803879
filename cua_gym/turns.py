"""Who drives a machine: one at a time, in order; a person may take it over and give it back.

An agent's calls and a person's come from different threads. What they do is their own business.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from cua_gym.errors import MachineBusy

__all__ = ["By", "Stop", "Turns"]

By = Literal["agent", "human"]


class Stop:
    """A caller's wish that its call should end now; from any thread, once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = threading.Event()
        self._then: list[Callable[[], None]] = []

    @property
    def asked(self) -> bool:
        """Whether the call should end."""
        return self._asked.is_set()

    @property
    def calls(self) -> bool:
        """Whether `ask` would call anything, and so may take its time."""
        return bool(self._then)

    def ask(self) -> None:
        """Ask for it; what was given to `then` is called by this thread."""
        with self._lock:
            self._asked.set()
            then, self._then = self._then, []
        for call in then:
            call()

    def then(self, call: Callable[[], None]) -> None:
        """Call this when asked; at once if that was before."""
        with self._lock:
            if not self.asked:
                self._then.append(call)
                return
        call()

    def over(self) -> None:
        """The call has come to its end; nothing is left to be called."""
        with self._lock:
            self._then = []

    def wait(self, seconds: float) -> bool:
        """Let time pass; True at once when asked."""
        return self._asked.wait(seconds)


class Turns:
    """First come, first served; while a person holds the machine only the person is served."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[object, bool]] = deque()  # and whether it waits for the holder
        self._driving = False
        self._held = False

    @property
    def held(self) -> bool:
        """Whether a person has taken the machine over."""
        return self._held

    def take_over(self) -> None:
        """From now on agents wait. A call under way comes to its end."""
        self._hold(True)

    def give_back(self) -> None:
        """Agents are served again."""
        self._hold(False)

    @contextmanager
    def turn(
        self, by: By, timeout_s: float, stop: Stop | None = None, *, looks: bool = False
    ) -> Iterator[None]:
        """Drive alone.

        Args:
            looks: it changes nothing, and need not wait until a person gives the machine back.

        Raises:
            MachineBusy: it was not this caller's turn in time, or it was asked to stop.
        """
        me = (object(), by == "agent" and not looks)
        if stop is not None:
            stop.then(self._wake)
        with self._changed:
            self._waiting.append(me)
            try:
                self._changed.wait_for(
                    lambda: self._is_next(me) or (stop is not None and stop.asked), timeout_s
                )
                if not self._is_next(me):
                    raise MachineBusy(self._why())
                self._driving = True
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._driving = False
                self._changed.notify_all()

    def _is_next(self, me: object) -> bool:
        if self._driving:
            return False
        served = (one for one in self._waiting if not (self._held and one[1]))
        return next(served, None) is me

    def _why(self) -> str:
        if self._held:
            return "a person has taken the machine over; nothing was done, try again later"
        return "another call still runs; nothing was done, try again later"

    def _hold(self, held: bool) -> None:
        with self._changed:
            self._held = held
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
