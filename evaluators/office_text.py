"""What a text document says and how it looks, whichever program wrote it.

`docx` and `odt` read files into this; `documents` asks questions of it.
"""

from __future__ import annotations

from dataclasses import dataclass

PAGE_NUMBER, PAGE_COUNT = "<page>", "<pages>"
"""What stands for a field whose value depends on where it is printed."""

MAX_TEXT = 2_000_000
"""Characters in a file; a thick book has one million."""

Table = tuple[tuple[str, ...], ...]
"""Rows of cells' texts; a cell over several columns or rows is followed by empty ones."""


@dataclass(frozen=True, slots=True)
class Look:
    """How characters look, all styles taken into account.

    Attributes:
        size: in points, None when nothing says it.
        font: family, empty when nothing says it or a theme does.
        color: RGB as ``FF0000``; automatic is ``000000``.
    """

    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    size: float | None = None
    font: str = ""
    color: str = "000000"


@dataclass(frozen=True, slots=True)
class Run:
    """Characters that look the same."""

    text: str
    look: Look


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph.

    Attributes:
        style: name of its style as a person sees it, formats set by hand aside.
        level: 1 to 9 for a heading, 0 for other text.
        bullet: ``bullet`` or ``number`` when it is an item of a list, else empty.
        depth: of the list, from 1; 0 outside.
        align: ``left``, ``center``, ``right`` or ``justify``.
    """

    runs: tuple[Run, ...]
    style: str = ""
    level: int = 0
    bullet: str = ""
    depth: int = 0
    align: str = "left"

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(run.text for run in self.runs)


@dataclass(frozen=True, slots=True)
class PageSetup:
    """How the pages of a part of the document are laid out; lengths in millimetres."""

    width: float
    height: float
    top: float
    right: float
    bottom: float
    left: float
    header: str = ""
    footer: str = ""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text document.

    Attributes:
        paragraphs: all of the body in reading order, those in tables too; not text boxes,
            footnotes, comments, and what a tracked change deleted.
        pages: one for each section that differs, at least one.
    """

    paragraphs: tuple[Paragraph, ...]
    tables: tuple[Table, ...]
    pages: tuple[PageSetup, ...]
