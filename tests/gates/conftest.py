"""Evidence folders made in a line, as the collector would have left them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

import pytest

from cua_gym.grading.items import MANIFEST, VERSION, Entry, Evidence

Make = Callable[..., Evidence]


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed."""

    data: bytes
    exit: int = 0


@dataclass(frozen=True, slots=True)
class Records:
    """What another kind of probe (``windows``, ``frame``) brought."""

    kind: str
    data: bytes
    suffix: str = ".json"


@dataclass(frozen=True, slots=True)
class At:
    """A file at a path of its own, None when nothing is there."""

    path: str
    data: bytes | None


Found = bytes | None | Mapping[str, bytes] | Printed | Records | At


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """``make("solved", note=b"...", box={"/home/user/a": b"..."}, answer="42")``."""

    def run(folder: str, /, *, answer: str | None = None, kind: str = "submit", **items: Found):
        return _write(tmp_path / folder, answer, kind, items)

    return run


def _write(folder: Path, answer: str | None, kind: str, items: Mapping[str, Found]) -> Evidence:
    folder.mkdir(parents=True)

    def entry(guest: str, data: bytes, stored: str) -> Entry:
        path = folder / stored
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return Entry(guest, "file", len(data), stored, hashlib.sha256(data).hexdigest())

    def record(name: str, found: Found) -> dict[str, object]:
        match found:
            case bytes() | None:
                found = At(f"/home/user/{name}.txt", found)
            case _:
                pass
        status = None
        match found:
            case At(path, data):
                probe, source = "file", path
                stored = name + PurePosixPath(path).suffix
                entries = [] if data is None else [entry(path, data, stored)]
            case Printed(data, status):
                probe, source = "command", f"print {name}"
                entries = [entry(source, data, f"{name}.txt")]
            case Records(probe, data, suffix):
                source = ""
                entries = [entry("", data, name + suffix)]
            case _:
                probe, source = "glob", "/home/user/**"
                entries = [
                    entry(path, data, f"{name}/{number:04}{PurePosixPath(path).suffix}")
                    for number, (path, data) in enumerate(sorted(found.items()))
                ]
        return {
            "name": name,
            "kind": probe,
            "source": source,
            "state": "present" if entries else "absent",
            "note": "" if entries else f"{source} does not exist",
            "exit": status,
            "entries": [asdict(one) for one in entries],
        }

    told = {"kind": kind, "answer": answer, "reason": None}
    every: dict[str, Found] = {
        "submission": At("submission.json", json.dumps(told, indent=1).encode()),
        "answer": At("answer.txt", None if answer is None else answer.encode()),
        **items,
    }
    manifest = {"version": VERSION, "items": [record(*one) for one in every.items()]}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return Evidence(folder)
