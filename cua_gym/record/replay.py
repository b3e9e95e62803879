"""The read side of a run folder: steps, pictures and outcome, also of a run that was killed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from PIL import Image

from cua_gym.machine.base import MachineSpec, Rgb, State
from cua_gym.record.layout import RunFolder
from cua_gym.record.lines import read_lines

__all__ = ["Replay", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded step; step 0 has no action.

    Attributes:
        index: 0 for what the agent saw first.
        time: UTC, ISO 8601.
        elapsed_s: seconds since step 0.
        by: ``agent`` or ``human``; None for step 0.
        action: the action's JSON form (`cua_gym.actions.action_from_dict`); None for what no
            action can say.
        call: ``bridge``, ``tool`` and ``arguments`` of what came over a bridge.
        frame: the screenshot after the action, whose file is absent when the run was killed just
            then; None when the episode was not filmed.
    """

    index: int
    time: str
    elapsed_s: float
    by: str | None
    action: Mapping[str, Any] | None
    call: Mapping[str, Any] | None
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    frame: Path | None

    def pixels(self) -> Rgb:
        """The screenshot, ``(height, width, 3)`` uint8.

        Raises:
            FileNotFoundError: the run was killed before the picture was on disk, or not filmed.
        """
        if self.frame is None:
            raise FileNotFoundError(f"step {self.index} has no picture: it was not filmed")
        with Image.open(self.frame) as image:
            return np.asarray(image.convert("RGB"))


class Replay:
    """One attempt as it was recorded."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @property
    def episode(self) -> dict[str, Any]:
        """What was asked for."""
        return cast(dict[str, Any], json.loads(self.folder.episode.read_text()))

    @property
    def result(self) -> dict[str, Any] | None:
        """The outcome; None when the attempt did not get that far."""
        if not self.folder.result.exists():
            return None
        return cast(dict[str, Any], json.loads(self.folder.result.read_text()))

    @property
    def final_state(self) -> State | None:
        """The machine as the agent left it; None when it was not kept.

        `cua_gym.machine.start.start_machine` makes a machine of its ``spec``, which can restore it.
        """
        kept = (self.result or {}).get("final_state")
        if kept is None or kept["folder"] is None:
            return None
        spec = MachineSpec.of(self.episode["spec"])
        return State(spec, kept["key"], Path(kept["folder"]))

    def steps(self) -> Iterator[Step]:
        """Every acknowledged step in order; a torn last line is left out.

        Raises:
            ValueError: the file is damaged elsewhere; names the line.
        """
        for line in read_lines(self.folder.traj):
            yield Step(
                index=line["step"],
                time=line["time"],
                elapsed_s=line["elapsed_s"],
                by=line["by"],
                action=line["action"],
                call=line.get("call"),
                terminated=line["terminated"],
                truncated=line["truncated"],
                info=line["info"],
                frame=None if (name := line["frame"]["file"]) is None else self.folder.path / name,
            )

    def changed_frames(self) -> list[str]:
        """Screenshots that are no longer what was recorded, by their sums."""
        changed = []
        for line in self.folder.sums.read_text().splitlines():
            digest, _, name = line.partition("  ")
            path = self.folder.path / name
            if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                changed.append(name)
        return changed
