"""Reading what was collected: `Evidence` is a run's evidence folder, `Item` one thing in it.

Nothing here trusts the content: it was made by the agent. What lies in the folder is checked
against the hashes taken at collection, so that evidence changed afterwards is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cua_gym.errors import GradingError

__all__ = ["MANIFEST", "Altered", "Entry", "Evidence", "Fails", "Item"]

MANIFEST = "manifest.json"
VERSION = 1


class Fails(Exception):
    """The agent's work does not hold; a check raises it at any depth, `check` catches it."""

    def __init__(self, message: str, *, seen: Any = None, wanted: Any = None) -> None:
        super().__init__(message)
        self.seen = seen
        self.wanted = wanted


class Altered(GradingError):
    """What lies in the folder is not what was collected."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, folder or link that a probe found.

    Attributes:
        guest: its path in the guest, odd bytes as surrogate escapes.
        kind: ``file``, ``dir``, ``link`` or ``other``; only a file has content.
        stored: its file name in the evidence folder, None without content.
    """

    guest: str
    kind: str
    size: int
    stored: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One collected thing.

    Attributes:
        state: ``present``; ``absent``: it was looked for and is not there; ``refused``: it was
            there and not taken (too large, a link, a device), ``note`` says why.
        exit: a command's exit status.
        at: ``start``: taken before anybody acted; ``end``.
    """

    name: str
    kind: str
    source: str
    state: str
    folder: Path = field(repr=False)
    note: str = ""
    exit: int | None = None
    entries: tuple[Entry, ...] = ()
    at: str = "end"

    @property
    def present(self) -> bool:
        """Whether there is content to look at."""
        return self.state == "present"

    def path(self) -> Path:
        """The host file with its content, its hash verified.

        Raises:
            Fails: absent or refused, or a command that failed.
            Altered: the file was changed after collection.
        """
        if not self.present:
            raise Fails(f"{self.name}: {self.note or 'absent'} ({self.source})", seen=self.state)
        if self.exit:
            raise Fails(f"{self.name}: {self.source!r} exited with {self.exit}", seen=self.exit)
        if self.kind == "glob":
            raise GradingError(f"{self.name} is a glob of many files; look at its entries")
        return self.stored(self.entries[0])

    def stored(self, entry: Entry) -> Path:
        """The host file of one entry, its hash verified.

        Raises:
            GradingError: it has no content.
            Altered: it was changed after collection.
        """
        if entry.stored is None:
            raise GradingError(f"{self.name}: {entry.guest} is a {entry.kind}, without content")
        path = self.folder / entry.stored
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise Altered(f"evidence {path} cannot be read: {error}") from error
        if digest != entry.sha256:
            raise Altered(f"evidence {path} was changed after it was collected")
        return path

    def files(self) -> dict[str, bytes]:
        """Contents of all files that a glob found, by guest path.

        Raises:
            Fails: nothing matched it, or it was refused.
            GradingError: it is no glob.
        """
        if self.kind != "glob":
            raise GradingError(f"{self.name} is a {self.kind}; .files() is for a glob")
        if not self.present:
            raise Fails(f"{self.name}: {self.note or self.state} ({self.source})", seen=self.state)
        return {e.guest: self.stored(e).read_bytes() for e in self.entries if e.kind == "file"}

    def bytes(self) -> bytes:
        """Its content.

        Raises:
            Fails: absent, refused, or a command that failed.
        """
        return self.path().read_bytes()

    def text(self, encoding: str = "utf-8-sig") -> str:
        """Its content as text, newlines as they are; by default UTF-8 with or without a BOM.

        Raises:
            Fails: absent, refused, or not in this encoding.
        """
        data = self.bytes()
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as error:
            raise Fails(f"{self.name}: not {encoding} text: {error}", seen=data[:80]) from error

    def records(self) -> list[dict[str, Any]]:
        """A window list or accessibility tree: our own JSON, so a fault in it is ours.

        Raises:
            Fails: it could not be taken from the desktop.
            GradingError: it is not what the collector writes.
        """
        try:
            value = json.loads(self.bytes())
        except ValueError as error:
            raise GradingError(f"{self.name}: not the JSON that was collected: {error}") from error
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise GradingError(f"{self.name}: not a list of records")
        return value


class Evidence(Mapping[str, Item]):
    """A run's evidence folder as a mapping from name to `Item`.

    Raises:
        GradingError: the folder or its manifest is missing or broken.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / MANIFEST
        try:
            data = json.loads(path.read_bytes())
            if data["version"] != VERSION:
                raise GradingError(
                    f"{path} is of version {data['version']!r:.20}, and this cua_gym reads "
                    f"{VERSION}; grade it with the one that recorded it"
                )
            items = [_item(folder, record) for record in data["items"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise GradingError(f"{path}: not a manifest of evidence: {error!r}") from error
        self._items = {item.name: item for item in items}

    def only(self, names: Collection[str]) -> Evidence:
        """The same folder, with just these names visible."""
        part = object.__new__(Evidence)
        part.folder = self.folder
        part._items = {name: self[name] for name in names}
        return part

    def __getitem__(self, name: str) -> Item:
        if name not in self._items:
            have = ", ".join(sorted(self._items)) or "nothing"
            raise GradingError(f"no evidence {name!r} was collected; there is {have}")
        return self._items[name]

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def _item(folder: Path, record: Mapping[str, Any]) -> Item:
    entries = tuple(
        Entry(e["guest"], e["kind"], e["size"], e["stored"], e["sha256"]) for e in record["entries"]
    )
    for entry in entries:
        stored = entry.stored
        if stored is not None and (Path(stored).is_absolute() or ".." in Path(stored).parts):
            raise ValueError(f"stored path {stored!r} leaves the folder")
    return Item(
        name=record["name"],
        kind=record["kind"],
        source=record["source"],
        state=record["state"],
        folder=folder,
        note=record["note"],
        exit=record["exit"],
        entries=entries,
        at=record.get("at", "end"),
    )
