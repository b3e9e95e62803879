"""Files on their way into the guest, chunk by chunk, kept nameless on the host until whole."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import IO

from cua_gym.errors import ActionError
from cua_gym.record.lines import space_errors

__all__ = ["Uploads"]

LIMIT_BYTES = 1 << 30
"""Of all that is under way together."""

LIMIT_FILES = 32
"""Each is an open file of ours."""


class Uploads:
    """Chunks by the path that they are for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: dict[str, IO[bytes]] = {}

    def add(self, path: str, offset: int, data: bytes) -> int:
        """Put a chunk; the size so far. A chunk that is sent again replaces itself.

        Raises:
            ActionError: a chunk before it is missing, or it would be too much.
            OutOfSpace: the host's disk is full.
        """
        with self._lock:
            file = self._files.get(path)
            size = file.seek(0, 2) if file else 0
            if offset > size:
                raise ActionError(f"the next chunk starts at {size}, not at {offset}")
            total = (
                offset
                + len(data)
                + sum(f.seek(0, 2) for name, f in self._files.items() if name != path)
            )
            if total > LIMIT_BYTES:
                raise ActionError(f"uploads under way are limited to {LIMIT_BYTES} bytes")
            if file is None and len(self._files) >= LIMIT_FILES:
                raise ActionError(f"{LIMIT_FILES} uploads are under way; end one with last=true")
            if file is None:
                file = self._files[path] = tempfile.TemporaryFile()  # noqa: SIM115 - `close` does
            with space_errors(Path(tempfile.gettempdir(), "upload"), len(data)):
                file.seek(offset)
                file.write(data)
                file.truncate()
                file.flush()
            return offset + len(data)

    def take(self, path: str) -> bytes:
        """The whole file, which is forgotten here."""
        with self._lock:
            file = self._files.pop(path)
        with file:
            file.seek(0)
            return file.read()

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            files, self._files = self._files, {}
        for file in files.values():
            file.close()
