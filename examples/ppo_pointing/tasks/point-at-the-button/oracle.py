"""Looks for red and clicks on the middle of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cua_gym.actions import Click
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """A hundred targets."""
    picture = desk.look()
    for _ in range(100):
        while not (red := (picture[..., 0] > 150) & (picture[..., 1] < 60)).any():
            picture = desk.look()  # it was caught between two places
        y, x = (int(places.mean()) for places in np.nonzero(red))
        observation, _ = yield Click(x, y)
        picture = observation["screenshot"]
    return None
