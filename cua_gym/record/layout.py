"""Where everything of a run lies: the one place that knows its file names.

::

    runs/<run>/<task>/<agent>/<attempt>/
        episode.json     what was asked: spec, versions, hashes, seed
        traj.jsonl       one line per step, frame 0 included
        frames/NNNN.png  what the agent saw at each step
        frames.sha256    sums of the frames, as `sha256sum --check` reads them
        recording.mp4    one frame per step at its real time
        runtime.log      what the host noticed
        agent.log        what an agent that is a program of its own printed
        evidence/        what was collected from the frozen machine
        result.json      the outcome
        result-2.json    what a later grading of the same evidence came to; then result-3.json, ...

Who writes what into these files is `recorder`'s business and the episode's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cua_gym.record.lines import jsonable, space_errors

__all__ = ["RunFolder", "attempts", "new_run", "run_name", "write_json"]

MAX_NAME = 100
"""Bytes of a name that become a folder's; file systems take 255."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one attempt; only names, nothing is opened."""

    path: Path

    @classmethod
    def create(cls, runs: Path, run: str, task: str, agent: str) -> RunFolder:
        """Make the next free attempt of ``agent`` at ``task`` in the run named ``run``.

        Safe against other processes doing the same: no two get one folder.

        Raises:
            OutOfSpace: the disk is full.
        """
        return cls._next(runs / slug(run) / slug(task) / slug(agent))

    def sibling(self) -> RunFolder:
        """Make the next free attempt beside this one.

        Raises:
            OutOfSpace: the disk is full.
        """
        return self._next(self.path.parent)

    @classmethod
    def _next(cls, parent: Path) -> RunFolder:
        with space_errors(parent):
            parent.mkdir(parents=True, exist_ok=True)
            taken = (int(p.name) for p in parent.iterdir() if p.name.isdecimal())
            number = max(taken, default=0) + 1
            while True:
                path = parent / f"{number:03d}"
                try:
                    path.mkdir()
                except FileExistsError:
                    number += 1
                    continue
                folder = cls(path)
                folder.frames.mkdir()
                folder.evidence.mkdir()
                return folder

    @property
    def episode(self) -> Path:
        """What was asked for."""
        return self.path / "episode.json"

    @property
    def traj(self) -> Path:
        """One JSON line per step."""
        return self.path / "traj.jsonl"

    @property
    def frames(self) -> Path:
        """Folder of the screenshots."""
        return self.path / "frames"

    def frame(self, step: int) -> Path:
        """Screenshot after ``step``; step 0 is what the agent saw first."""
        return self.path / self.frame_name(step)

    @staticmethod
    def frame_name(step: int) -> str:
        """The same, relative to the folder."""
        return f"frames/{step:04d}.png"

    @property
    def sums(self) -> Path:
        """SHA-256 of every screenshot."""
        return self.path / "frames.sha256"

    @property
    def video(self) -> Path:
        """The recording."""
        return self.path / "recording.mp4"

    @property
    def log(self) -> Path:
        """Timestamped lines of the host."""
        return self.path / "runtime.log"

    @property
    def agent_log(self) -> Path:
        """What an agent that is a program of its own printed."""
        return self.path / "agent.log"

    @property
    def evidence(self) -> Path:
        """Folder of what was collected for grading."""
        return self.path / "evidence"

    @property
    def result(self) -> Path:
        """The outcome."""
        return self.path / "result.json"

    @property
    def results(self) -> list[Path]:
        """Every outcome that there is, the first one (`result`) first, the one in force last."""
        later = [
            (int(match[1]), path)
            for path in self.path.glob("result-*.json")
            if (match := re.fullmatch(r"result-(\d+)\.json", path.name))
        ]
        first = [self.result] if self.result.exists() else []
        return first + [path for _, path in sorted(later)]

    def add_result(self, result: Mapping[str, Any]) -> Path:
        """Write a later outcome beside the earlier ones, whole or not at all; its file.

        Raises:
            OutOfSpace: the disk is full.
        """
        part = self.path / f".result-{os.getpid()}.part"
        write_json(part, result)
        number = max([1, *(int(p.stem[7:]) for p in self.results if p != self.result)])
        try:
            while True:
                number += 1
                path = self.path / f"result-{number}.json"
                try:
                    # A link, which replaces nothing: somebody else may save too.
                    path.hardlink_to(part)
                except FileExistsError:
                    continue
                return path
        finally:
            part.unlink()

    def write_episode(self, episode: Mapping[str, Any]) -> None:
        """Write ``episode.json``, whole or not at all."""
        write_json(self.episode, episode)

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write ``result.json``, whole or not at all."""
        write_json(self.result, result)


def run_name(now: datetime) -> str:
    """A name for a run that nobody else has; nothing is made."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def new_run(runs: Path, now: datetime) -> str:
    """Make a new run folder in ``runs``, named by the moment; unique also within one second.

    Raises:
        OutOfSpace: the disk is full.
    """
    name, number = f"{now:%Y%m%d-%H%M%S}", 1
    with space_errors(runs):
        runs.mkdir(parents=True, exist_ok=True)
        while True:
            run = name if number == 1 else f"{name}-{number}"
            try:
                (runs / run).mkdir()
            except FileExistsError:
                number += 1
                continue
            return run


def attempts(root: Path) -> Iterator[RunFolder]:
    """Every attempt at or below ``root`` (an attempt, a run, or a folder of runs), by name.

    An attempt whose machine never started has a result but no ``episode.json``.
    """
    found = {p.parent for name in ("episode.json", "result.json") for p in root.rglob(name)}
    for path in sorted(found):
        folder = RunFolder(path)
        # The same names deeper down are somebody's evidence.
        if not any(parent.name == folder.evidence.name for parent in (path, *path.parents)):
            yield folder


def slug(name: str) -> str:
    """``name`` as one harmless path component: ``my.mod:Agent`` -> ``my.mod-Agent``.

    What is too long for a file system is cut, and told apart by its hash.
    """
    plain = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "unnamed"
    if len(plain.encode()) <= MAX_NAME:
        return plain
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]
    return f"{plain.encode()[:MAX_NAME].decode(errors='ignore')}-{digest}"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Put a whole JSON file: readers see the old one or the new one, never half of it.

    Raises:
        OutOfSpace: the disk is full; the old file stays.
    """
    text = json.dumps(value, default=jsonable, indent=2, allow_nan=False) + "\n"
    part = path.with_name(f".{path.name}.part")
    with space_errors(path, len(text)):
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
