"""A part of some bytes as JSON can carry it: text where it is UTF-8, else base64.

A character that the part's end cuts in two is left for the next part, so no reader ever sees
half of one.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

__all__ = ["Excerpt", "excerpt"]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Bytes as they are told.

    Attributes:
        data: the bytes themselves.
        is_text: whether they are UTF-8.
    """

    data: bytes
    is_text: bool

    @property
    def taken(self) -> int:
        """How many bytes are told; the next part begins there."""
        return len(self.data)

    @property
    def content(self) -> str:
        """Text, or base64 where it is none."""
        return self.data.decode() if self.is_text else base64.b64encode(self.data).decode("ascii")

    @property
    def text(self) -> str:
        """Text, U+FFFD for what is none."""
        return self.data.decode("utf-8", "replace")

    def field(self, name: str) -> str:
        """``name``, or ``name_base64``, by what `content` is."""
        return name if self.is_text else f"{name}_base64"


def excerpt(data: bytes, *, last: bool) -> Excerpt:
    """What to tell of ``data``.

    Args:
        last: nothing follows, so a character cut off at the end will never be whole.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        cut_off = error.end == len(data) and error.reason == "unexpected end of data"
        if not cut_off or (last and error.start == 0):
            return Excerpt(data, False)
        if not error.start:
            return Excerpt(b"", True)  # the rest of the character is still to come
        return Excerpt(data[: error.start], True)
    return Excerpt(data, True)
