"""The joined file."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Each note's lines, with the line between."""
    texts = {params[f"tab_{n}"]: params[f"text_{n}"] for n in range(1, 7)}
    notes = [texts[name].removesuffix("\n") for name in params["order"].split("\n")]
    return {"notes": notes, "joined": f"\n{params['separator']}\n".join(notes) + "\n"}
