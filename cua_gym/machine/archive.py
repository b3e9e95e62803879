"""Folders as tar streams: packing one of ours, unpacking one that may be hostile.

`unpack` reads what a guest sent, and a guest is under the agent's control. Only plain files and
folders are created, each step below an open folder handle that refuses links, so neither the
archive nor a link planted in the target can lead outside. Everything else is written down in
``.links.json`` and never created:

    [{"name": "leak", "kind": "link", "target": "/etc/passwd"}, ...]

``kind`` is ``link``, ``hardlink``, ``special`` (device, pipe, ...) or ``refused`` (absolute, with
``..``, below a link, twice, too deep, the record's own name), with ``target`` where there is one.
Odd bytes in names are JSON's lone surrogates, as `os.fsdecode` gives them.

Leaves running tar in the guest to `ssh`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, Self

from cua_gym.errors import MachineError, OutOfSpace
from cua_gym.machine.tree import remove_tree

__all__ = ["LINKS_NAME", "MAX_ENTRIES", "TAR_CREATE", "pack", "unpack"]

LINKS_NAME = ".links.json"
MAX_ENTRIES = 100_000

TAR_CREATE = (
    *("tar", "--create", "--file=-", "--format=gnu", "--hard-dereference"),
    *("--ignore-failed-read", "--warning=none"),
)
"""What `unpack` reads: raw names, no sparse maps, hard links sent as the files they are."""

_READ_LIMIT = 256 << 10  # of one read; a long name has at most PATH_MAX
_PATH_LIMIT = 4000
_DEPTH_LIMIT = 100  # whoever reads the folder may recurse
_ENTRY_OVERHEAD = 8 << 10  # headers and padding of one entry, generously


class Reader(Protocol):
    """A byte stream; ``read`` may give less than asked and ``b""`` at the end."""

    def read(self, size: int, /) -> bytes: ...


class Writer(Protocol):
    """A byte stream that takes all it is given."""

    def write(self, data: bytes, /) -> object: ...


def pack(source: Path, stream: Writer, *, owner: tuple[int, int] | None = None) -> None:
    """Write the contents of a host folder as tar, links as links; sockets are left out.

    Args:
        owner: (uid, gid) that every entry gets; None keeps the host's numbers.
    """

    def own(member: tarfile.TarInfo) -> tarfile.TarInfo:
        if owner is not None:
            member.uid, member.gid = owner
            member.uname = member.gname = ""
        return member

    with tarfile.open(
        fileobj=stream,  # type: ignore[call-overload]  # "w|" needs write() alone
        mode="w|",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    ) as archive:
        waiting = sorted(source.iterdir(), reverse=True)
        while waiting:
            child = waiting.pop()
            name = str(child.relative_to(source))
            archive.add(child, arcname=name, recursive=False, filter=own)
            if child.is_dir() and not child.is_symlink():
                waiting += sorted(child.iterdir(), reverse=True)


def unpack(
    stream: Reader, target: Path, *, limit_bytes: int, max_entries: int = MAX_ENTRIES
) -> None:
    """Unpack a tar stream into a new host folder; on failure the folder is gone again.

    Args:
        target: must not exist, or be an empty folder (not a link).
        limit_bytes: of file contents in all, as the headers announce them, so that a sparse
            terabyte is refused before its first byte.

    Raises:
        FileExistsError: the target holds something already.
        OutOfSpace: more bytes or entries than allowed, or the host's disk is full.
        MachineError: the stream is not a whole archive.
    """
    if target.is_symlink() or (target.exists() and any(target.iterdir())):
        raise FileExistsError(errno.EEXIST, "not a new or empty folder", str(target))
    target.mkdir(parents=True, exist_ok=True)
    try:
        source = _Source(stream, limit_bytes, max_entries)
        with _Tree(target) as tree:
            _unpack(source, tree, limit_bytes, max_entries)
    except BaseException as error:
        remove_tree(target)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutOfSpace(f"the host's disk is full while copying into {target}") from error
        raise


def _unpack(stream: _Source, tree: _Tree, limit_bytes: int, max_entries: int) -> None:
    room = limit_bytes
    try:
        with tarfile.TarFile(
            fileobj=stream,  # type: ignore[arg-type]  # read(), seek() and tell() are enough
            encoding="utf-8",
            errors="surrogateescape",
        ) as archive:
            for count, member in enumerate(archive):
                if count >= max_entries:
                    raise OutOfSpace(f"the folder holds more than {max_entries} entries")
                archive.members.clear()  # type: ignore[attr-defined]  # it keeps every header otherwise
                if member.issparse():
                    raise MachineError("the guest's archive has a sparse file")
                if member.isreg():
                    room -= member.size
                    if room < 0:
                        raise OutOfSpace(
                            f"the folder holds more than {limit_bytes} bytes "
                            f"({member.name!r} alone {member.size})"
                        )
                _place(archive, member, tree)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        # A forged header may hold a NUL, a time that is no number, a thousand extensions in a row.
        raise MachineError(f"the guest's archive is broken: {error}") from error
    if stream.last != bytes(tarfile.BLOCKSIZE):
        # tarfile by itself takes a damaged or missing header for the archive's end.
        raise MachineError("the guest's archive is broken or cut")
    while stream.read(64 << 10):
        pass  # padding; the sender must be able to finish
    tree.write_links()


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, tree: _Tree) -> None:
    name = member.name
    parts = tuple(
        part.encode("utf-8", "surrogateescape") for part in name.split("/") if part not in ("", ".")
    )
    if not parts and member.isdir():
        return
    outside = name.startswith("/") or b".." in parts or not parts
    too_long = len(name) > _PATH_LIMIT or len(parts) > _DEPTH_LIMIT
    if outside or too_long or tree.reserved(parts):
        tree.refuse(name, "refused", member.linkname)
    elif member.issym():
        tree.links.add(parts)
        tree.refuse(name, "link", member.linkname)
    elif member.islnk():
        tree.refuse(name, "hardlink", member.linkname)
    elif member.isdir():
        tree.attempt(name, lambda: tree.folder(parts))
    elif member.isreg():
        tree.attempt(name, lambda: tree.file(parts, archive, member))
    else:
        tree.refuse(name, "special", "")


class _Source:
    """The stream as tarfile's file: forward only, and bounded in all and in each read.

    tarfile reads a header's extension, such as a long name, at once, however long it says it is.

    Attributes:
        last: what the last read gave; where tarfile stops, that is the archive's last header.
    """

    def __init__(self, stream: Reader, limit_bytes: int, max_entries: int) -> None:
        self._stream = stream
        self._left = limit_bytes + max_entries * _ENTRY_OVERHEAD
        self._at = 0
        self.last = b""

    def read(self, size: int) -> bytes:
        if size > _READ_LIMIT:
            raise MachineError(f"the guest's archive has an extension of {size} bytes")
        parts = bytearray()
        while len(parts) < size and (part := self._stream.read(size - len(parts))):
            parts += part
        self._at += len(parts)
        self._left -= len(parts)
        if self._left < 0:
            raise OutOfSpace("the guest's archive is longer than its allowed contents")
        self.last = bytes(parts)
        return self.last

    def tell(self) -> int:
        return self._at

    def seek(self, position: int) -> None:
        if position < self._at:
            raise MachineError("the guest's archive has a negative size")
        while self._at < position and self.read(min(position - self._at, _READ_LIMIT)):
            pass


class _Tree:
    """The target, entered only through open folders; a link anywhere on the way is an error."""

    def __init__(self, target: Path) -> None:
        self._root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._last: tuple[tuple[bytes, ...], int] = ((), os.dup(self._root))
        self.links: set[tuple[bytes, ...]] = set()
        self._records: list[dict[str, str]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._last[1])
        os.close(self._root)

    def refuse(self, name: str, kind: str, target: str) -> None:
        record = {"name": name.removeprefix("./"), "kind": kind}
        self._records.append(record | ({"target": target} if target else {}))

    def reserved(self, parts: tuple[bytes, ...]) -> bool:
        """Whether it is the record's own place, or at or below a link that was not made."""
        below_link = any(parts[:depth] in self.links for depth in range(1, len(parts) + 1))
        return parts[0] == LINKS_NAME.encode() or below_link

    def attempt(self, name: str, make: Callable[[], object]) -> None:
        """Make it, or write it down when its place is taken or cannot exist on this host."""
        try:
            make()
        except OSError as error:
            if error.errno not in (
                *(errno.EEXIST, errno.ENOTDIR, errno.ELOOP),
                *(errno.ENAMETOOLONG, errno.EISDIR, errno.EILSEQ, errno.EINVAL),
            ):
                raise
            self.refuse(name, "refused", "")

    def folder(self, parts: tuple[bytes, ...]) -> int:
        """An open handle of a folder below the target, made where absent."""
        if parts == self._last[0]:
            return self._last[1]
        at = os.dup(self._root)
        for part in parts:
            try:
                try:
                    os.mkdir(part, 0o755, dir_fd=at)
                except FileExistsError:
                    pass
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            finally:
                os.close(at)
            at = below
        os.close(self._last[1])
        self._last = (parts, at)
        return at

    def file(
        self, parts: tuple[bytes, ...], archive: tarfile.TarFile, member: tarfile.TarInfo
    ) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        mode = member.mode & 0o755 | 0o600
        handle = os.open(parts[-1], flags, mode, dir_fd=self.folder(parts[:-1]))
        with os.fdopen(handle, "wb") as out:
            contents = archive.extractfile(member)
            assert contents is not None  # it is a regular file
            shutil.copyfileobj(contents, out, _READ_LIMIT)
            out.flush()
            os.utime(handle, (member.mtime, member.mtime))

    def write_links(self) -> None:
        if not self._records:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(LINKS_NAME, flags, 0o644, dir_fd=self._root)
        with os.fdopen(handle, "w", encoding="ascii") as out:
            json.dump(self._records, out, indent=1)
