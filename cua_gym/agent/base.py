"""What an agent is to a run: told the task once, then asked for one action after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from cua_gym.actions import Action
from cua_gym.spaces import ActionSpace

if TYPE_CHECKING:
    from cua_gym.episode import Episode

__all__ = ["Agent", "Driver", "Metered", "TaskInfo", "Usage", "WhiteBox"]


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What an agent is told before its first action.

    Attributes:
        name: of the task.
        instruction: what to do, as a person would be told.
        action_space: which actions exist here; its ``screen`` is (width, height) in pixels.
        max_steps, max_seconds: the limits.
        seed: chooses the task's variation and seeds the agent's own generator.
    """

    name: str
    instruction: str
    action_space: ActionSpace
    max_steps: int
    max_seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What an agent has spent on an attempt; it goes into ``result.json``.

    Attributes:
        model: its name, as it was asked for.
        calls: answers that it gave.
        input_tokens, output_tokens: as the provider counts them, cached input included.
        model_s: seconds spent waiting for the model, retries included.
    """

    model: str | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    model_s: float = 0.0


class Agent(Protocol):
    """One attempt's agent; a run makes a new one for each attempt.

    An exception from either method ends the attempt as ``unscored``, with reason ``agent``.
    """

    def start(self, task: TaskInfo) -> None:
        """Learn what to do."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Choose the next action.

        Args:
            observation: ``screenshot``, ``(height, width, 3)`` uint8 RGB, and ``cursor``,
                ``(x, y)`` pixels; both are the agent's to keep.
            info: as `DesktopEnv` describes it: steps and seconds left, ``action_error``, ...
        """


@runtime_checkable
class WhiteBox(Protocol):
    """An agent that may look behind the screen: an oracle, never a contestant."""

    def attach(self, episode: Episode) -> None:
        """Get the running episode, with its variation and machine; called before `start`."""


@runtime_checkable
class Metered(Protocol):
    """An agent that keeps account of what it spends."""

    @property
    def usage(self) -> Usage:
        """What was spent so far; also right after an exception."""


@runtime_checkable
class Driver(Protocol):
    """An agent that drives the episode from outside, by bridges or the live view, without `act`."""

    def drive(self, episode: Episode, tell: Callable[[str], None]) -> None:
        """Return when the episode is done; it is judged then.

        Args:
            tell: says something to whoever started the run, such as a link.

        Raises:
            AgentError: nothing can be said about the work.
        """
