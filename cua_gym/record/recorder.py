"""Writes down one episode while it happens, off the step's path.

The caller's thread writes the step's line (so an acknowledged step survives `kill -9`) and copies
the picture into a free slot: together well under a millisecond. One background thread turns
slots into PNG and video. Slots are few and reused, so memory stays flat however long the episode,
and a slow disk slows the episode instead of filling memory.

What a step's ``info`` holds and what the outcome is are the episode's business.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import numpy as np

from cua_gym.errors import RecordLost
from cua_gym.machine.base import Frame, Rgb
from cua_gym.record.bands import changed_bands
from cua_gym.record.layout import RunFolder
from cua_gym.record.lines import LineWriter, read_lines, space_errors
from cua_gym.record.png import PngEncoder
from cua_gym.record.video import Video

__all__ = ["Recorder"]

_SLOTS = 6  # 1280x800: 18 MB; one is kept to recognise an unchanged picture


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture under way; ``known``: its file is there already."""

    step: int
    time_ms: int
    pixels: Rgb
    slot: Rgb
    known: bool = False


class Recorder:
    """Records one episode into one folder; a context manager that finishes it."""

    def __init__(
        self,
        folder: RunFolder,
        size: tuple[int, int],
        *,
        film: bool = True,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Prepare to record into ``folder`` pictures of ``size`` (width, height) in pixels.

        Args:
            folder: a new, empty attempt.
            size: of the screen; a picture of another size is stored as it is, and cropped or
                padded in the video.
            film: keep pictures and a video; else the lines alone.
            clock: monotonic seconds; the same clock as `Frame.time`.
            now: wall clock, in UTC.
        """
        self._folder = folder
        self._size = size
        self._film = film
        self._clock, self._now = clock, now
        self._began = clock()
        self._lines = LineWriter(folder.traj)
        self._free: SimpleQueue[Rgb] = SimpleQueue()
        self._jobs: SimpleQueue[_Picture | threading.Event | None] = SimpleQueue()
        self._fault: Exception | None = None
        self._thread: threading.Thread | None = None
        self._begun = threading.Event()
        for _ in range(_SLOTS):
            self._free.put(np.empty((size[1], size[0], 3), np.uint8))

    def start(
        self, episode: Mapping[str, Any], frame: Frame, info: Mapping[str, Any] | None = None
    ) -> None:
        """Write ``episode.json`` and step 0: what the agent sees before it acts.

        When this returns there is a video that plays, if one is wanted, however soon the end comes.

        Raises:
            OutOfSpace: the disk is full.
        """
        self._begin(episode, 0.0)
        self._record(0, None, frame, info or {}, False, False)
        if self._film:
            self._wait(self._begun)

    def go_on(self, episode: Mapping[str, Any], parent: RunFolder, step: int, frame: Frame) -> None:
        """Go on from a step of another attempt, whose record up to then becomes the first part.

        Its pictures are linked; the video begins with ``frame``.

        Raises:
            OutOfSpace: the disk is full.
            RecordLost: the other record is no longer there.
        """
        elapsed_s = copy_steps(parent, self._folder, step)
        self._begin(episode, elapsed_s)
        if not self._film:
            return
        pixels, slot = self._copied(frame)
        self._jobs.put(_Picture(step, round(elapsed_s * 1000), pixels, slot, known=True))
        self._wait(self._begun)

    def flush(self) -> None:
        """Wait until every picture so far is on disk.

        Raises:
            OutOfSpace, RecordLost: as for `step`.
        """
        there = threading.Event()
        self._jobs.put(there)
        self._wait(there)

    def step(
        self,
        index: int,
        action: Mapping[str, Any] | None,
        frame: Frame,
        info: Mapping[str, Any],
        terminated: bool,
        truncated: bool,
        *,
        by: str = "agent",
        call: Mapping[str, Any] | None = None,
    ) -> None:
        """Write step ``index`` (from 1): ``action`` and what it led to.

        ``by`` says who acted; ``call`` what was called, for what came over a bridge.
        ``frame.rgb`` is copied; the caller may go on using it.

        Raises:
            OutOfSpace: the disk is full, seen by this step or by the pictures of earlier ones.
            RecordLost: the folder was removed; seen by the pictures of earlier steps.
        """
        self._record(index, action, frame, info, terminated, truncated, by, call)

    def log(self, text: str) -> None:
        """Append ``text`` to ``runtime.log`` with the time."""
        line = f"{self._stamp()} {text}\n"
        with space_errors(self._folder.log, len(line)), self._folder.log.open("a") as file:
            file.write(line)

    def finish(self) -> None:
        """Wait until every picture is on disk and close the video; idempotent.

        Raises:
            OutOfSpace: the disk became full; what was written before stays readable.
            RecordLost: the folder was removed meanwhile.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()
        self._lines.close()
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.finish()

    def _begin(self, episode: Mapping[str, Any], elapsed_s: float) -> None:
        self._folder.write_episode(episode)
        with space_errors(self._folder.sums):
            self._folder.sums.touch()
        self._began = self._clock() - elapsed_s
        self._thread = threading.Thread(target=self._work, name="cua-gym-recorder", daemon=True)
        self._thread.start()

    def _wait(self, event: threading.Event) -> None:
        event.wait()
        if self._fault is not None:
            raise self._fault

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _record(
        self,
        index: int,
        action: Mapping[str, Any] | None,
        frame: Frame,
        info: Mapping[str, Any],
        terminated: bool,
        truncated: bool,
        by: str | None = None,
        call: Mapping[str, Any] | None = None,
    ) -> None:
        if self._thread is None:
            raise RuntimeError(
                f"step {index} cannot be recorded: start first, and not after finish"
            )
        if self._fault is not None:
            raise self._fault
        moment = self._clock()
        pixels, slot = self._copied(frame) if self._film else (None, None)
        line = {
            "step": index,
            "time": self._stamp(),
            "elapsed_s": round(moment - self._began, 6),
            "by": by,
            "action": action,
            **({} if call is None else {"call": call}),
            "terminated": terminated,
            "truncated": truncated,
            "info": info,
            "frame": {
                "file": self._folder.frame_name(index) if self._film else None,
                "serial": frame.serial,
                "age_s": round(moment - frame.time, 6),
                "cursor": list(frame.cursor),
            },
        }
        try:
            self._lines.append(line)
        except BaseException:
            if slot is not None:
                self._free.put(slot)
            raise
        if pixels is not None and slot is not None:
            self._jobs.put(_Picture(index, round((moment - self._began) * 1000), pixels, slot))

    def _copied(self, frame: Frame) -> tuple[Rgb, Rgb]:
        """The picture in memory of ours, and the slot that is taken by it."""
        slot = self._free.get()
        # A guest may change its resolution; such a picture has its own memory for a while.
        pixels = slot if frame.rgb.shape == slot.shape else np.empty_like(frame.rgb)
        np.copyto(pixels, frame.rgb)
        return pixels, slot

    def _work(self) -> None:
        pictures = _Pictures(self._folder, self._size)
        while (job := self._jobs.get()) is not None:
            if isinstance(job, threading.Event):
                job.set()
                continue
            slot: Rgb | None = job.slot
            if self._fault is None:
                try:
                    changed = pictures.show(job)
                    self._begun.set()
                    slot = pictures.store(job, changed)
                except Exception as fault:  # carried to the caller's thread, whatever it is
                    self._fault = fault
            self._begun.set()
            if slot is not None:
                self._free.put(slot)
        try:
            pictures.close()
        except Exception as fault:
            self._fault = self._fault or fault


class _Pictures:
    """The background thread's half: files of pictures, and the video."""

    def __init__(self, folder: RunFolder, size: tuple[int, int]) -> None:
        self._folder = folder
        self._size = size
        self._png = PngEncoder()
        self._video: Video | None = None
        self._previous: _Picture | None = None
        self._bytes = b""

    def show(self, picture: _Picture) -> list[int] | None:
        """Add one picture to the video; its bands that are new, None if it is all of them."""
        previous, changed = self._previous, None
        if previous is not None and previous.pixels.shape == picture.pixels.shape:
            changed = changed_bands(previous.pixels, picture.pixels)
        with space_errors(self._folder.video, picture.pixels.nbytes // 1000):
            self._video = self._video or Video(self._folder.video, self._size)
            self._video.add(picture.pixels, picture.time_ms, changed)
        return changed

    def store(self, picture: _Picture, changed: list[int] | None) -> Rgb | None:
        """Write one picture's file; returns the slot that is free now, if any."""
        folder, previous = self._folder, self._previous
        path = folder.frame(picture.step)
        if picture.known:
            self._previous = picture
            return None
        # A file that was known is another's, and may show what changed before this one came to be.
        same = changed == [] and bool(self._bytes)
        if not same:
            self._bytes = self._png.encode(picture.pixels, changed)
        with space_errors(path, len(self._bytes)):
            if not (same and previous and _linked(folder.frame(previous.step), path)):
                # Whole or absent: a kill leaves no half picture among the frames.
                part = folder.path / ".frame.part"
                part.write_bytes(self._bytes)
                part.replace(path)
            with folder.sums.open("a") as sums:
                digest = hashlib.sha256(self._bytes).hexdigest()
                sums.write(f"{digest}  {folder.frame_name(picture.step)}\n")
        self._previous = picture
        return previous.slot if previous else None

    def close(self) -> None:
        """Finish the video."""
        if self._video is not None:
            with space_errors(self._folder.video, 0):
                self._video.close()


def copy_steps(parent: RunFolder, child: RunFolder, step: int) -> float:
    """Begin a record with the steps of another one up to ``step``; seconds elapsed then.

    Raises:
        OutOfSpace: the disk is full.
        RecordLost: they are not there.
    """
    try:
        lines = [line for line in read_lines(parent.traj) if line["step"] <= step]
        elapsed_s: float = lines[step]["elapsed_s"]
        sums = parent.sums.read_text().splitlines(keepends=True)[: len(lines)]
        with space_errors(child.traj), LineWriter(child.traj) as writer:
            for line in lines:
                writer.append(line)
                if (name := line["frame"]["file"]) is None:
                    continue
                if not _linked(parent.path / name, child.path / name):
                    shutil.copyfile(parent.path / name, child.path / name)
            child.sums.write_text("".join(sums))
    except (FileNotFoundError, IndexError) as error:
        raise RecordLost(f"{parent.path} has no step {step} to go on from") from error
    return elapsed_s


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # no hard links here, or too many: write the bytes again
        return False
    return True
