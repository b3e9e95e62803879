"""Attempts that gates judge, kept in the cache: made once, judged as often as a grader changes.

An attempt's folder holds what its run recorded (pictures only where something went wrong),
``evidence/``, ``seen.json`` (what the oracle was shown) and ``attempt.json``. It appears by one
rename, so a kill leaves nothing half made. Making them is `cua_gym.gates.play`'s.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cua_gym.grading.outcome import Outcome
from cua_gym.image.workshop import locked
from cua_gym.record.layout import RunFolder, write_json

__all__ = ["Attempt", "AttemptStore"]

ATTEMPT = "attempt.json"
SEEN = "seen.json"
LIMIT_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt that was made.

    Attributes:
        agent: ``null``, ``random`` or ``oracle``.
        number: which of several attempts at the same variation.
        outcome: as it was graded then.
        content: `cua_gym.gates.content.content_hash` of the task when it was graded.
        state: folder of the start state in the cache of states; "" where there is none.
        seconds: from the first picture to the last step.
    """

    agent: str
    seed: int
    number: int
    outcome: Outcome
    content: str
    steps: int
    seconds: float
    state: str
    folder: Path = field(compare=False)

    @property
    def evidence(self) -> Path:
        """What was collected; it is there if the attempt came that far."""
        return RunFolder(self.folder).evidence

    @property
    def label(self) -> str:
        """For a person: ``seed 3, attempt 2``."""
        return f"seed {self.seed}, attempt {self.number}"

    def seen(self) -> list[tuple[int, str]]:
        """What the oracle was shown by its eyes: (steps done before, text)."""
        return [(step, text) for step, text in json.loads((self.folder / SEEN).read_text())]


class AttemptStore:
    """Attempts by their hash, shared by processes; the least recently used go beyond a size.

    Args:
        root: folder in the cache.
    """

    def __init__(self, root: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._root = root
        self._limit_bytes = limit_bytes
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / ".lock"):
            _sweep(root)
            self._trim()

    def find(self, key: str) -> Attempt | None:
        """The attempt that was made, None if there is none."""
        path = self._root / key / ATTEMPT
        try:
            data = json.loads(path.read_text())
            attempt = _parsed(data, path.parent)
        except FileNotFoundError:
            return None
        os.utime(path)
        return attempt

    def forget(self, key: str) -> None:
        """Remove an attempt; it will be made again."""
        with self.making() as grave, contextlib.suppress(FileNotFoundError):
            (self._root / key).rename(grave / "old")

    @contextlib.contextmanager
    def making(self) -> Iterator[Path]:
        """A folder for the runs of an attempt in the making; removed at the end."""
        with tempfile.TemporaryDirectory(
            prefix=f".making-{os.getpid()}-", dir=self._root, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder)

    def keep(self, key: str, attempt: Attempt, seen: list[tuple[int, str]]) -> Attempt:
        """Move an attempt's folder into the store; the one that lies there."""
        run = RunFolder(attempt.folder)
        if attempt.outcome.success or attempt.agent != "oracle":
            shutil.rmtree(run.frames, ignore_errors=True)
            run.video.unlink(missing_ok=True)
        (run.path / SEEN).write_text(json.dumps(seen) + "\n")
        data = asdict(attempt) | {"outcome": attempt.outcome.to_dict()}
        del data["folder"]
        write_json(run.path / ATTEMPT, data)
        target = self._root / key
        self.forget(key)
        try:
            run.path.rename(target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # somebody else made it
                raise
        kept = self.find(key)
        assert kept is not None
        return kept

    def _trim(self) -> None:
        entries = []
        for path in self._root.glob(f"*/{ATTEMPT}"):
            files = [p.stat().st_size for p in path.parent.rglob("*") if p.is_file()]
            entries.append((path.stat().st_mtime, sum(files), path.parent))
        total = sum(size for _, size, _ in entries)
        for _, size, folder in sorted(entries):
            if total <= self._limit_bytes:
                return
            shutil.rmtree(folder, ignore_errors=True)
            total -= size


def _parsed(data: dict[str, Any], folder: Path) -> Attempt:
    return Attempt(**{**data, "outcome": Outcome.from_dict(data["outcome"]), "folder": folder})


def _sweep(root: Path) -> None:
    """Remove what killed processes left."""
    for folder in root.glob(".making-*"):
        pid = folder.name.split("-")[1]
        if not Path(f"/proc/{pid}").exists():
            shutil.rmtree(folder, ignore_errors=True)
