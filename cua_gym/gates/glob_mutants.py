"""Variants of what a glob found, entry by entry; a database's files are one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath

from cua_gym.gates import formats, sqlite_mutants
from cua_gym.gates.mutant import Change
from cua_gym.gates.variants import MOST, Content, Variant, halves, place, spread
from cua_gym.grading.items import Item

__all__ = ["variants"]

_PARTS = ("", "-wal", "-journal", "-shm")
_KEPT = 20
"""Entries that are written in other ways."""

Files = Mapping[str, bytes]
Changes = Mapping[str, bytes | None]
Found = tuple[list[Variant[Change]], list[Variant[Change]]]


def variants(before: Item, after: Item) -> Found:
    """Those that break what was made of the entries, and those that keep it."""
    old, new = (item.files() if item.present else {} for item in (before, after))
    databases = {
        path: [path + part for part in _PARTS if path + part in new]
        for path, data in new.items()
        if data.startswith(sqlite_mutants.MAGIC)
    }
    parts = {path + part for path in databases for part in _PARTS}
    plain = _Plain(
        PurePosixPath(*_fixed(after.source)),
        {path: data for path, data in old.items() if path not in parts},
        {path: data for path, data in new.items() if path not in parts},
    )
    broken, kept = list(plain.broken()), list(plain.kept())
    for path, files in databases.items():
        name = plain.below(path) if len(databases) > 1 else ""
        found = _database(path, name, files, old, new)
        broken, kept = broken + found[0], kept + found[1]
    if len(after.entries) > 1:
        turned = replace(after, entries=after.entries[::-1])
        kept.append(Variant("reordered", "", lambda: turned))
    return broken, kept


def _fixed(pattern: str) -> list[str]:
    """The folders of a pattern before its first wildcard."""
    parts = PurePosixPath(pattern).parts[:-1]
    wild = next((n for n, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts))
    return list(parts[:wild])


def _database(
    path: str, name: str, files: Sequence[str], old: Files, new: Files
) -> tuple[list[Variant[Change]], list[Variant[Change]]]:
    def parts(of: Files) -> dict[str, bytes]:
        return {part: of[path + part] for part in _PARTS if path + part in of}

    before, after = parts(old), parts(new)
    if before == after:
        return [], []
    rest = {file: None for file in files if file != path}
    found = (
        sqlite_mutants.broken(before if "" in before else None, after),
        list(sqlite_mutants.kept(after)),
    )
    broken, kept = ([_put(v, path, name, rest) for v in one] for one in found)
    return broken, kept


def _put(variant: Content, path: str, name: str, more: Changes) -> Variant[Change]:
    """A variant of one entry as one of the glob."""

    def make() -> Change:
        return {**more, path: variant.make()}

    where = ":".join(part for part in (name, variant.where) if part)
    return Variant(variant.what, where, make)


@dataclass(frozen=True, slots=True)
class _Plain:
    """The files of a glob, before and after."""

    base: PurePosixPath
    old: Files
    new: Files

    @property
    def changed(self) -> list[str]:
        return [path for path, data in self.new.items() if self.old.get(path) != data]

    @property
    def gone(self) -> list[str]:
        return [path for path in self.old if path not in self.new]

    def below(self, path: str) -> str:
        """A path as part of a name."""
        inside = PurePosixPath(path).is_relative_to(self.base)
        return place(str(PurePosixPath(path).relative_to(self.base)) if inside else path)

    def broken(self) -> Iterator[Variant[Change]]:
        """Half of the changes undone, each on its own; each file removed, misnamed, altered."""
        every = [*self.changed, *self.gone]
        single = len(every) == 1
        yield from halves(every, lambda paths: self._undo(paths)())
        for path in spread(self.gone):
            if not single:
                yield Variant("reverted", self.below(path), self._undo([path]))
        moved = self._moved()
        for path in spread(self.changed):
            where, data = self.below(path), self.new[path]
            if not single:
                yield Variant("reverted", where, self._undo([path]))
            if path in self.old:
                yield Variant("removed", where, partial(dict, {path: None}))
            misnamed: Changes = {path: None, _beside(path, self.new): data}
            yield Variant("misnamed", where, partial(dict, misnamed))
            if data:
                yield Variant("emptied", where, partial(dict, {path: b""}))
            if path not in moved:
                broken, _ = formats.variants(path, self.old.get(path), data)
                for variant in spread(broken, MOST):
                    yield _put(variant, path, where, {})

    def kept(self) -> Iterator[Variant[Change]]:
        """Each file that is new or changed, and was not just moved, in the ways of its format."""
        paths = [path for path in self.changed if path not in self._moved()]
        for path in spread(paths, _KEPT):
            _, kept = formats.variants(path, self.old.get(path), self.new[path])
            for variant in kept:
                yield _put(variant, path, self.below(path), {})

    def _undo(self, paths: Sequence[str]) -> Callable[[], Change]:
        return partial(dict, {path: self.old.get(path) for path in paths})

    def _moved(self) -> set[str]:
        """New files with the very content of one that is gone."""
        lost = {self.old[path] for path in self.gone}
        return {p for p in self.changed if p not in self.old and self.new[p] in lost}


def _beside(path: str, taken: Files) -> str:
    """Another name in the same folder, with the same ending, that nothing has."""
    whole = PurePosixPath(path)
    number = 1
    while (other := str(whole.with_name(f"{whole.stem}-{number}{whole.suffix}"))) in taken:
        number += 1
    return other
