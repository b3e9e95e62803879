"""Carrying out one probe after the other on a machine; what it brings lies in a folder.

A thing that is not there is a value (``absent``); a thing that must not or cannot be taken, such as
a link, a huge file or a command that does not end, is a value too (``refused``). Nothing that the
agent left may end as an error: it could have itself left out of the count. A channel that fails is
one. Guest paths are never used as host paths, and no link of the guest is followed.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from PIL import Image

from cua_gym.errors import GradingError
from cua_gym.grading.items import Entry
from cua_gym.grading.probes import LISTING, Probe
from cua_gym.grading.walking import TooMuch, Unreadable, look, matches
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine

__all__ = ["Collector", "Found", "store"]

MAX_ENTRIES = 2000
MAX_JSON = 4 << 20
"""Bytes; a longer one is not looked into here, where no limit holds: ten times as much memory."""

_ARCHIVES = (".zip", ".xlsx", ".ods", ".docx", ".odt", ".pptx", ".odp")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(slots=True)
class Found:
    """One line of the manifest in the making.

    Attributes:
        torn: a file that looks as if it was caught half-written.
    """

    probe: Probe
    state: str = "present"
    note: str = ""
    exit: int | None = None
    entries: list[Entry] = field(default_factory=list)
    torn: bool = False

    def record(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {
            "name": self.probe.name,
            "kind": self.probe.kind,
            "source": self.probe.source,
            "at": self.probe.at,
            "state": self.state,
            "note": self.note,
            "exit": self.exit,
            "entries": [asdict(entry) for entry in self.entries],
        }


def store(folder: Path, guest: str, data: bytes, stored: str) -> Entry:
    """Put a content into an evidence folder."""
    path = folder / stored
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return Entry(guest, "file", len(data), stored, hashlib.sha256(data).hexdigest())


class Collector:
    """Takes what probes name from ``machine`` into ``folder``."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self._machine = machine
        self._shell = machine.shell
        self._folder = folder

    def take(self, probe: Probe) -> Found:
        """Carry out one probe.

        Raises:
            MachineError: the machine failed.
            GradingError: the probe itself is wrong.
        """
        try:
            match probe.kind:
                case "file":
                    return self._file(probe)
                case "glob":
                    return self._glob(probe)
                case "tree":
                    return self._tree(probe)
                case "command":
                    return self._command(probe)
                case "frame":
                    return self._frame(probe)
                case "clipboard" | "windows" | "a11y":
                    return self._desktop(probe)
        except (TooMuch, Unreadable) as reason:
            return Found(probe, "refused", str(reason))

    def _file(self, probe: Probe) -> Found:
        stat, note = look(self._shell, probe.source)
        if stat is None:
            return Found(probe, "absent", note or f"{probe.source} does not exist")
        if stat.kind != "file":
            return Found(probe, "refused", note or f"{probe.source} is a {stat.kind}")
        data = self._read(probe.source, probe.limit_bytes)
        if data is None:
            return Found(probe, "refused", f"{probe.source} is over {probe.limit_bytes} bytes")
        suffix = PurePosixPath(probe.source).suffix
        found = self._content(probe, data, suffix)
        found.torn = not data or _unparsable(data, suffix.lower())
        return found

    def _glob(self, probe: Probe) -> Found:
        found = Found(probe)
        left = probe.limit_bytes
        hits = list(itertools.islice(matches(self._shell, probe.source), MAX_ENTRIES + 1))
        if len(hits) > MAX_ENTRIES:
            return Found(probe, "refused", f"more than {MAX_ENTRIES} entries")
        for number, (path, stat) in enumerate(hits):
            if stat.kind != "file":
                found.entries.append(Entry(path, stat.kind, stat.size))
                continue
            data = self._read(path, left)
            if data is None:
                return Found(probe, "refused", f"files of over {probe.limit_bytes} bytes in all")
            left -= len(data)
            stored = f"{probe.name}/{number:04}{_safe(PurePosixPath(path).suffix)}"
            found.entries.append(store(self._folder, path, data, stored))
        if not found.entries:
            return Found(probe, "absent", f"nothing matches {probe.source}")
        return found

    def _tree(self, probe: Probe) -> Found:
        stat, note = look(self._shell, probe.source)
        if stat is None:
            return Found(probe, "absent", note or f"{probe.source} does not exist")
        if stat.kind != "dir":
            return Found(probe, "refused", note or f"{probe.source} is a {stat.kind}")
        done = self._shell.run(LISTING, user="root", cwd=probe.source, timeout_s=probe.timeout_s)
        if done.timed_out or done.exit:
            how = "it took too long" if done.timed_out or done.exit == 124 else f"exit {done.exit}"
            said = done.stderr.decode(errors="replace").strip()[-500:]
            return Found(probe, "refused", f"{probe.source} cannot be listed: {how} {said}".strip())
        if len(done.stdout) > probe.limit_bytes or done.dropped:
            return Found(probe, "refused", f"a listing of over {probe.limit_bytes} bytes")
        return self._content(probe, done.stdout, ".txt")

    def _command(self, probe: Probe) -> Found:
        done = self._shell.run(probe.source, user=probe.user, timeout_s=probe.timeout_s)
        if done.timed_out:
            # Whoever makes a million files can hold up any command that looks at them.
            hint = "" if probe.live else "; one that asks a running program needs live = true"
            return Found(probe, "refused", f"it did not end in {probe.timeout_s:g} s{hint}")
        if done.exit in (126, 127):
            error = done.stderr.decode(errors="replace").strip()[-500:]
            raise GradingError(f"evidence {probe.name}: {probe.source!r} cannot be run: {error}")
        if len(done.stdout) > probe.limit_bytes or done.dropped:
            return Found(probe, "refused", f"printed over {probe.limit_bytes} bytes")
        found = self._content(probe, done.stdout, ".txt")
        found.exit = done.exit
        found.note = done.stderr.decode(errors="replace")[-500:]
        return found

    def _frame(self, probe: Probe) -> Found:
        png = io.BytesIO()
        Image.fromarray(self._machine.screen.grab().rgb).save(png, "PNG", compress_level=1)
        return self._content(probe, png.getvalue(), ".png")

    def _desktop(self, probe: Probe) -> Found:
        """What the desktop account's own programs say; all of it may be made up."""
        try:
            if probe.kind == "clipboard":
                text = desktop.clipboard(self._shell)
                if text is None:
                    return Found(probe, "absent", "the clipboard is empty")
                data, suffix = text.encode("utf-8", "surrogateescape"), ".txt"
            elif probe.kind == "windows":
                data, suffix = _json([asdict(w) for w in desktop.windows(self._shell)]), ".json"
            else:
                data, suffix = _json(desktop.accessibility_tree(self._shell)), ".json"
        except desktop.DesktopSilent as silent:
            # Its programs are the agent's, so this is its doing or a wedged program's.
            return Found(probe, "refused", str(silent))
        except (TypeError, ValueError, RecursionError) as error:
            return Found(probe, "refused", f"the desktop's answer makes no sense: {error}"[:500])
        if len(data) > probe.limit_bytes:
            return Found(probe, "refused", f"over {probe.limit_bytes} bytes")
        return self._content(probe, data, suffix)

    def _content(self, probe: Probe, data: bytes, suffix: str) -> Found:
        entry = store(self._folder, probe.source, data, f"{probe.name}{_safe(suffix)}")
        return Found(probe, entries=[entry])

    def _read(self, path: str, limit: int) -> bytes | None:
        """Content of a plain file, None when it is over the limit."""
        try:
            data = self._shell.read(path, limit=limit + 1)
        except OSError as error:
            # Not every process is the desktop account's: one of a service can go on.
            raise Unreadable(f"{path} was there and could not be read: {error.strerror}") from error
        return data if len(data) <= limit else None


def _json(records: Sequence[Mapping[str, Any]]) -> bytes:
    return json.dumps(records, indent=1).encode()


def _unparsable(data: bytes, suffix: str) -> bool:
    """Whether a file of a known format is cut short or broken, as by a freeze in mid-write."""
    try:
        if suffix in _ARCHIVES:
            return not zipfile.is_zipfile(io.BytesIO(data))
        if suffix == ".json" and len(data) <= MAX_JSON:
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
