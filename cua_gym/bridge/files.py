"""The tools of the shell bridge for files, with the desktop account's own rights.

How a path is written is `paths`' business.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from cua_gym.bridge.excerpt import excerpt
from cua_gym.bridge.paths import absolute, from_base64, told_name
from cua_gym.bridge.session import Call
from cua_gym.bridge.shell import told
from cua_gym.bridge.tools import Reply, fitting
from cua_gym.errors import ActionError
from cua_gym.machine.base import Files, FileStat, Machine

__all__ = ["FILES"]

READ_BYTES = 80_000
"""In an answer twice, and each may take six in JSON: below the 1 MiB that the Python SDK's client
takes at once."""
LEAST_BYTES = 4
"""One character of any kind, or no reader would ever come past it."""
CHUNK_BYTES = 700_000
"""Of a download: in base64 it stays below the same."""
EDIT_BYTES = 8 << 20
LISTED = 1000
LISTED_BYTES = 400_000
"""Of a listing's entries in JSON; an answer has them twice."""
FARTHEST = 1 << 62

Path = Annotated[
    str, Field(description="Absolute, or from the home folder; base64:... for odd names.")
]
Offset = Annotated[int, Field(ge=0, le=FARTHEST, description="In bytes.")]


def read_file(
    call: Call,
    path: Path,
    offset: Offset = 0,
    limit: Annotated[int, Field(ge=LEAST_BYTES, le=READ_BYTES, description="Bytes.")] = READ_BYTES,
) -> Reply:
    """Read a file, or a part of it: text, or base64 where it is no text."""

    def work(files: Files, name: str) -> Mapping[str, Any]:
        data = files.read(name, offset=offset, limit=limit)
        size = max(files.stat(name, follow=True).size, offset + len(data))
        part = excerpt(data, last=offset + len(data) >= size)
        end = offset + part.taken
        return {part.field("text"): part.content, "next": end, "size": size}

    def text(facts: Mapping[str, Any]) -> str:
        body = facts.get("text")
        body = f"[no text; base64] {facts['text_base64']}" if body is None else body
        left = facts["size"] - facts["next"]
        return f"{body}\n[{left} more bytes: offset={facts['next']}]" if left > 0 else body

    return _with_file(call, path, work, text, acts=False)


def write_file(
    call: Call,
    path: Path,
    content: str,
    encoding: Annotated[
        Literal["text", "base64"], Field(description="base64 for bytes that are no text.")
    ] = "text",
    executable: bool = False,
) -> Reply:
    """Put a whole file, its folders made; an older one is replaced at once."""
    data = from_base64(content) if encoding == "base64" else content.encode()

    def work(files: Files, name: str) -> Mapping[str, Any]:
        files.write(name, data, mode=0o755 if executable else 0o644)
        return _sum(data)

    return _with_file(call, path, work, lambda facts: f"{facts['bytes']} bytes written")


def edit_file(
    call: Call,
    path: Path,
    old: Annotated[str, Field(min_length=1, description="Exact text that is there once.")],
    new: str,
    replace_all: bool = False,
) -> Reply:
    """Replace text in a file."""

    def work(files: Files, name: str) -> Mapping[str, Any]:
        before = files.stat(name, follow=True)
        try:
            # A pipe of the kernel's or a file that grows says nothing of its size.
            data = files.read(name, limit=EDIT_BYTES + 1)
            if len(data) > EDIT_BYTES:
                raise ActionError(f"it is longer than {EDIT_BYTES} bytes; those are not edited")
            text = data.decode()
        except UnicodeDecodeError as error:
            raise ActionError(f"it is no UTF-8 text: {error}") from error
        found = text.count(old)
        if found == 0:
            raise ActionError("the old text is not in the file; read it again")
        if found > 1 and not replace_all:
            raise ActionError(f"the old text is there {found} times; give more of it")
        if len(text) + found * (len(new) - len(old)) > EDIT_BYTES:
            raise ActionError(f"it would have more than {EDIT_BYTES} bytes")
        data = text.replace(old, new).encode()
        files.write(name, data, mode=before.mode & 0o7777)
        return {"replaced": found, **_sum(data)}

    return _with_file(call, path, work, lambda facts: f"replaced {facts['replaced']}")


def list_dir(
    call: Call,
    path: Path = ".",
    start: Annotated[int, Field(ge=0, description="Entries to leave out.")] = 0,
) -> Reply:
    """List a folder, at most a thousand entries at once."""

    def work(files: Files, name: str) -> Mapping[str, Any]:
        entries = files.list(name)
        wanted = [_entry(entry) for entry in entries[start : start + LISTED]]
        shown = fitting(wanted, LISTED_BYTES)
        return {"entries": shown, "count": len(entries), "next": start + len(shown)}

    def text(facts: Mapping[str, Any]) -> str:
        lines = [f"{e['kind']:5} {e['size']:>10} {e['name']}" for e in facts["entries"]]
        left = facts["count"] - facts["next"]
        return "\n".join([*lines, f"[{left} more: start={facts['next']}]"] if left > 0 else lines)

    return _with_file(call, path, work, text, acts=False)


def stat(call: Call, path: Path) -> Reply:
    """Kind, size, time and permissions of a file or folder; links are not followed."""

    def work(files: Files, name: str) -> Mapping[str, Any]:
        return _entry(files.stat(name))

    return _with_file(call, path, work, lambda e: f"{e['kind']}, {e['size']} bytes", acts=False)


def upload(
    call: Call,
    path: Path,
    data_base64: Annotated[str, Field(description="At most about 2 MB at once.")],
    offset: Annotated[int, Field(ge=0, description="Where the chunk belongs in the file.")] = 0,
    last: Annotated[bool, Field(description="False while more chunks follow.")] = True,
    sha256: Annotated[str | None, Field(description="Of the whole file, with the last.")] = None,
) -> Reply:
    """Put a file of any size and content, chunk by chunk; it appears whole with the last one."""
    data = from_base64(data_base64)

    def work(files: Files, name: str) -> Mapping[str, Any]:
        uploads = call.session.uploads
        size = uploads.add(name, offset, data)
        if not last:
            return {"next": size}
        whole = uploads.take(name)
        facts = _sum(whole)
        if sha256 not in (None, facts["sha256"]):
            raise ActionError(f"what arrived has sha256 {facts['sha256']}; send it again")
        files.write(name, whole)
        return {"next": size, **facts}

    return _with_file(call, path, work, lambda f: f"{f['next']} bytes so far", acts=last)


def download(
    call: Call,
    path: Path,
    offset: Offset = 0,
    length: Annotated[int, Field(ge=1, le=CHUNK_BYTES, description="Bytes.")] = CHUNK_BYTES,
) -> Reply:
    """Fetch a file of any size and content, chunk by chunk: go on at `next` until it is `size`."""

    def work(files: Files, name: str) -> Mapping[str, Any]:
        data = files.read(name, offset=offset, limit=length)
        end = offset + len(data)
        return {
            "data_base64": base64.b64encode(data).decode("ascii"),
            "next": end,
            "size": max(files.stat(name, follow=True).size, end),
        }

    return _with_file(
        call, path, work, lambda f: f"bytes {offset} to {f['next']} of {f['size']}", acts=False
    )


FILES: Sequence[Callable[..., Reply]] = (
    read_file, write_file, edit_file, list_dir, stat, upload, download,
)  # fmt: skip


def _with_file(
    call: Call,
    path: str,
    work: Callable[[Files, str], Mapping[str, Any]],
    text: Callable[[Mapping[str, Any]], str],
    *,
    acts: bool = True,
) -> Reply:
    found: dict[str, Any] = {}

    def use(machine: Machine) -> Mapping[str, Any]:
        name = absolute(path, machine)
        call.stop.then(machine.shell.files.abandon)
        found.update(work(machine.shell.files, name))
        # The content itself is the guest's; the record says how much of it was moved.
        return {"file": {k: v for k, v in found.items() if not isinstance(v, str | list)}}

    step = call.use(use, acts=acts)
    return told(step, text(found) if found else "", found)


def _entry(entry: FileStat) -> dict[str, Any]:
    return {**asdict(entry), "name": told_name(entry.name), "mode": f"{entry.mode & 0o7777:04o}"}


def _sum(data: bytes) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
