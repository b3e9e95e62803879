"""What a grader may use."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What each checkpoint may use.

    Attributes:
        wall_s: then it is killed.
        cpu_s: processor time.
        memory_mb: address space.
        file_mb: largest file that it may write.
        open_files: open file descriptors.
    """

    wall_s: float = 120.0
    cpu_s: int = 60
    memory_mb: int = 2048
    file_mb: int = 256
    open_files: int = 256


LIMITS = Limits()
