"""Somebody who looks at the live view over HTTP, without the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2

from cua_gym import actions as a
from cua_gym.bridge import view
from cua_gym.bridge.serve import Served


class Page:
    """What a page asks, without the page."""

    def __init__(self, served: Served, who: str = "one") -> None:
        token = served.session.token("view")
        headers = {"Authorization": f"Bearer {token}", view.VIEWER: who}
        self.http = httpx2.Client(
            base_url=f"{served.origin}/view/", headers=headers, timeout=30, trust_env=False
        )

    def get(self, path: str, **query: Any) -> httpx2.Response:
        """Ask for something."""
        return self.http.get(path, params=query)

    def state(self) -> dict[str, Any]:
        """How the episode stands."""
        state: dict[str, Any] = self.get("state").json()
        return state

    def news(self, after: int, state: dict[str, Any]) -> dict[str, Any]:
        """Wait for a step after number ``after`` or another state than ``state``."""
        news: dict[str, Any] = self.get("steps", after=after, seen=state["version"]).json()
        return news

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a state."""
        state = self.state()
        while not condition(state):
            state = self.news(10**6, state)["state"]
        return state

    def until_steps(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many steps."""
        steps: list[dict[str, Any]] = []
        while len(steps) < count:
            steps = self.get("steps", after=-1).json()["steps"]
        return steps

    def hold(self, held: bool) -> httpx2.Response:
        """Take over or give back."""
        return self.http.post("hold", json={"held": held})

    def act(self, action: a.Action) -> httpx2.Response:
        """Do something."""
        return self.http.post("act", json={"action": a.action_to_dict(action)})


Watch = Callable[..., Page]
"""Makes watchers, who go away in the end."""
