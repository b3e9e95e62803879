"""The cache of saved states: folders on disk, shared by processes, limited in size.

A state's folder holds ``memory`` (the guest's RAM, sparse), ``device`` (the rest of the machine),
``disk.0.qcow2`` ... (what changed over the image's disk, oldest first; those of an earlier state
are hard links, so every state stands alone), ``state.json``, and ``kept/`` with files that somebody
wants to have with it. Responsible for building a folder
so that a crash leaves nothing, publishing it at once, and never taking one away from its users.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from cua_gym.errors import MachineError, OutOfSpace, StateMismatch
from cua_gym.forked import unlocked_at_end
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.qemu.disk import BaseDisk
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.ramstream import split_stream

__all__ = ["KEPT", "Draft", "Lease", "StateInfo", "StateStore"]

FORMAT = 1
KEPT = "kept"


@dataclass(frozen=True, slots=True)
class StateInfo:
    """What ``state.json`` says.

    Attributes:
        hardware, base: what `Hardware.as_dict` and `BaseDisk.identity` said when it was saved.
        screen: (width, height) of the picture when it was saved.
        cursor: where the pointer was.
        deltas: how many disk layers lie over the image.
    """

    key: str
    spec: dict[str, Any]
    hardware: dict[str, Any]
    base: dict[str, Any]
    screen: tuple[int, int]
    cursor: tuple[int, int]
    deltas: int
    format: int = FORMAT

    @classmethod
    def parse(cls, text: str) -> StateInfo:
        """From JSON; ValueError, TypeError or KeyError if it is not ours."""
        values = json.loads(text)
        for name in ("screen", "cursor"):
            values[name] = tuple(values[name])
        return cls(**values)

    def check(self, hardware: Hardware, base: BaseDisk) -> None:
        """Refuse a state that this machine cannot become.

        Raises:
            StateMismatch: says each difference.
        """
        differences = hardware.differences(self.hardware) + base.differences(self.base)
        if self.format != FORMAT:
            differences = [f"its format is {self.format}, this version reads {FORMAT}"]
        if differences:
            raise StateMismatch(
                f"the saved state {self.key!r} does not fit: {'; '.join(differences)}. "
                "It must be made again"
            )


@dataclass(slots=True)
class Lease:
    """A state in use: open files, and a shared lock that keeps the folder in the cache."""

    info: StateInfo
    folder: Path
    memory: int
    device: int
    deltas: list[int]
    _lock: int

    @classmethod
    def open(cls, folder: Path) -> Lease:
        """Open a state's folder and mark it as used now.

        Raises:
            FileNotFoundError: there is no such state.
            StateMismatch: ``state.json`` is not readable as ours.
        """
        with contextlib.ExitStack() as stack:

            def take(name: str, flags: int = os.O_RDONLY) -> int:
                fd = os.open(folder / name, flags | os.O_CLOEXEC)
                stack.callback(os.close, fd)
                return fd

            lock = take("state.json")
            fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(lock)
            try:
                info = StateInfo.parse((folder / "state.json").read_text())
            except (ValueError, TypeError, KeyError) as error:
                raise StateMismatch(f"{folder}/state.json is not readable: {error}") from error
            deltas = [take(f"disk.{index}.qcow2") for index in range(info.deltas)]
            lease = cls(info, folder, take("memory"), take("device"), deltas, lock)
            stack.pop_all()
            return lease

    def close(self) -> None:
        """Let the state go; idempotent."""
        fds = [*self.deltas, *(fd for fd in (self.memory, self.device, self._lock) if fd >= 0)]
        self.deltas, self.memory, self.device, self._lock = [], -1, -1, -1
        for fd in fds:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@dataclass(slots=True)
class Draft:
    """A state being made: nameless files that vanish with this process until published."""

    folder: Path
    stream: int = -1
    memory: int = -1
    device: int = -1
    disk: int = -1
    _open: list[int] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.stream, self.memory, self.device, self.disk = (self._file() for _ in range(4))
        # QEMU, as another account, opens the memory anew and for writing although it maps it
        # privately (only QEMU 9 can do otherwise); the folders above are closed to others.
        os.fchmod(self.memory, 0o666)
        return self

    def __exit__(self, *exc: object) -> None:
        while self._open:
            os.close(self._open.pop())

    def _file(self) -> int:
        try:
            fd = os.open(self.folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
                raise MachineError(
                    f"the file system of {self.folder} has no nameless files (O_TMPFILE); "
                    "move the cache to another one with XDG_CACHE_HOME"
                ) from error
            raise
        self._open.append(fd)
        return fd

    def split(self, memory_bytes: int) -> None:
        """Make memory and device of the stream. The guest need not stand still for it any more.

        Raises:
            OutOfSpace: the disk is full.
            MachineError: the stream is not understood.
        """
        try:
            os.lseek(self.stream, 0, os.SEEK_SET)
            split_stream(self.stream, self.memory, self.device, block="ram0", size=memory_bytes)
            os.ftruncate(self.stream, 0)
        except OSError as error:
            raise self.typed(error, memory_bytes) from error

    def typed(self, error: Exception, memory_bytes: int) -> MachineError:
        """What went wrong in writing a state, as one of ours; a full disk with the numbers."""
        if isinstance(error, MachineError):
            return error
        if not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
            return MachineError(f"cannot save: {error}")
        free = shutil.disk_usage(self.folder).free
        needed = 2 * memory_bytes  # as QEMU writes it, and for a while as the state has it, too
        return OutOfSpace(
            f"no space to save a state in {self.folder}: up to {needed >> 20} MiB are needed, "
            f"{free >> 20} MiB are free. Remove states, or move the cache with XDG_CACHE_HOME"
        )

    def link(self, folder: Path, info: StateInfo, below: list[int]) -> None:
        """Give the files their names in ``folder``, ``state.json`` last."""
        names = {"memory": self.memory, "device": self.device}
        for index, fd in enumerate([*below, self.disk]):
            names[f"disk.{index}.qcow2"] = fd
        fds = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name, fd in names.items():
                # Only with a folder's descriptor does Python call linkat, which can follow links.
                try:
                    os.link(str(fd), folder / name, src_dir_fd=fds, follow_symlinks=True)
                except FileNotFoundError:
                    # A layer of an earlier state whose last name went meanwhile.
                    shutil.copyfile(f"/proc/self/fd/{fd}", folder / name)
        finally:
            os.close(fds)
        (folder / "state.json").write_text(json.dumps(asdict(info), indent=1))


class StateStore:
    """States by name, least recently used ones removed beyond a size."""

    def __init__(self, root: Path, limit_bytes: int) -> None:
        """Open or make the store; folders of builders that died are swept out."""
        self.root = root
        self.limit_bytes = limit_bytes
        for folder in (root, root / "locks"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sweep()

    def folder(self, spec: MachineSpec, base: BaseDisk, key: str) -> Path:
        """Where the state of that name lies, or would. Each build of an image has its own."""
        text = json.dumps([asdict(spec), base.digest, key])
        return self.root / hashlib.sha256(text.encode()).hexdigest()[:24]

    def open(self, folder: Path) -> Lease | None:
        """The state in that folder, in use until its lease is closed; None if there is none."""
        try:
            return Lease.open(folder)
        except FileNotFoundError:
            return None

    def list(self) -> builtins.list[tuple[Path, StateInfo, int, float]]:
        """Folder, description, bytes on disk and time of last use, oldest use first."""
        found = []
        for folder in self.root.iterdir():
            try:
                info = StateInfo.parse((folder / "state.json").read_text())
                used = (folder / "state.json").stat().st_mtime
                size = sum(_bytes(path) for path in folder.rglob("*"))
            except (OSError, ValueError, TypeError, KeyError):
                continue  # no state, or one that goes away just now
            found.append((folder, info, size, used))
        return sorted(found, key=lambda entry: entry[3])

    @contextlib.contextmanager
    def building(self, folder: Path) -> Iterator[None]:
        """Hold the right to make this state; others wait, then look again."""
        with self._locked(folder.name):
            yield

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        # The file stays: to remove it would split waiters from newcomers.
        path = self.root / "locks" / name
        with unlocked_at_end(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def draft(self) -> Draft:
        """Nameless files for a new state; a context manager."""
        return Draft(self.root)

    def publish(
        self,
        draft: Draft,
        info: StateInfo,
        target: Path,
        below: builtins.list[int],
        kept: Mapping[str, bytes] | None = None,
    ) -> None:
        """Make the draft the state in ``target``, whole or not at all; an older one there goes.

        Args:
            below: open disk layers of the state that the draft stands on, oldest first.
            kept: files for its folder ``kept``, by path.
        """
        with self._locked("publishing"), self._scratch() as scratch:
            fresh = scratch / "new"
            fresh.mkdir(mode=0o700)
            draft.link(fresh, info, below)
            for name, data in (kept or {}).items():
                path = fresh / KEPT / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            if target.exists():
                # Users of the old one hold its files open and do not miss the names.
                target.rename(scratch / "old")
            fresh.rename(target)
        self.trim(keep=target)

    def remove(self, folder: Path) -> bool:
        """Remove a state unless somebody uses it; whether it is gone."""
        try:
            lock = os.open(folder / "state.json", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        with unlocked_at_end(lock):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with self._scratch() as scratch:
                    folder.rename(scratch / "old")
            except BlockingIOError:
                return False
        return True

    def discard(self, folder: Path) -> None:
        """Take a state's names away; its files go with the last one who has them open."""
        with self._scratch() as scratch, contextlib.suppress(FileNotFoundError):
            folder.rename(scratch / "old")

    def trim(self, keep: Path | None = None) -> None:
        """Remove the least recently used states beyond the limit."""
        states = self.list()
        total = sum(size for _, _, size, _ in states)
        for folder, _, size, _ in states:
            if total <= self.limit_bytes:
                return
            if folder != keep and self.remove(folder):
                total -= size

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A folder on the same disk, locked while its owner lives, removed at the end."""
        path = Path(tempfile.mkdtemp(prefix=".scratch-", dir=self.root))
        with unlocked_at_end(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)

    def _sweep(self) -> None:
        for path in self.root.glob(".scratch-*"):
            try:
                lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            with unlocked_at_end(lock):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
                except BlockingIOError:
                    continue  # its owner lives


def _bytes(path: Path) -> int:
    """Bytes on disk; a layer shared by several states counts once in all."""
    status = path.stat()
    return status.st_blocks * 512 // max(1, status.st_nlink)
