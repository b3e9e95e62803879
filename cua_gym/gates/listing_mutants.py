"""Variants of a listing: names, rights and hashes of a folder (`evaluators.files.LISTING`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cua_gym.gates.variants import Content, Variant, place, spread

__all__ = ["broken", "is_listing"]

Record = tuple[bytes, bytes, bytes | None]
"""What stands before the path, the target of a link, and the hash of a file."""


def is_listing(data: bytes) -> bool:
    """Whether this is a listing, by how one begins."""
    return data.startswith(b"d\t") and b"\0" in data


def _read(data: bytes) -> dict[bytes, Record]:
    fields = iter(data.split(b"\0"))
    found: dict[bytes, Record] = {}
    for head in fields:
        if not head:
            break
        about, _, path = head.rpartition(b"\t") if head.count(b"\t") == 5 else _parted(head)
        found[path] = about, next(fields, b""), None
    for line in fields:
        digest, _, path = line.partition(b" ")
        if path[3:] in found:
            about, target, _ = found[path[3:]]
            found[path[3:]] = about, target, digest
    return found


def _parted(head: bytes) -> tuple[bytes, bytes, bytes]:
    """Of a path with a tab in it."""
    parts = head.split(b"\t", 5)
    return b"\t".join(parts[:5]), b"\t", parts[-1]


def _written(records: dict[bytes, Record]) -> bytes:
    entries = b"".join(
        about + b"\t" + path + b"\0" + target + b"\0"
        for path, (about, target, _) in records.items()
    )
    hashes = b"".join(
        digest + b" *./" + path + b"\0"
        for path, (_, _, digest) in records.items()
        if digest is not None
    )
    return entries + b"\0" + hashes


def broken(start: bytes | None, solved: bytes) -> list[Content]:
    """Each changed entry undone, but for hidden ones, which programs write by themselves."""
    before, after = _read(start or b""), _read(solved)
    every = [*after, *(path for path in before if path not in after)]
    changed = [
        path
        for path in every
        if _told(before.get(path)) != _told(after.get(path))
        and not any(part.startswith(b".") for part in path.split(b"/"))
    ]

    def undo(paths: Sequence[bytes]) -> bytes:
        mixed = {**after, **{path: before[path] for path in paths if path in before}}
        return _written({k: v for k, v in mixed.items() if k in before or k not in paths})

    if len(changed) < 2:
        return []
    return [
        Variant("reverted", place(path.decode("utf-8", "replace")), partial(undo, [path]))
        for path in spread(changed)
    ]


def _told(record: Record | None) -> tuple[list[bytes], bytes, bytes | None] | None:
    """What counts of a record: the size of a folder does not."""
    if record is None:
        return None
    about, target, digest = record
    parts = about.split(b"\t")
    return (parts[:-1] if parts[0] == b"d" else parts), target, digest
