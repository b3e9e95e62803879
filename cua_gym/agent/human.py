"""A person as the agent, in the live view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cua_gym.actions import Action
from cua_gym.agent.base import TaskInfo
from cua_gym.bridge.serve import Served

if TYPE_CHECKING:
    from cua_gym.episode import Episode

__all__ = ["HumanAgent"]


class HumanAgent:
    """Gives a link; who opens it and takes over works until submit, give up or the time's end."""

    def start(self, task: TaskInfo) -> None:
        """The page shows the task."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Never called: see `drive`."""
        raise NotImplementedError("a person drives the episode in the live view")

    def drive(self, episode: Episode, tell: Callable[[str], None]) -> None:
        """Wait for the person."""
        with Served(episode, only_view=True) as served:
            tell(f"open this and take over: {served.view_link}")
            served.wait()
            served.judged()  # while the page still shows what comes of it
