"""Wrappers for classical reinforcement learning: a fixed set of numbers in, a small picture out.

Libraries such as Stable-Baselines3 take no typed actions and no dictionaries of strings; they take
`MultiDiscrete` and `Box`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from PIL import Image

from cua_gym import actions as a
from cua_gym.env import DesktopEnv, Observation
from cua_gym.errors import UnknownKey
from cua_gym.machine.keyboard import parse_combo

__all__ = ["DiscreteActions", "SmallScreen"]

KINDS = ("move", "click", "double_click", "right_click", "key", "submit")
KEYS = (
    "enter",
    "tab",
    "escape",
    "backspace",
    "up",
    "down",
    "left",
    "right",
    "page_up",
    "page_down",
)


class DiscreteActions(
    gym.ActionWrapper[Observation, npt.NDArray[np.int64], a.Action],
    gym.utils.RecordConstructorArgs,
):
    """Actions as four numbers: ``MultiDiscrete([kinds, columns, rows, keys])``.

    The screen is cut into ``columns`` x ``rows`` cells of equal size; pointer actions go to the
    middle of a cell, counted from the top left. Numbers that a kind does not need are ignored.

    Args:
        env: `cua_gym.env.DesktopEnv`, wrapped or not.
        columns, rows: cells of the screen.
        kinds: some of ``move``, ``click``, ``double_click``, ``right_click``, ``key``, ``submit``.
        keys: chords, as `Key` takes them.

    Raises:
        TypeError: ``env`` is no `DesktopEnv`.
        ValueError: an unknown kind or key, no cell, or no keys for the kind ``key``.
    """

    def __init__(
        self,
        env: gym.Env[Observation, a.Action],
        *,
        columns: int = 32,
        rows: int = 20,
        kinds: Sequence[str] = KINDS,
        keys: Sequence[str] = KEYS,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, columns=columns, rows=rows, kinds=kinds, keys=keys
        )
        super().__init__(env)
        if unknown := set(kinds) - set(KINDS):
            raise ValueError(f"unknown kinds {sorted(unknown)}; there are {', '.join(KINDS)}")
        if min(columns, rows) < 1:
            raise ValueError(f"a screen has at least one cell, not {columns} x {rows}")
        if "key" in kinds and not keys:
            raise ValueError("the kind 'key' needs keys; name some, or leave it out of kinds")
        try:
            for combo in keys:
                parse_combo(combo)
        except UnknownKey as error:
            raise ValueError(f"what is in keys cannot be pressed: {error}") from error
        self._desktop = _desktop(env)
        self.kinds, self.keys = tuple(kinds), tuple(keys)
        self.columns, self.rows = columns, rows
        sizes = [len(self.kinds), columns, rows, max(1, len(self.keys))]
        self.action_space = gym.spaces.MultiDiscrete(sizes)

    def action(self, action: npt.NDArray[np.int64]) -> a.Action:
        """The typed action that these numbers are.

        Raises:
            ValueError: they are not in the action space.
        """
        numbers = np.asarray(action)
        if not self.action_space.contains(numbers):
            raise ValueError(f"no action of {self.action_space}: {numbers.tolist()}")
        kind, column, row, key = (int(number) for number in numbers)
        width, height = self._desktop.task.spec.screen
        x = (2 * column + 1) * width // (2 * self.columns)
        y = (2 * row + 1) * height // (2 * self.rows)
        match self.kinds[kind]:
            case "move":
                return a.Move(x, y)
            case "double_click":
                return a.Click(x, y, count=2)
            case "right_click":
                return a.Click(x, y, button="right")
            case "key":
                return a.Key(self.keys[key])
            case "submit":
                return a.Submit()
            case _:
                return a.Click(x, y)


class SmallScreen(
    gym.ObservationWrapper[npt.NDArray[np.uint8], a.Action, Observation],
    gym.utils.RecordConstructorArgs,
):
    """The screenshot alone, ``(height, width, 3)`` uint8 RGB, made smaller by averaging.

    Args:
        env: `cua_gym.env.DesktopEnv`, wrapped or not.
        size: ``(width, height)`` of the new picture in pixels.
        gray: one channel, ``(height, width, 1)``, by ITU-R 601 luma.
    """

    def __init__(
        self, env: gym.Env[Observation, Any], size: tuple[int, int], *, gray: bool = False
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, size=size, gray=gray)
        super().__init__(env)
        self._size, self._gray = size, gray
        shape = (size[1], size[0], 1 if gray else 3)
        self.observation_space = gym.spaces.Box(0, 255, shape, np.uint8)

    def observation(self, observation: Observation) -> npt.NDArray[np.uint8]:
        """The small picture."""
        picture = Image.fromarray(observation["screenshot"])
        if self._gray:
            picture = picture.convert("L")
        small = np.array(picture.resize(self._size, Image.Resampling.BOX), np.uint8)
        return small[:, :, None] if self._gray else small


def _desktop(env: gym.Env[Any, Any]) -> DesktopEnv:
    desktop = env.unwrapped
    if not isinstance(desktop, DesktopEnv):
        raise TypeError(f"it wraps a DesktopEnv, not {type(desktop).__name__}")
    return desktop
