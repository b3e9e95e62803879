"""Folders in which images are built, and the locks that tell a live build from a dead one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from cua_gym.errors import ImageError
from cua_gym.forked import unlocked_at_end
from cua_gym.machine.contain import contained

__all__ = ["grave", "locked", "remove_tree", "sweep", "workshop"]

_PREFIX = ".build-"


@contextlib.contextmanager
def workshop(images: Path, name: str) -> Iterator[Path]:
    """A private folder for one build; those of dead builds are removed on the way."""
    with locked(images / ".lock-workshops"):
        sweep(images)
        work = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-", dir=images))
        lock = os.open(work / "owner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    with unlocked_at_end(lock):
        try:
            yield work
        finally:
            remove_tree(work)


def sweep(images: Path) -> list[str]:
    """Remove what dead builds left; returns the names of the removed folders."""
    removed = []
    for work in sorted(images.glob(f"{_PREFIX}*")):
        if _is_dead(work):
            remove_tree(work)
            removed.append(work.name)
    return removed


def grave(images: Path, name: str) -> Path:
    """Where a folder is moved to be deleted: if that is cut short, `sweep` goes on."""
    return images / f"{_PREFIX}removed-{name}-{os.getpid()}"


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock file; the file stays, since removing it would split waiters from newcomers.

    Args:
        waiting: called when another process holds it.
    """
    with unlocked_at_end(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_dead(work: Path) -> bool:
    """Whether the builder of this folder has ended: its lock ended with it."""
    try:
        lock = os.open(work / "owner.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    with unlocked_at_end(lock):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def remove_tree(folder: Path) -> None:
    """Delete a folder of ours.

    Raises:
        ImageError: something is still mounted below it, or another user's files stay.
    """
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    inside = [line.split()[4] for line in mounts if line.split()[4].startswith(f"{folder}/")]
    if inside:
        raise ImageError(f"{inside[0]} is still mounted; unmount it, then remove {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        # A normal user's build leaves files of subordinate ids, which are his among those ids only.
        command = contained(["rm", "-rf", str(folder)])
        subprocess.run(command, capture_output=True, check=False)
    if folder.exists():
        raise ImageError(f"cannot remove {folder}; remove it as root")
