"""Files of JSON lines that survive a kill at any moment.

A line is acknowledged once `LineWriter.append` returns: it then lies in the kernel whole, and a
`kill -9` of this process cannot take it back. A line cut off by a crash or a full disk is never
followed by another: the next writer removes the torn tail first. What the lines mean is left to
their writers.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from cua_gym.errors import OutOfSpace, RecordLost

__all__ = ["LineTail", "LineWriter", "jsonable", "read_lines", "space_errors"]

# EFBIG is a quota too: RLIMIT_FSIZE, or a file system whose files end at 4 GiB.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_CHUNK = 65536


@contextmanager
def space_errors(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turn "disk full" while writing ``needed`` bytes to or below ``path`` into `OutOfSpace`.

    And anything that fails because the folder of ``path`` is no more into `RecordLost`.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            if not path.parent.is_dir():
                raise RecordLost(
                    f"the folder {path.parent} has gone, so {path.name} could not be written"
                ) from error
            raise
        free = shutil.disk_usage(next(p for p in path.parents if p.exists())).free
        what = "" if needed is None else f"for {needed} bytes "
        raise OutOfSpace(
            f"no room {what}in {path} ({os.strerror(error.errno)}, {free} bytes free); "
            "make room or choose another folder for runs"
        ) from error


def jsonable(value: object) -> Any:
    """`json.dumps(default=)` for what steps carry besides JSON's own types."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be recorded as JSON: {value!r:.80}")


class LineWriter:
    """Appends JSON lines to one file, each in a single write."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with space_errors(path, 0):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = _whole_lines(self._fd)
        if self._size != os.fstat(self._fd).st_size:
            os.ftruncate(self._fd, self._size)

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record; when this returns, a kill of the process cannot lose it.

        Raises:
            OutOfSpace: the disk is full; the file ends with the last whole line.
            TypeError, ValueError: the record is no JSON (NaN included); nothing was written.
        """
        # ASCII, so that lone surrogates of odd file names travel as escapes.
        data = json.dumps(record, default=jsonable, allow_nan=False).encode("ascii") + b"\n"
        with space_errors(self._path, len(data)):
            try:
                written = os.write(self._fd, data)
                while written < len(data):  # a nearly full disk takes a part first
                    written += os.write(self._fd, data[written:])
            except OSError:
                os.ftruncate(self._fd, self._size)
                raise
        self._size += len(data)

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The acknowledged records of a file; a torn last line was never acknowledged.

    Raises:
        ValueError: a line before the last is no JSON object; names file and line.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            yield _parsed(path, number, line)


class LineTail:
    """Reads a file while it is written: every acknowledged record once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._number = 0

    def more(self) -> list[dict[str, Any]]:
        """The records since the last call.

        Raises:
            ValueError: as for `read_lines`.
        """
        records = []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                records.append(_parsed(self._path, self._number + 1, line))
                self._number += 1
                self._offset += len(line)
        return records


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}:{number} is no JSON: {error}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path}:{number} is no JSON object: {line[:80]!r}")  # noqa: TRY004 - the file's fault, not a caller's
    return record


def _whole_lines(fd: int) -> int:
    """Length of the file up to and with its last newline."""
    end = os.fstat(fd).st_size
    while end > 0:
        start = max(0, end - _CHUNK)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
