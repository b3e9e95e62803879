"""Evidence folders made in a line, as the collector would have left them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from cua_gym.gates.generic import generic_mutants
from cua_gym.gates.mutant import Mutant, write
from cua_gym.grading.checkpoints import Checkpoint
from cua_gym.grading.items import MANIFEST, VERSION, Entry, Evidence
from cua_gym.grading.library import CheckLibrary

ROOT = Path(__file__).parents[2]

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
    at: str = "end"


@dataclass(frozen=True, slots=True)
class At:
    """A file at a path of its own, None when nothing is there."""

    path: str
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Glob:
    """What a pattern found; a plain dict is all below /home/user."""

    pattern: str
    files: Mapping[str, bytes]


Found = bytes | None | Mapping[str, bytes] | Printed | Records | At | Glob


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
            case Mapping():
                found = Glob("/home/user/**", found)
            case _:
                pass
        status, at = None, "end"
        match found:
            case At(path, data):
                probe, source = "file", path
                stored = name + PurePosixPath(path).suffix
                entries = [] if data is None else [entry(path, data, stored)]
            case Printed(data, status):
                probe, source = "command", f"print {name}"
                entries = [entry(source, data, f"{name}.txt")]
            case Records(probe, data, suffix, at):
                source = ""
                entries = [entry("", data, name + suffix)]
            case Glob(source, files):
                probe = "glob"
                entries = [
                    entry(path, data, f"{name}/{number:04}{PurePosixPath(path).suffix}")
                    for number, (path, data) in enumerate(sorted(files.items()))
                ]
        return {
            "name": name,
            "kind": probe,
            "source": source,
            "state": "present" if entries else "absent",
            "note": "" if entries else f"{source} does not exist",
            "exit": status,
            "at": at,
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


@dataclass(frozen=True, slots=True)
class Judged:
    """Every mutant of a solved task, and the names of those on which the checks are wrong."""

    mutants: tuple[Mutant, ...]
    offenders: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return [mutant.name for mutant in self.mutants]

    def kinds(self) -> set[str]:
        """The last words of the offenders' names."""
        return {name.rpartition(":")[2] for name in self.offenders}


Judge = Callable[..., Judged]


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    """``judged(start, solved, point("text.equals", "note", expected="x"))``.

    ``source`` is a checks.py of the task's own, imports given.
    """

    def run(start: Evidence, solved: Evidence, *points: Checkpoint, source: str = "") -> Judged:
        hidden = tmp_path / "hidden"
        hidden.mkdir(exist_ok=True)
        head = "from cua_gym.grading.check import *\nfrom cua_gym.grading.check import Verdict\n"
        (hidden / "checks.py").write_text(head + source)
        library = CheckLibrary(ROOT / "evaluators", hidden)
        checks = [(one, library.find(one.check)) for one in points]

        def score(evidence: Evidence) -> float:
            total = 0.0
            for one, check in checks:
                seen = evidence.only(one.evidence) if one.listed else evidence[one.evidence[0]]
                value = check(seen, **one.args).value
                total += one.weight * (1 - value if one.negate else value)
            return max(0.0, total)

        assert score(solved) == 1.0
        mutants = tuple(generic_mutants(start, solved, points))
        offenders = []
        for number, mutant in enumerate(mutants):
            folder = tmp_path / f"mutant-{number}"
            write(mutant, solved.folder, folder)
            value = score(Evidence(folder))
            if (value == 1.0) != mutant.keeps or (mutant.worthless and value):
                offenders.append(mutant.name)
            shutil.rmtree(folder)
        return Judged(mutants, tuple(offenders))

    return run


def point(check: str, *evidence: str, weight: float = 1.0, **args: Any) -> Checkpoint:
    """A checkpoint; of several evidences it is listed."""
    negate = args.pop("negate", False)
    return Checkpoint(
        check, weight, weight > 0, check, evidence, len(evidence) > 1, args, negate=negate
    )
