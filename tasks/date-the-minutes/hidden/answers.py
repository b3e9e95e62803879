"""The folder as it must be."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """All files by name with their texts, and the names that may come and go."""
    texts = params["texts"]
    renamed = {params[f"new_{n}"]: texts[f"minutes-{n}.txt"] for n in range(1, 5)}
    kept = {params["kept_1"]: texts["invitation.txt"], params["kept_2"]: texts["members.txt"]}
    names = [params[f"old_{n}"] for n in range(1, 5)] + list(renamed)
    return {
        "files": renamed | kept,
        "changes": [f"{params['folder']}/{name}" for name in names],
    }
