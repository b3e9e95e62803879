"""The document with the right name."""

from __future__ import annotations

import re
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Paragraphs in reading order, the table, the header."""

    def corrected(text: str) -> str:
        return re.sub(rf"\b{params['wrong']}\b", params["right"], text)

    paragraphs: list[str] = []
    table: list[list[str]] = []
    for block in params["blocks"]:
        if isinstance(block[0], str):
            paragraphs.append(corrected(block[1]))
        else:
            table = [[corrected(cell) for cell in row] for row in block]
            paragraphs += [cell for row in table for cell in row]
    return {"paragraphs": paragraphs, "table": table, "header": corrected(params["header"])}
