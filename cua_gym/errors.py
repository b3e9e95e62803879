"""Every error that cua_gym raises on purpose.

::

    CuaGymError
    ├── MachineError         ours: the computer failed; a retry on a new one may help
    │   ├── MachineLost      its process, channel or guest is gone
    │   ├── MachineTimeout   it did not answer in the stated time
    │   ├── MachineBusy      a second caller drove it while the first still did
    │   ├── OutOfSpace       the host's (or guest's) disk is full
    │   │   └── OutOfMemory  the host's memory does not hold one more machine
    │   ├── RecordLost       the folder of the run has gone while it was written to
    │   └── StateMismatch    a saved state does not fit this QEMU, spec or image
    ├── ImageError           an image is absent, broken, changed, or cannot be built here
    ├── ActionError          the agent's: nothing was done, the episode goes on
    │   ├── UnknownKey       no such key name; near ones are listed
    │   └── UntypableText    names the characters that cannot be typed here
    ├── AgentError           a model or an outside agent failed; the attempt is unscored
    ├── TaskError            the author's: found before anything boots
    └── GradingError         the evidence or the grader is broken; never a zero

A message says what happened, the value seen and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "ActionError",
    "AgentError",
    "CuaGymError",
    "GradingError",
    "ImageError",
    "MachineBusy",
    "MachineError",
    "MachineLost",
    "MachineTimeout",
    "OutOfMemory",
    "OutOfSpace",
    "RecordLost",
    "StateMismatch",
    "TaskError",
    "UnknownKey",
    "UntypableText",
]


class CuaGymError(Exception):
    """Root of all errors raised by cua_gym."""


class MachineError(CuaGymError):
    """The computer failed, not the agent; the episode becomes ``unscored``."""


class MachineLost(MachineError):
    """The machine's process, channel or guest is gone for good."""


class MachineTimeout(MachineError):
    """The machine did not answer within the stated time."""


class MachineBusy(MachineError):
    """Two callers drove one machine at once; their input would have been interleaved."""


class OutOfSpace(MachineError):
    """A disk or memory is full; the message gives the size needed and the size free."""


class OutOfMemory(OutOfSpace):
    """The host's memory does not hold one more machine; none was started."""


class RecordLost(MachineError):
    """The folder that a run was written to is gone; somebody removed it or its disk."""


class StateMismatch(MachineError):
    """A saved state was made by another QEMU version, machine type, memory size or image."""


class ImageError(CuaGymError):
    """An image is absent, broken, changed under its users, or cannot be built here."""


class ActionError(CuaGymError):
    """The agent asked for something impossible; the machine's state is unchanged."""


class UnknownKey(ActionError):
    """A key name that does not exist."""


class UntypableText(ActionError):
    """Text with characters that cannot be typed exactly on this machine."""


class AgentError(CuaGymError):
    """A model's endpoint or an outside agent failed; nothing can be said about the task."""


class TaskError(CuaGymError):
    """A task folder is wrong; the message gives file, line where known, and the remedy."""


class GradingError(CuaGymError):
    """Evidence or grader broke; the outcome is ``unscored``, never a zero."""
