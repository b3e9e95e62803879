"""The spaces of `DesktopEnv`: our own for actions, Gymnasium's for observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from cua_gym import actions as a
from cua_gym.errors import ActionError
from cua_gym.machine.keyboard import KEYS, parse_combo

__all__ = ["ActionSpace", "ToolPolicy", "observation_space"]

ToolPolicy = Literal["gui", "shell", "both"]
_GUI = (a.Move, a.Click, a.MouseDown, a.MouseUp, a.Drag, a.Scroll, a.Type, a.Key, a.KeyDown,
        a.KeyUp)  # fmt: skip
_WORDS = ("hello", "42", "tea & cake", "naïve", "1 + 1 = 2", "~/notes")


class ActionSpace(gym.Space[a.Action]):
    """All typed actions that fit a screen and a tool policy.

    A sample never ends the episode and runs no shell command but ``true``, so random agents
    explore; `Submit` and `GiveUp` are contained all the same.

    Args:
        screen: ``(width, height)`` in pixels.
        tools: which of pointer and keyboard (``gui``) and `Shell` exist.
        seed: of the space's own generator.
    """

    def __init__(
        self, screen: tuple[int, int], tools: ToolPolicy = "both", seed: int | None = None
    ) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)
        self.screen = (int(screen[0]), int(screen[1]))
        self.tools: ToolPolicy = tools

    @property
    def is_np_flattenable(self) -> bool:
        """False: text and chords have no fixed length."""
        return False

    def refusal(self, action: object) -> str | None:
        """Why ``action`` is not in this space, or None when it is."""
        try:
            action = a.validate(action)  # type: ignore[arg-type]
            if isinstance(action, a.Key):
                parse_combo(action.combo)
        except ActionError as error:
            return str(error)
        if self.tools == "shell" and isinstance(action, _GUI):
            return f"this task allows the shell only; {type(action).__name__} is not allowed"
        if self.tools == "gui" and isinstance(action, a.Shell):
            return "this task allows screen, mouse and keyboard only; Shell is not allowed"
        width, height = self.screen
        for x, y in _points(action):
            if not (0 <= x < width and 0 <= y < height):
                return f"({x}, {y}) is off the {width}x{height} screen"
        return None

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a valid action here."""
        return self.refusal(x) is None

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> a.Action:
        """A random action; masks are not supported."""
        if mask is not None or probability is not None:
            raise ValueError("ActionSpace has no masks; filter samples instead")
        rng = self.np_random

        def point() -> tuple[int, int]:
            return int(rng.integers(self.screen[0])), int(rng.integers(self.screen[1]))

        if self.tools == "shell":
            kinds: Sequence[type[a.Action]] = (a.Shell, a.Wait)
        else:
            kinds = (a.Move, a.Click, a.Click, a.Drag, a.Scroll, a.Type, a.Key, a.Wait)
        kind = kinds[int(rng.integers(len(kinds)))]
        if kind is a.Move:
            return a.Move(*point())
        if kind is a.Click:
            button = ("left", "left", "middle", "right")[int(rng.integers(4))]
            return a.Click(*point(), button=button, count=int(rng.integers(1, 3)))  # type: ignore[arg-type]
        if kind is a.Drag:
            return a.Drag((point(), point()))
        if kind is a.Scroll:
            return a.Scroll(*point(), dy=int(rng.integers(-3, 4)))
        if kind is a.Type:
            return a.Type(_WORDS[int(rng.integers(len(_WORDS)))])
        if kind is a.Key:
            names = list(KEYS)
            return a.Key(names[int(rng.integers(len(names)))])
        if kind is a.Shell:
            return a.Shell("true")
        return a.Wait(0.1)

    def to_jsonable(self, sample_n: Iterable[a.Action]) -> list[Any]:
        """A list of the actions' dict forms."""
        return [a.action_to_dict(action) for action in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[a.Action]:
        """The inverse of `to_jsonable`."""
        return [a.action_from_dict(data) for data in sample_n]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ActionSpace)
            and self.screen == other.screen
            and self.tools == other.tools
        )

    def __hash__(self) -> int:
        return hash((self.screen, self.tools))

    def __repr__(self) -> str:
        return f"ActionSpace({self.screen}, {self.tools!r})"


def observation_space(screen: tuple[int, int]) -> spaces.Dict:
    """``{"screenshot": (height, width, 3) uint8 RGB, "cursor": (x, y) pixels}``."""
    width, height = screen
    return spaces.Dict(
        {
            "screenshot": spaces.Box(0, 255, (height, width, 3), np.uint8),
            "cursor": spaces.MultiDiscrete([width, height]),
        }
    )


def _points(action: a.Action) -> tuple[tuple[int, int], ...]:
    if isinstance(action, a.Drag):
        return action.path
    if isinstance(action, a.Move | a.Click | a.Scroll):
        return ((action.x, action.y),)
    return ()
