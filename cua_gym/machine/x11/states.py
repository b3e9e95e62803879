"""Saved files of light desktops: one archive a state, beside each other in the cache.

An archive is written to a nameless file and gets its name when it is whole, so a crash leaves
nothing; beyond a size the least recently used ones go.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from cua_gym.errors import StateMismatch
from cua_gym.machine.base import MachineSpec, State

__all__ = ["FileStates"]

FILES = "files.tar"


class FileStates:
    """The archives below a folder.

    Args:
        digest: of the image's disk; the files are those that differ from it.
    """

    def __init__(self, root: Path, digest: str, *, limit_bytes: int = 5 << 30) -> None:
        self._root = root
        self._digest = digest
        self._limit_bytes = limit_bytes

    def save(self, spec: MachineSpec, key: str, write: Callable[[int], None]) -> State:
        """A state of what ``write`` puts into the descriptor that it is given."""
        name = hashlib.sha256(f"{asdict(spec)} {self._digest} {key}".encode()).hexdigest()[:24]
        folder = self._root / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            write(fd)
            fresh = folder / f"{FILES}.{os.getpid()}-{fd}"
            fds = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                # Only with a folder's descriptor does Python call linkat, which can follow links.
                os.link(str(fd), fresh, src_dir_fd=fds, follow_symlinks=True)
            finally:
                os.close(fds)
            fresh.replace(folder / FILES)
        finally:
            os.close(fd)
        self._trim(keep=folder)
        return State(spec, key, folder)

    def open(self, state: State) -> int:
        """A descriptor of a state's archive, marked as used now.

        Raises:
            StateMismatch: it is no longer there.
        """
        try:
            fd = os.open((state.folder or self._root) / FILES, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise StateMismatch(
                f"the state {state.key!r} is no longer in the cache; make it again"
            ) from error
        os.utime(fd)
        return fd

    def discard(self, state: State) -> None:
        """Take a state's name away; machines that began from it have their copies."""
        if state.folder is not None:
            _remove(state.folder)

    def clear(self) -> list[Path]:
        """Remove all of them; returns their folders."""
        found = [path.parent for path in self._root.glob(f"*/{FILES}")]
        for folder in found:
            _remove(folder)
        return found

    def _trim(self, keep: Path) -> None:
        found = []
        for path in self._root.glob(f"*/{FILES}"):
            with contextlib.suppress(OSError):  # another process removed it just now
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path.parent))
        total = sum(size for _, size, _ in found)
        for _, size, folder in sorted(found):
            if total > self._limit_bytes and folder != keep:
                _remove(folder)
                total -= size


def _remove(folder: Path) -> None:
    (folder / FILES).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody saves there just now
        folder.rmdir()
