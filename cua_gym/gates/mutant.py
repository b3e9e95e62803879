"""A mutant: the evidence of a solved task with something changed, and what the score must do then.

A grader that holds takes away part of the score when what counts is changed (`breaks`) and none
when what does not count is (`keeps`). Authors write those that only they can think of in the
task's ``hidden/mutants.py``::

    from cua_gym.gates.mutant import breaks, keeps

    EXEMPT = {"newlines:script": "a shell script with CRLF does not run"}

    def mutants(params, start, solved):
        yield breaks("columns swapped", table=b"b,a\\n2,1\\n")
        yield keeps("saved by another program", book=data)

What can be changed of any evidence is made by `cua_gym.gates.generic`; grading is done elsewhere.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from cua_gym.errors import GradingError, TaskError
from cua_gym.grading.items import MANIFEST, Evidence, Item
from cua_gym.grading.library import authors_code, import_file

__all__ = [
    "Change",
    "Mutant",
    "breaks",
    "exempt",
    "exemptions",
    "keeps",
    "task_mutants",
    "unmatched",
    "worthless",
    "write",
]

Change = bytes | str | None | Mapping[str, bytes | None] | Item
"""What becomes of one evidence.

``bytes`` or text: the content of the file, or what the command printed. None: it is not there; a
command then failed without a word. A mapping, of a glob alone: the named guest paths have this
content, or with None are not there; all others stay. An `Item`, such as ``start["report"]``: what
was found in that other attempt, its state and exit status included.
"""

MUTANTS = "hidden/mutants.py"


@dataclass(frozen=True, slots=True)
class Mutant:
    """Changed evidence, and what must become of the score.

    Attributes:
        name: stable and readable, such as ``altered:report:line-3:digit``.
        keeps: the full score stays; otherwise part of it is lost.
        changes: evidence name to what becomes of it; all else is as the oracle left it.
        worthless: all of the score is lost.
    """

    name: str
    keeps: bool
    changes: Mapping[str, Change]
    worthless: bool = False


def breaks(name: str, /, **changes: Change) -> Mutant:
    """A mutant that must lose part of the score.

    Args:
        name: what was done, in a few words.
        changes: evidence name to `Change`; ``answer="..."`` is the submitted answer.
    """
    return _mutant(name, False, changes)


def keeps(name: str, /, **changes: Change) -> Mutant:
    """A mutant that must keep the full score; arguments as of `breaks`."""
    return _mutant(name, True, changes)


def worthless(name: str, /, **changes: Change) -> Mutant:
    """A mutant that must score 0; arguments as of `breaks`."""
    return replace(_mutant(name, False, changes), worthless=True)


def _mutant(name: str, keeps: bool, changes: Mapping[str, Change]) -> Mutant:
    if not name.strip():
        raise TaskError("a mutant needs a name, so that one can see which it was")
    if not changes:
        raise TaskError(f"mutant {name!r} changes nothing; name an evidence and its new content")
    for item, change in changes.items():
        if isinstance(change, bytes | str | Item) or change is None:
            continue
        if not isinstance(change, Mapping) or not all(
            isinstance(path, str) and (data is None or isinstance(data, bytes))
            for path, data in change.items()
        ):
            raise TaskError(
                f"mutant {name!r}: {item} becomes {change!r:.80}; it takes bytes, text, None, an "
                "item of evidence or, for a glob, a dict from guest path to bytes or None"
            )
    return Mutant(name, keeps, changes)


def task_mutants(
    folder: Path, params: Mapping[str, Any], start: Evidence, solved: Evidence
) -> Iterator[Mutant]:
    """The mutants of a task's own ``hidden/mutants.py``; none when it has no such file.

    Args:
        folder: the task's folder.
        params: the values of the seed that was attempted.
        start: evidence of doing nothing.
        solved: evidence of the oracle.

    Raises:
        TaskError: the file raises, yields something else, or a name twice.
    """
    path = folder / MUTANTS
    if not path.is_file():
        return
    with authors_code(str(path), TaskError):
        make = getattr(import_file(path), "mutants", None)
        if make is None:  # a file that has exemptions alone
            return
        found = list(make(json.loads(json.dumps(params)), start, solved))
    names: set[str] = set()
    for mutant in found:
        if not isinstance(mutant, Mutant):
            raise TaskError(f"{path}: mutants() yields {mutant!r:.80}; use breaks() and keeps()")
        if mutant.name in names:
            raise TaskError(f"{path}: two mutants are called {mutant.name!r}; rename one")
        names.add(mutant.name)
        if unknown := sorted(mutant.changes.keys() - solved.keys()):
            known = ", ".join(sorted(solved))
            raise TaskError(
                f"{path}: {mutant.name!r} changes {', '.join(unknown)}; the evidence is {known}"
            )
        yield mutant


def exemptions(folder: Path) -> dict[str, str]:
    """``EXEMPT`` of a task's ``hidden/mutants.py``: patterns of generic mutants, with reasons.

    Raises:
        TaskError: the file raises, or a reason is missing.
    """
    path = folder / MUTANTS
    if not path.is_file():
        return {}
    with authors_code(str(path), TaskError):
        found = getattr(import_file(path), "EXEMPT", {})
    if not isinstance(found, dict) or not all(
        isinstance(v, str) and v.strip() for kv in found.items() for v in kv
    ):
        raise TaskError(f"{path}: EXEMPT is a dict from a mutant's name or pattern to the reason")
    return dict(found)


def exempt(name: str, patterns: Sequence[str] | Mapping[str, str]) -> str | None:
    """The first pattern that a mutant's name matches (`fnmatch`, case counts), or None."""
    return next((p for p in patterns if fnmatch.fnmatchcase(name, p)), None)


def unmatched(names: Sequence[str], patterns: Sequence[str] | Mapping[str, str]) -> list[str]:
    """Patterns that no name matches: each excuses what does not exist, which is a fault."""
    return [p for p in patterns if not any(fnmatch.fnmatchcase(n, p) for n in names)]


def write(mutant: Mutant, base: Path, folder: Path) -> None:
    """Lay the mutant's evidence folder: the base with the changes, a manifest that fits.

    What did not change is a hard link to the base's file, so a thousand mutants take no room.

    Args:
        base: evidence folder of the solved task.
        folder: to be made.

    Raises:
        GradingError: the base has no such evidence, or it cannot be changed in this way.
    """
    manifest = json.loads((base / MANIFEST).read_bytes())
    names = [record["name"] for record in manifest["items"]]
    if unknown := sorted(mutant.changes.keys() - set(names)):
        raise GradingError(f"mutant {mutant.name!r}: no evidence {', '.join(unknown)} in {base}")
    changes = dict(mutant.changes)
    if "answer" in changes and "submission" not in changes and "submission" in names:
        changes["submission"] = _submission(base, changes["answer"])
    folder.mkdir(parents=True)
    layer = _Layer(mutant.name, base, folder)
    manifest["items"] = [
        layer.changed(record, changes[record["name"]])
        if record["name"] in changes
        else layer.kept(record)
        for record in manifest["items"]
    ]
    (folder / MANIFEST).write_text(json.dumps(manifest) + "\n")


def _submission(base: Path, answer: Change) -> bytes:
    """How the attempt ended, if it had ended with this answer."""
    if isinstance(answer, Item):
        answer = answer.bytes() if answer.present else None
    if isinstance(answer, bytes):
        answer = answer.decode("utf-8", "replace")
    told = json.loads(Evidence(base)["submission"].bytes())
    return json.dumps(
        {**told, "kind": "submit", "answer": answer, "reason": None}, indent=1
    ).encode()


@dataclass(frozen=True, slots=True)
class _Layer:
    """Makes the records of one mutant's manifest, and the files that they name."""

    mutant: str
    base: Path
    folder: Path

    def kept(self, record: dict[str, Any]) -> dict[str, Any]:
        self._link_all(self.base, [(e["stored"], e["stored"]) for e in record["entries"]])
        return record

    def changed(self, record: dict[str, Any], change: Change) -> dict[str, Any]:
        match change:
            case None:
                return self._absent(record)
            case Item():
                return self._as_item(record, change)
            case bytes() | str():
                if record["kind"] == "glob":
                    raise self._wrong(record, "it is a glob; give a dict from guest path to bytes")
                data = change.encode("utf-8", "replace") if isinstance(change, str) else change
                return self._present(record, [self._content(record, data)])
        if record["kind"] != "glob":
            raise self._wrong(record, f"it is a {record['kind']}; a dict is for a glob")
        return self._some_entries(record, change)

    def _absent(self, record: dict[str, Any]) -> dict[str, Any]:
        if record["kind"] == "command":
            failed = self._present(record, [self._content(record, b"")])
            return {**failed, "exit": 1}
        return {**record, "state": "absent", "note": "not there", "exit": None, "entries": []}

    def _present(self, record: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
        if not entries:
            return self._absent(record)
        status = 0 if record["kind"] == "command" else None
        return {**record, "state": "present", "note": "", "exit": status, "entries": entries}

    def _as_item(self, record: dict[str, Any], item: Item) -> dict[str, Any]:
        if item.kind != record["kind"]:
            raise self._wrong(
                record, f"it is a {record['kind']}, and a {item.kind} takes its place"
            )
        names = [
            None if entry.stored is None else self._name(record, entry.guest, number)
            for number, entry in enumerate(item.entries)
        ]
        pairs = list(zip(item.entries, names, strict=True))
        self._link_all(item.folder, [(entry.stored, stored) for entry, stored in pairs])
        entries = [asdict(entry) | {"stored": stored} for entry, stored in pairs]
        return {
            **record,
            "state": item.state,
            "note": item.note,
            "exit": item.exit,
            "entries": entries,
        }

    def _some_entries(
        self, record: dict[str, Any], change: Mapping[str, bytes | None]
    ) -> dict[str, Any]:
        entries = [entry for entry in record["entries"] if entry["guest"] not in change]
        self._link_all(self.base, [(entry["stored"], entry["stored"]) for entry in entries])
        taken = len(record["entries"])
        for number, (path, data) in enumerate(change.items(), taken):
            if data is not None:
                stored = self._name(record, path, number)
                entries.append(self._entry(path, data, stored))
        entries.sort(key=lambda entry: PurePosixPath(entry["guest"]).parts)
        return self._present(record, entries)

    def _content(self, record: dict[str, Any], data: bytes) -> dict[str, Any]:
        """The one entry of a file, a command's output and their like."""
        if record["entries"]:
            entry = record["entries"][0]
            return self._entry(entry["guest"], data, entry["stored"])
        if record["name"] == "answer":
            return self._entry("answer", data, "answer.txt")
        return self._entry(record["source"], data, self._name(record, record["source"], 0))

    def _name(self, record: dict[str, Any], guest: str, number: int) -> str:
        """Of a file in the folder: the ending that a program would know it by, where it is one."""
        suffix = PurePosixPath(guest).suffix
        if not (suffix[1:].isalnum() and suffix.isascii() and len(suffix) <= 8):
            suffix = ""
        name: str = record["name"]
        return f"{name}/{number:04}{suffix}" if record["kind"] == "glob" else f"{name}{suffix}"

    def _entry(self, guest: str, data: bytes, stored: str) -> dict[str, Any]:
        path = self.folder / stored
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        size = len(data)
        return {"guest": guest, "kind": "file", "size": size, "stored": stored, "sha256": digest}

    def _link_all(self, base: Path, names: Sequence[tuple[str | None, str | None]]) -> None:
        """Files of another folder, by their names there and here; without content there is none."""
        source, target = os.fspath(base), os.fspath(self.folder)
        pairs = [(was, name) for was, name in names if was is not None and name is not None]
        for parent in {Path(name).parent for _, name in pairs}:
            (self.folder / parent).mkdir(exist_ok=True)
        for was, name in pairs:
            try:
                os.link(f"{source}/{was}", f"{target}/{name}")
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
                    raise GradingError(f"evidence {base}/{was} cannot be read: {error}") from error
                # Another disk, or one without hard links.
                shutil.copyfile(f"{source}/{was}", f"{target}/{name}")

    def _wrong(self, record: dict[str, Any], message: str) -> GradingError:
        return GradingError(f"mutant {self.mutant!r}, evidence {record['name']}: {message}")
