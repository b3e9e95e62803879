"""Taking evidence from a frozen machine into a folder, by the probes that a task declares.

A thing that is not there is a value (``absent``); a thing that must not be taken, such as a link
or a huge file, is a value too (``refused``). A channel that fails is an error. Guest paths are
never used as host paths, and no link of the guest is followed.
"""

from __future__ import annotations

import fnmatch
import hashlib
import io
import itertools
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from PIL import Image

from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import GradingError, MachineError
from cua_gym.grading.items import MANIFEST, VERSION, Entry
from cua_gym.grading.probes import Asks, Probe
from cua_gym.machine import desktop
from cua_gym.machine.base import FileStat, Machine, Shell
from cua_gym.machine.settle import Settle, settle

__all__ = ["collect"]

MAX_ENTRIES = 2000
MAX_VISITED = 50_000
MAX_DEPTH = 64
MAX_PATH = 4000
"""Bytes; Linux takes no path of 4096."""
SECOND_LOOK = Settle(first_s=1.0, quiet_s=0.5, max_s=5.0)
"""How long a program gets to finish a file that was caught half-written."""

_ARCHIVES = (".zip", ".xlsx", ".ods", ".docx", ".odt", ".pptx", ".odp")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(slots=True)
class _Found:
    """One line of the manifest in the making."""

    probe: Probe
    state: str = "present"
    note: str = ""
    exit: int | None = None
    entries: list[Entry] = field(default_factory=list)
    torn: bool = False


def collect(
    machine: Machine,
    asked: Asks,
    folder: Path,
    submission: Mapping[str, Any],
    *,
    clock: Clock | None = None,
) -> None:
    """Collect everything that ``asked.probes`` names from a frozen machine.

    The folder appears whole or not at all, and replaces an earlier one. The machine is frozen
    again when this returns.

    Args:
        submission: ``{"kind": ..., "answer": str | None, "reason": str | None}``, how the
            attempt ended; it becomes the evidence ``submission`` and ``answer``.

    Raises:
        MachineError: the machine failed.
        GradingError: a probe could not be carried out.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    collector = _Collector(machine, partial)
    found = _submission(partial, submission)
    still = [p for p in asked.probes if not p.live]
    live = [p for p in asked.probes if p.live]
    results = {p.name: collector.take(p) for p in still}
    torn = [p for p in still if results[p.name].torn]
    if torn or live:
        # Everything that can be taken from stopped programs is safe by now.
        machine.thaw()
        try:
            if torn:
                settle(machine.screen, machine.screen.serial, SECOND_LOOK, clock or SystemClock())
            for probe in live:
                results[probe.name] = collector.take(probe)
        finally:
            machine.freeze()
    for probe in torn:
        results[probe.name] = collector.take(probe)
    found += [results[p.name] for p in asked.probes]
    manifest = {"version": VERSION, "items": [_record(f) for f in found]}
    (partial / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


class _Collector:
    """Carries out one probe after the other."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine = machine
        self._shell = machine.shell
        self._folder = folder

    def take(self, probe: Probe) -> _Found:
        try:
            match probe.kind:
                case "file":
                    return self._file(probe)
                case "glob":
                    return self._glob(probe)
                case "command":
                    return self._command(probe)
                case "frame":
                    return self._frame(probe)
                case "clipboard":
                    text = desktop.clipboard(self._shell)
                    if text is None:
                        return _Found(probe, "absent", "the clipboard is empty")
                    return self._content(probe, text.encode("utf-8", "surrogateescape"), ".txt")
                case "windows":
                    return self._records(probe, [asdict(w) for w in desktop.windows(self._shell)])
                case "a11y":
                    return self._records(probe, desktop.accessibility_tree(self._shell))
        except desktop.DesktopSilent as silent:
            # The desktop account owns what answers here, so this is the agent's doing or a wedged
            # program, not a lost machine.
            return _Found(probe, "refused", str(silent))

    def _file(self, probe: Probe) -> _Found:
        stat, note = _look(self._shell, probe.source)
        if stat is None:
            return _Found(probe, "absent", note or f"{probe.source} does not exist")
        if stat.kind != "file":
            return _Found(probe, "refused", note or f"{probe.source} is a {stat.kind}")
        data = self._read(probe.source, probe.limit_bytes)
        if data is None:
            return _Found(probe, "refused", f"{probe.source} is over {probe.limit_bytes} bytes")
        suffix = PurePosixPath(probe.source).suffix
        found = self._content(probe, data, suffix)
        found.torn = not data or _unparsable(data, suffix.lower())
        return found

    def _glob(self, probe: Probe) -> _Found:
        found = _Found(probe)
        left = probe.limit_bytes
        try:
            matches = list(itertools.islice(_matches(self._shell, probe.source), MAX_ENTRIES + 1))
        except _TooMuch as error:
            return _Found(probe, "refused", str(error))
        if len(matches) > MAX_ENTRIES:
            return _Found(probe, "refused", f"more than {MAX_ENTRIES} entries")
        for number, (path, stat) in enumerate(matches):
            if stat.kind != "file":
                found.entries.append(Entry(path, stat.kind, stat.size))
                continue
            data = self._read(path, left)
            if data is None:
                return _Found(probe, "refused", f"files of over {probe.limit_bytes} bytes in all")
            left -= len(data)
            stored = f"{probe.name}/{number:04}{_safe(PurePosixPath(path).suffix)}"
            found.entries.append(self._store(path, data, stored))
        if not found.entries:
            return _Found(probe, "absent", f"nothing matches {probe.source}")
        return found

    def _command(self, probe: Probe) -> _Found:
        done = self._shell.run(probe.source, user=probe.user, timeout_s=probe.timeout_s)
        what = f"evidence {probe.name}: {probe.source!r}"
        if done.timed_out:
            raise GradingError(
                f"{what} did not end in {probe.timeout_s:g} s; a command that asks a running "
                "program needs live = true"
            )
        if done.exit in (126, 127):
            error = done.stderr.decode(errors="replace").strip()[-500:]
            raise GradingError(f"{what} cannot be run: {error}")
        if len(done.stdout) > probe.limit_bytes:
            return _Found(probe, "refused", f"printed over {probe.limit_bytes} bytes")
        found = self._content(probe, done.stdout, ".txt")
        found.exit = done.exit
        found.note = done.stderr.decode(errors="replace")[-500:]
        return found

    def _frame(self, probe: Probe) -> _Found:
        png = io.BytesIO()
        Image.fromarray(self._machine.screen.grab().rgb).save(png, "PNG", compress_level=1)
        return self._content(probe, png.getvalue(), ".png")

    def _records(self, probe: Probe, records: Sequence[Mapping[str, Any]]) -> _Found:
        return self._content(probe, json.dumps(records, indent=1).encode(), ".json")

    def _content(self, probe: Probe, data: bytes, suffix: str) -> _Found:
        entry = self._store(probe.source, data, f"{probe.name}{_safe(suffix)}")
        return _Found(probe, entries=[entry])

    def _store(self, guest: str, data: bytes, stored: str) -> Entry:
        path = self._folder / stored
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return Entry(guest, "file", len(data), stored, hashlib.sha256(data).hexdigest())

    def _read(self, path: str, limit: int) -> bytes | None:
        """Content of a plain file, None when it is over the limit."""
        try:
            data = self._shell.read(path, limit=limit + 1)
        except OSError as error:
            raise MachineError(f"{path} was there and could not be read: {error}") from error
        return data if len(data) <= limit else None


def _look(shell: Shell, path: str) -> tuple[FileStat | None, str]:
    """The entry at ``path``, or why there is none; a link on the way counts as a link."""
    parts = PurePosixPath(path).parts
    stat = None
    for depth in range(2, len(parts) + 1):
        here = str(PurePosixPath(*parts[:depth]))
        try:
            stat = shell.stat(here)
        except (FileNotFoundError, NotADirectoryError):
            return None, f"{here} does not exist"
        if stat.kind == "link":
            return stat, f"{here} is a link, and links are not followed"
        if depth < len(parts) and stat.kind != "dir":
            return None, f"{here} is no folder"
    return stat, ""


class _TooMuch(Exception):
    """More folders than anybody's work has."""


def _matches(shell: Shell, pattern: str) -> Iterator[tuple[str, FileStat]]:
    """Entries that match a glob, each once, in order of name; ``**`` is any number of folders.

    Raises:
        _TooMuch: there is too much to look at.
    """
    parts = PurePosixPath(pattern).parts
    fixed = 1
    while fixed < len(parts) and not any(c in parts[fixed] for c in "*?["):
        fixed += 1
    base = PurePosixPath(*parts[: min(fixed, len(parts) - 1)])
    if base != PurePosixPath("/"):
        stat, _ = _look(shell, str(base))
        if stat is None or stat.kind != "dir":
            return
    wanted = parts[len(base.parts) :]
    visited = 0
    # A stack of our own: an agent makes a thousand nested folders in one line.
    stack = [_entries(shell, str(base), _open({0}, wanted))]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        path, stat, places = entry
        visited += 1
        if visited > MAX_VISITED:
            raise _TooMuch(f"more than {MAX_VISITED} entries to look at")
        hits = {p for p in places if wanted[p] == "**" or fnmatch.fnmatchcase(stat.name, wanted[p])}
        if len(wanted) - 1 in hits:
            yield path, stat
        below = _open({p if wanted[p] == "**" else p + 1 for p in hits}, wanted)
        if stat.kind == "dir" and below:
            if len(stack) > MAX_DEPTH or len(os.fsencode(path)) > MAX_PATH:
                raise _TooMuch(f"folders deeper than {MAX_DEPTH}, or a path over {MAX_PATH} bytes")
            stack.append(_entries(shell, path, below))


def _open(places: set[int], wanted: Sequence[str]) -> frozenset[int]:
    """The parts of a pattern that the next name may match: ``**`` may also be no folder at all."""
    found = set(places)
    for place in sorted(places):
        while place < len(wanted) and wanted[place] == "**":
            place += 1
            found.add(place)
    return frozenset(p for p in found if p < len(wanted))


def _entries(
    shell: Shell, folder: str, places: frozenset[int]
) -> Iterator[tuple[str, FileStat, frozenset[int]]]:
    for stat in sorted(shell.list(folder), key=lambda s: s.name):
        yield str(PurePosixPath(folder) / stat.name), stat, places


def _unparsable(data: bytes, suffix: str) -> bool:
    """Whether a file of a known format is cut short or broken, as by a freeze in mid-write."""
    try:
        if suffix in _ARCHIVES:
            return not zipfile.is_zipfile(io.BytesIO(data))
        if suffix == ".json":
            json.loads(data)
        if suffix in _IMAGES:
            with Image.open(io.BytesIO(data)) as image:
                image.verify()
    except Exception:  # a parser given an agent's bytes raises what it likes, RecursionError too
        return True
    return False


def _safe(suffix: str) -> str:
    """The suffix when it is an ordinary one, so that a person can open the file."""
    return suffix if suffix[1:].isalnum() and suffix.isascii() and len(suffix) <= 8 else ""


def _submission(folder: Path, submission: Mapping[str, Any]) -> list[_Found]:
    def item(name: str, data: bytes, suffix: str) -> _Found:
        path = folder / f"{name}{suffix}"
        path.write_bytes(data)
        entry = Entry(name, "file", len(data), path.name, hashlib.sha256(data).hexdigest())
        return _Found(Probe(name, "file", name), entries=[entry])

    found = [item("submission", json.dumps(dict(submission), indent=1).encode(), ".json")]
    answer = submission.get("answer")
    if answer is None:
        found.append(_Found(Probe("answer", "file", "answer"), "absent", "no answer was submitted"))
    else:
        found.append(item("answer", str(answer).encode("utf-8", "replace"), ".txt"))
    return found


def _record(found: _Found) -> dict[str, Any]:
    return {
        "name": found.probe.name,
        "kind": found.probe.kind,
        "source": found.probe.source,
        "state": found.state,
        "note": found.note,
        "exit": found.exit,
        "entries": [asdict(entry) for entry in found.entries],
    }
