"""cua_gym: whole computers as Gymnasium environments.

What needs numpy or Gymnasium is imported when it is first used: the command line's help and every
grader's process import this package too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cua_gym import registration
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
from cua_gym.errors import (
    ActionError,
    CuaGymError,
    GradingError,
    ImageError,
    MachineError,
    TaskError,
)
from cua_gym.grading.outcome import Outcome

if TYPE_CHECKING:
    from cua_gym.env import DesktopEnv, make
    from cua_gym.machine.base import MachineSpec
    from cua_gym.machine.settle import Settle
    from cua_gym.vector import DesktopVectorEnv

__all__ = [
    "Action",
    "ActionError",
    "Click",
    "CuaGymError",
    "DesktopEnv",
    "DesktopVectorEnv",
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

_LATE = {
    "DesktopEnv": "cua_gym.env",
    "DesktopVectorEnv": "cua_gym.vector",
    "MachineSpec": "cua_gym.machine.base",
    "Settle": "cua_gym.machine.settle",
    "make": "cua_gym.env",
}

if not TYPE_CHECKING:  # a checker would take it for "any name is here"

    def __getattr__(name: str) -> Any:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(importlib.import_module(_LATE[name]), name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


registration.register()
