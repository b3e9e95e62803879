"""Releases that are almost right: another number, an old archive, a copy left behind."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence

EXEMPT = {"repacked:archives:*": "the checksum is of the archive as it was packed"}


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved project."""
    folder, name = f"/home/user/{params['folder']}", params["name"]
    old, version = params["old"], params["version"]
    place = f"{folder}/releases/{name}-{version}.zip"
    data = solved["archives"].files()[place]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {member: archive.read(member) for member in archive.namelist()}
    notes = solved["notes"].text()
    history = solved["history"].text()
    head, *entries = notes.splitlines()
    checksum = solved["checksum"].text()

    yield breaks(
        "packed before the notes were right", archives={place: _zip(files, notes=b"Soon\n")}
    )
    yield breaks("copied, not moved", archives={f"{folder}/build/release.zip": data})
    yield breaks(
        "left in the folder build", archives={place: None, f"{folder}/build/{name}.zip": data}
    )
    yield breaks("not renamed", archives={place: None, f"{folder}/releases/release.zip": data})
    yield breaks("the old number", version=f"{old}\n".encode())
    yield breaks(
        "every such number replaced",
        conf=start["conf"].bytes().replace(old.encode(), version.encode()),
    )
    yield breaks("notes without their head", notes="\n".join(entries).encode())
    yield breaks(
        "notes in the order of the changes", notes="\n".join([head, *entries[::-1]]).encode()
    )
    yield breaks("marks as they stand", notes=notes.replace("Fixed: ", "fix: ").encode())
    yield breaks("the sum of the last release", checksum=checksum.replace(version, old).encode())
    yield breaks("a sum without a name", checksum=checksum.split()[0].encode())
    yield keeps("as sha256sum -b prints it", checksum=checksum.replace("  ", " *").encode())
    rows = history.splitlines()
    yield breaks("growth in whole percent", history=history.rstrip().rpartition(".")[0].encode())
    yield breaks("the new line first", history="\n".join([rows[0], rows[-1], *rows[1:-1]]).encode())
    yield breaks("src changed", archives={place: _zip(files, part=b"Part\n")})


def _zip(files: Mapping[str, bytes], notes: bytes = b"", part: bytes = b"") -> bytes:
    """The archive with other notes, or another last part of the source."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, data in files.items():
            other = part if path == max(p for p in files if p.startswith("src/")) else b""
            if path.startswith("notes/") and notes:
                other = notes
            archive.writestr(path, other or data)
    return packed.getvalue()
