"""What a slide has, whichever program wrote it: `pptx` and `odp` read files into this."""

from __future__ import annotations

from dataclasses import dataclass, field

from .office_text import Table


@dataclass(slots=True)
class Slide:
    """One slide.

    Attributes:
        title: its title's paragraphs as lines, empty without one.
        texts: paragraphs of everything else but tables, in the file's order.
        places: kinds of the layout's places, filled or not: ``title``, ``subtitle``,
            ``content``, ``picture``, ``chart``, ``table``.
        pictures: the files of pictures on it.
    """

    title: str = ""
    notes: str = ""
    hidden: bool = False
    texts: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    pictures: list[bytes] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
