"""The letter for the one who was named."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Paragraphs in reading order, the table, and what is told of whom."""

    def filled(text: str) -> str:
        for key, value in params["filled"].items():
            text = text.replace(f"[{key}]", value)
        return text

    paragraphs: list[str] = []
    table: list[list[str]] = []
    for block in params["blocks"]:
        if isinstance(block[0], str):
            paragraphs.append(filled(block[1]))
        else:
            table = [[filled(cell) for cell in row] for row in block]
            paragraphs += [cell for row in table for cell in row]
    return {
        "paragraphs": paragraphs,
        "table": table,
        "facts": [[value] for value in params["filled"].values()],
        "other_facts": [[value] for value in params["other"].values()],
    }
