"""What makes a task's answer drift: the live web, and words or code that mean "now"."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["drifting_code", "drifting_text"]

_URL = re.compile(r"\b(?:https?|ftp|wss?)://([^\s/:\"'<>)\]]+)", re.IGNORECASE)
_INSIDE = re.compile(
    r"localhost|127\.\d+\.\d+\.\d+|\[::1\]?|[\w.-]+\.(?:test|example|invalid|localhost|internal)"
    r"|(?:www\.)?example\.(?:com|org|net)|[\w.-]+\.example\.(?:com|org|net)|10\.0\.2\.\d+",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:today(?:'s)?|tomorrow|yesterday|tonight|right now|current (?:date|time|year|month|day)"
    r"|(?:this|next|last) (?:week|month|year|weekend)|latest|most recent)\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"\b(?:datetime|date)\s*\.\s*(?:now|today|utcnow)\s*\(|\btime\s*\.\s*(?:time|localtime|gmtime"
    r"|strftime)\s*\(|\brandom\s*\.\s*(?:random|randint|choice|choices|sample|shuffle|uniform)\s*\("
    r"|\b(?:urandom|uuid1|uuid4|secrets\s*\.\s*\w+)\s*\(|\bhash\s*\("
)


def drifting_text(text: str, date_pinned: bool) -> Iterator[str]:
    """Faults of a text that the agent or the setup is given."""
    for match in _URL.finditer(text):
        if not _INSIDE.fullmatch(match[1]):
            yield (
                f"{match[0]!r} is on the live web, which changes; serve a copy inside the machine "
                "(localhost or a .test name)"
            )
    if not date_pinned:
        for match in _NOW.finditer(text):
            yield f"{match[0]!r} depends on the date; write the date, or set pinned_date"


def drifting_code(source: str) -> Iterator[tuple[int, str]]:
    """Faults of ``vary.py`` or ``answers.py``, with their lines: values that no seed decides."""
    for number, line in enumerate(source.splitlines(), 1):
        for match in _CLOCK.finditer(line.split("#")[0]):
            yield number, f"{match[0]}...) differs from run to run; use the rng that vary is given"
