"""cua_gym: whole computers as Gymnasium environments."""

from __future__ import annotations

import gymnasium

from cua_gym.actions import (
    Action,
    Click,
    Drag,
    GiveUp,
    Key,
    KeyDown,
    KeyUp,
    MouseDown,
    MouseUp,
    Move,
    Scroll,
    Shell,
    Submit,
    Type,
    Wait,
    action_from_dict,
    action_to_dict,
)
from cua_gym.env import DesktopEnv, make
from cua_gym.errors import (
    ActionError,
    CuaGymError,
    GradingError,
    ImageError,
    MachineError,
    TaskError,
)
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.settle import Settle

__all__ = [
    "Action",
    "ActionError",
    "Click",
    "CuaGymError",
    "DesktopEnv",
    "Drag",
    "GiveUp",
    "GradingError",
    "ImageError",
    "Key",
    "KeyDown",
    "KeyUp",
    "MachineError",
    "MachineSpec",
    "MouseDown",
    "MouseUp",
    "Move",
    "Outcome",
    "Scroll",
    "Settle",
    "Shell",
    "Submit",
    "TaskError",
    "Type",
    "Wait",
    "action_from_dict",
    "action_to_dict",
    "make",
]

gymnasium.register(
    id="cua_gym/Desktop-v0",
    entry_point="cua_gym.env:DesktopEnv",
    # A real desktop's clock and schedulers differ from run to run; first frames do not.
    nondeterministic=True,
)
