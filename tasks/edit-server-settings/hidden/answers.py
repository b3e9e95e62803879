"""The file as it must be, and the changed lines."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Each of the three lines is replaced in its section alone."""
    wanted = {(params[f"section_{n}"], params[f"key_{n}"]): params[f"value_{n}"] for n in (1, 2, 3)}
    lines = []
    section = ""
    for line in params["before"].split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        key = line.partition(" = ")[0]
        value = wanted.pop((section, key), None)
        lines.append(line if value is None else f"{key} = {value}")
    if wanted:
        raise ValueError(f"not in the file: {wanted}")
    return {"after": "\n".join(lines)}
