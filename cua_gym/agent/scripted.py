"""Agents without a mind: the floors that every task must be able to tell from work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cua_gym.actions import Action, GiveUp, Submit
from cua_gym.agent.base import TaskInfo

__all__ = ["GiveUpAgent", "NullAgent", "RandomAgent"]


class NullAgent:
    """Does nothing and says that it is done."""

    def start(self, task: TaskInfo) -> None:
        """Nothing to learn."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """`Submit`."""
        return Submit()


class GiveUpAgent:
    """Does nothing and says that it cannot be done."""

    def start(self, task: TaskInfo) -> None:
        """Nothing to learn."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """`GiveUp`."""
        return GiveUp("this agent always gives up")


class RandomAgent:
    """Samples the action space, the same way for the same seed, and submits with its last step."""

    def start(self, task: TaskInfo) -> None:
        """Seed the space."""
        self._space = task.action_space
        self._space.seed(task.seed)

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """A random action that never ends the attempt early."""
        return Submit() if info.get("steps_left") == 1 else self._space.sample()
