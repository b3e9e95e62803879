"""Whether the host's memory holds one more machine; refused with numbers before it is started.

A machine that was just started has touched little of the memory that it takes at work, so the free
memory alone says yes to far too many. Each kind of computer therefore keeps a `Room` for a machine
from before its start until its end: a small file below the cache, locked by its owner, so that all
processes with the same cache count each other's, and a dead owner's is swept by whoever comes next.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cua_gym.cache import cache_root
from cua_gym.errors import MachineError, OutOfMemory, OutOfSpace
from cua_gym.forked import finalizer, unlocked_at_end

__all__ = ["HOST_MB", "VARIABLE", "Room", "available_mb", "need_room", "room_for", "take_room"]

VARIABLE = "CUA_GYM_MEMORY_MB"
"""Environment variable: megabytes that all machines may take together, believed as it is."""

HOST_MB = 512
"""What is never given to machines: the programs that drive them grow, too."""

_NOTE_BYTES = 256


@dataclass(frozen=True, slots=True)
class _Note:
    """What a room's file says.

    Attributes:
        mb: the machine's own memory at work.
        shared, shared_mb: name and size of a file that it maps and that others may map as well.
        pid, namespace: of the machine's process, once there is one.
    """

    mb: int
    shared: str = ""
    shared_mb: int = 0
    pid: int = 0
    namespace: int = 0

    @property
    def touched_mb(self) -> int:
        """What it has taken of its own memory by now."""
        if not self.pid or self.namespace != _namespace():
            return 0
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0  # it has ended, and its owner has not yet said so
        return _kib(status, "RssAnon") >> 10


class Room:
    """Memory kept for one machine; a forgotten one is given back with this object."""

    def __init__(self, folder: Path, note: _Note) -> None:
        """Not looked at whether there is room: `take_room` does."""
        self._note = note
        path = folder / secrets.token_hex(8)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._finalizer = finalizer(self, _give_back, path, self._file)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._write()

    def used_by(self, pid: int) -> None:
        """The machine's process: what it has touched is no longer free, and not counted twice."""
        self._note = replace(self._note, pid=pid, namespace=_namespace())
        self._write()

    def close(self) -> None:
        """Give it back. Idempotent."""
        self._finalizer()

    def _write(self) -> None:
        # Of one length and at once: whoever reads meanwhile sees the old note or the new one.
        os.pwrite(self._file, json.dumps(asdict(self._note)).ljust(_NOTE_BYTES).encode(), 0)


def take_room(mb: int, *, shared: str = "", shared_mb: int = 0) -> Room:
    """Keep memory for one machine; called by each kind of computer before it starts anything.

    Args:
        mb: what the machine takes for itself alone when it is at work.
        shared: names a file that the machine maps. It counts once, whoever maps it.
        shared_mb: the file's size; to read it from the disk over and over would be thrashing.

    Raises:
        OutOfMemory: it does not fit.
        OutOfSpace, MachineError: it cannot be noted.
    """
    with _noting() as folder:
        notes = _notes(folder)
        new_mb = 0 if any(note.shared == shared for note in notes) else shared_mb
        free_mb, why = _free(notes)
        if mb + new_mb > free_mb:
            also = f" and {new_mb} MB for its saved memory" if new_mb else ""
            raise OutOfMemory(f"one more machine takes {mb} MB{also}; {_refusal(free_mb, why)}")
        return Room(folder, _Note(mb, shared, shared_mb))


def need_room(sizes: Sequence[int]) -> None:
    """Refuse machines that are to run at once and do not fit; nothing is kept for them yet.

    Args:
        sizes: what each of them takes, in MB.

    Raises:
        OutOfMemory: they do not fit.
        OutOfSpace, MachineError: the notes cannot be read.
    """
    with _noting() as folder:
        free_mb, why = _free(_notes(folder))
    if sum(sizes) > free_mb:
        raise OutOfMemory(
            f"{len(sizes)} machines take {sum(sizes)} MB, each {max(sizes)} MB at most; "
            f"{_refusal(free_mb, why)}"
        )


def room_for(mb: int) -> int:
    """How many more machines of ``mb`` megabytes each the host's memory holds now."""
    with _noting() as folder:
        return max(0, _free(_notes(folder))[0]) // mb


def available_mb(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that programs could still take without others being paged out, in MB.

    The least of what the host has and what the control groups above this process allow, where the
    pages of files count as free: the kernel drops them when it must.

    Source: proc(5), ``MemAvailable``; the kernel's admin-guide, cgroup-v1/memory and cgroup-v2.
    """
    found = [_kib((proc / "meminfo").read_text(), "MemAvailable") >> 10]
    for line in (proc / "self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            root, limit, usage = (
                cgroups / "memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
            prefix = "total_"
        elif not controllers:
            root, limit, usage, prefix = cgroups, "memory.max", "memory.current", ""
        else:
            continue
        group = root / path.lstrip("/")
        # A container may be told of a path that only the host can see: its own root is seen then.
        for folder in (group, *(above for above in group.parents if above.is_relative_to(root))):
            try:
                most = (folder / limit).read_text().strip()
                used = int((folder / usage).read_text())
                stat = (folder / "memory.stat").read_text()
                files = sum(
                    int(value)
                    for name, value in map(str.split, stat.splitlines())
                    if name in (f"{prefix}active_file", f"{prefix}inactive_file")
                )
            except FileNotFoundError:
                continue
            if most != "max":
                found.append((int(most) - used + files) >> 20)
    return min(found)


def _free(notes: list[_Note]) -> tuple[int, str]:
    """Megabytes for further machines, and how that comes."""
    shared_mb = sum({note.shared: note.shared_mb for note in notes if note.shared}.values())
    ours = f"machines of ours that run: {len(notes)}"
    if (given := os.environ.get(VARIABLE)) is not None:
        if not given.isdecimal():
            raise MachineError(f"{VARIABLE} is a whole number of MB, not {given!r}")
        kept_mb = shared_mb + sum(note.mb for note in notes)
        return int(given) - kept_mb, f"{VARIABLE} allows {given} MB, {ours}, with {kept_mb} MB"
    host_mb = available_mb()
    yet_mb = shared_mb + sum(max(0, note.mb - note.touched_mb) for note in notes)
    return host_mb - HOST_MB - yet_mb, (
        f"{host_mb} MB are available, {HOST_MB} MB stay with the host, {ours}, with {yet_mb} MB "
        "to come beyond what they have by now"
    )


def _refusal(free_mb: int, why: str) -> str:
    return (
        f"{max(0, free_mb)} MB are free for it: {why}. Close some, use fewer or smaller machines, "
        f"or set {VARIABLE} to what all of them may take together"
    )


@contextlib.contextmanager
def _noting() -> Iterator[Path]:
    """The folder of the notes, for this process and thread alone."""
    folder = cache_root() / "run" / "rooms"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(folder):
            yield folder
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        kind = OutOfSpace if full else MachineError
        raise kind(f"a machine cannot be noted in {folder}: {error.strerror}") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with unlocked_at_end(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _notes(folder: Path) -> list[_Note]:
    """What living owners have noted; the notes of dead ones are removed."""
    notes = []
    for path in folder.iterdir():
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # given back just now, which needs no lock
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            notes.append(_Note(**json.loads(os.pread(file, _NOTE_BYTES, 0))))
        finally:
            os.close(file)
    return notes


def _give_back(path: Path, file: int) -> None:
    path.unlink(missing_ok=True)
    os.close(file)


def _namespace() -> int:
    """The one in which our process ids have a meaning."""
    return Path("/proc/self/ns/pid").stat().st_ino


def _kib(text: str, name: str) -> int:
    """A field of ``/proc/meminfo`` or ``/proc/PID/status``, 0 where there is none."""
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0
