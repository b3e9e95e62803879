"""The pointing task as a classical learner wants it: small pictures in, numbers out, an episode a
target.

A desktop is kept for hundreds of targets, since a fresh one takes seconds and a click takes
hundredths: an *episode* here is one target, of one to three clicks, and its reward is 1.0 for a
hit. The *attempt* around it is what cua_gym records and grades.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space

from cua_gym import DesktopVectorEnv
from cua_gym.machine.base import Rgb
from cua_gym.wrappers import DiscreteActions, SmallScreen

TASK = Path(__file__).parent / "tasks/point-at-the-button"
BOARD = -4, -4
"""A pixel of the square that point_at.py counts in."""
LATE_S = 1.0


class Pointing(gym.vector.VectorWrapper):
    """Targets as episodes, over desktops that are restored when their attempts end.

    Args:
        envs: of the task `TASK`, with ``autoreset_mode="SameStep"``.
        columns, rows: where a click can go.
        size: (width, height) of the pictures.

    Attributes:
        scores: of the attempts that have ended, as they were graded; None if they were not.
    """

    def __init__(
        self,
        envs: DesktopVectorEnv,
        *,
        columns: int = 10,
        rows: int = 8,
        size: tuple[int, int] = (20, 16),
    ) -> None:
        super().__init__(envs)
        self._desktops = envs.envs
        self._click = DiscreteActions(
            self._desktops[0], columns=columns, rows=rows, kinds=["click"], keys=[]
        )
        self._small = SmallScreen(self._desktops[0], size)
        self.single_action_space = self._click.action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.single_observation_space = self._small.observation_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.scores: list[float | None] = []
        self._counts = np.zeros((self.num_envs, 3), int)
        self._now: Any = None

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Fresh desktops, at first and when there is a seed; else what is on those there are."""
        if self._now is not None and seed is None:
            return self._now, {}
        observations, infos = self.env.reset(seed=seed, options=options)
        self._counts[:] = 0
        return self._pictures(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """A click on each desktop. An attempt that ends truncates the target that it was at."""
        observations, _, ended, cut, infos = self.env.step([self._click.action(a) for a in actions])
        ended |= cut
        screens = observations["screenshot"]
        final = np.full(self.num_envs, None, object)
        counts = np.zeros_like(self._counts)
        for i in range(self.num_envs):
            if ended[i]:
                screen = infos["final_obs"][i]["screenshot"]
                final[i] = self._small.observation({"screenshot": screen})
            else:
                screen = screens[i] = self._after_click(i, screens[i])
            counts[i] = _counts(screen)
        over, hits, _ = ((counts - self._counts) % 8).T
        self._counts = np.where(ended[:, None], 0, counts)
        if ended.any():
            outcomes = infos["final_info"].get("outcome", [])
            self.scores += [outcome["score"] for outcome in outcomes if outcome]
        terminated = over > 0
        truncated = ended & ~terminated
        more = {"final_obs": final, "_final_obs": ended}
        return self._pictures(observations), hits.astype(float), terminated, truncated, more

    def _after_click(self, i: int, screen: Rgb) -> Rgb:
        """A desktop's screen with the click in it, which a busy host may show late."""
        computer = self._desktops[i].machine.screen
        until = time.monotonic() + LATE_S
        while _counts(screen)[2] == self._counts[i][2] and time.monotonic() < until:
            computer.wait_change(computer.serial, 0.01)
            screen = computer.grab().rgb
        return screen

    def _pictures(self, observations: Any) -> Any:
        screens = observations["screenshot"]
        self._now = np.stack([self._small.observation({"screenshot": s}) for s in screens])
        return self._now


def _counts(screen: Rgb) -> Any:
    """Targets over, targets hit, clicks: each modulo 8."""
    return screen[BOARD].astype(int) // 32
