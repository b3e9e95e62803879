"""What a step of an episode is: whence it came and what it led to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cua_gym.grading.start import StartEvidence
from cua_gym.machine.base import Frame, State
from cua_gym.record.layout import RunFolder
from cua_gym.turns import By

__all__ = ["OWN", "EpisodeOver", "Moment", "Origin", "Step"]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What one action led to."""

    frame: Frame
    info: dict[str, Any]
    terminated: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """Whence a step came.

    Attributes:
        by: ``agent`` or ``human``.
        call: ``bridge``, ``tool`` and ``arguments`` as they are to be recorded, for what came over
            a bridge; None for the caller's own loop.
    """

    by: By = "agent"
    call: Mapping[str, Any] | None = None


OWN = Origin()
"""A step of the caller's own loop."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of an episode: its machine, saved, and how far the attempt was.

    Attributes:
        folder: the attempt's.
        line: number of the last recorded step.
        steps, human_steps, seconds: spent until then.
        at_start: what was collected at the start.
    """

    state: State
    folder: RunFolder
    line: int
    steps: int
    human_steps: int
    seconds: float
    at_start: StartEvidence


class EpisodeOver(RuntimeError):
    """The attempt has ended; only a new episode can go on."""
