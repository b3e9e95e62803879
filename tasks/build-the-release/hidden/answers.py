"""The project's files as the rules want them."""

from __future__ import annotations

import io
import tarfile
from typing import Any

_HEADS = [("breaking", "Breaking"), ("new", "New"), ("fix", "Fixed")]


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Of what is packed, the parts that nobody changes are the setup's own."""
    with tarfile.open(fileobj=io.BytesIO(inputs["project.tar"])) as pack:
        files = {m.name: pack.extractfile(m).read() for m in pack}  # type: ignore[union-attr]
    old, version = params["old"], params["version"]
    conf = files["package.conf"].decode()
    changes = files["CHANGES.txt"].decode()
    kept = params["kept"]
    notes = [f"{params['title']} {version}"]
    notes += [f"{head}: {text}" for kind, head in _HEADS for mark, text in kept if mark == kind]
    return {
        "conf": conf.replace(f"\nversion = {old}\n", f"\nversion = {version}\n"),
        "changes": changes.replace("\nUnreleased\n", f"\nVersion {version}\n"),
        "notes": notes,
        "parts": {
            path: data.decode()
            for path, data in files.items()
            if path.startswith("src/") or path == f"notes/{old}.txt"
        },
        # The evidence by which each edited file of the archive is judged.
        "edited": {
            "version.txt": "version",
            "package.conf": "conf",
            "CHANGES.txt": "changes",
            f"notes/{version}.txt": "notes",
        },
        "rows": [line.split(",") for line in files["history.csv"].decode().splitlines()],
    }
