"""What must be unpacked, read from the archive itself."""

from __future__ import annotations

import io
import tarfile
import zipfile
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """The texts of the asked files by their paths in the archive."""
    data = io.BytesIO(inputs[params["archive"]])
    wanted = {}
    if params["archive"].endswith(".zip"):
        with zipfile.ZipFile(data) as book:
            wanted = {path: book.read(path).decode() for path in params["wanted"]}
    else:
        with tarfile.open(fileobj=data) as pack:
            for path in params["wanted"]:
                content = pack.extractfile(path)
                assert content is not None  # each is a plain file
                wanted[path] = content.read().decode()
    return {"wanted": wanted}
