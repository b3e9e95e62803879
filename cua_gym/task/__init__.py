"""Tasks: folders that say what the agent is told and, apart from that, how it is graded."""

from cua_gym.task.load import load_task
from cua_gym.task.model import Limits, Task, Variation
from cua_gym.task.new import new_task
from cua_gym.task.suite import Suite, bundled_suite, find_task

__all__ = [
    "Limits",
    "Suite",
    "Task",
    "Variation",
    "bundled_suite",
    "find_task",
    "load_task",
    "new_task",
]
