"""Presentations (pptx, odp): slides in order, what they and their notes say, pictures, layout.

Slides are counted from 1. Date, footer and slide number are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .images import open_image
from .odp import read_odp
from .office_text import MAX_TEXT
from .packages import Package, once, reading
from .pptx import read_pptx
from .slide_show import Slide
from .text import Case, Whitespace, first_difference, normal


@once
def read_slides(data: bytes) -> tuple[Slide, ...]:
    """The slides of a presentation of either kind, told by its content.

    Raises:
        Fails: it is none, broken, encrypted, or larger than any presentation of a task.
    """
    package = Package(data, "presentation")
    with reading("no whole presentation"):
        if "[Content_Types].xml" in package.names:
            slides = read_pptx(package)
        elif b"opendocument.presentation" in package.read("mimetype"):
            slides = read_odp(package)
        else:
            raise Fails("neither pptx nor odp", seen=sorted(package.names)[:20])
        size = sum(len(text) for s in slides for text in (s.title, s.notes, *s.texts))
        size += sum(1 + len(c) for s in slides for rows in s.tables for row in rows for c in row)
        if size > MAX_TEXT:
            raise Fails(f"{size} characters: no presentation of a task")
    return slides


def _slide(item: Item, number: int) -> Slide:
    if number < 1:
        raise GradingError(f"slides are counted from 1, and {number} is none")
    slides = read_slides(item.bytes())
    if number > len(slides):
        raise Fails("there is no such slide", seen=len(slides), wanted=number)
    return slides[number - 1]


@check
def titles(item: Item, *, expected: list[str], case: Case = "exact") -> Verdict:
    """The slides have exactly these titles in this order; ``""`` is a slide without one.

    White space at the ends aside. It refuses a text box in the title's place, further slides,
    and another order; hidden slides count.
    """
    if not expected:
        raise GradingError("expected is empty; name at least one slide")
    seen = [normal(s.title, whitespace="trim", case=case) for s in read_slides(item.bytes())]
    wanted = [normal(one, whitespace="trim", case=case) for one in expected]
    return verdict(seen == wanted, "the titles", seen=seen, wanted=wanted)


@check
def hidden(item: Item, *, expected: list[int]) -> Verdict:
    """Exactly these slides, by number, are not shown, and at least one other is.

    It refuses a slide that was deleted instead.
    """
    if not expected or min(expected) < 1:
        raise GradingError("expected must name slides, counted from 1")
    slides = read_slides(item.bytes())
    seen = [number for number, slide in enumerate(slides, start=1) if slide.hidden]
    same = seen == sorted(expected) and len(seen) < len(slides)
    return verdict(same, "the hidden slides", seen=seen, wanted=sorted(expected))


@check
def text(
    item: Item,
    *,
    slide: int,
    expected: list[str],
    order: bool = True,
    whitespace: Whitespace = "trim",
    case: Case = "exact",
) -> Verdict:
    """A slide's paragraphs with any text, but for its title and tables, are exactly these.

    Text boxes and other shapes count, in the file's order, which may be declared to be free. It
    refuses further and missing paragraphs, and the right text on another slide.
    """
    if not any(one.strip() for one in expected):
        raise GradingError("expected is empty, as an untouched slide may be")

    def rule(lines: Sequence[str]) -> list[str]:
        made = [normal(one, whitespace=whitespace, case=case) for one in lines if one.strip()]
        return made if order else sorted(made)

    seen, wanted = rule(_slide(item, slide).texts), rule(expected)
    message = first_difference("\n".join(seen), "\n".join(wanted))
    return verdict(seen == wanted, f"slide {slide}: {message}", seen=seen, wanted=wanted)


@check
def notes(
    item: Item, *, slide: int, expected: str, whitespace: Whitespace = "trim", case: Case = "exact"
) -> Verdict:
    """All of a slide's notes is this text, paragraphs as lines.

    It refuses the same text on the slide itself, and text around it.
    """
    if not expected.strip():
        raise GradingError("expected is empty, as the notes of an untouched slide are")
    seen = _slide(item, slide).notes
    same = normal(seen, whitespace=whitespace, case=case) == normal(
        expected, whitespace=whitespace, case=case
    )
    return verdict(same, f"the notes of slide {slide}", seen=seen, wanted=expected)


@check
def pictures(item: Item, *, slide: int, count: int, images: Sequence[bytes] = ()) -> Verdict:
    """A slide has exactly so many pictures, and each of ``images`` is among them.

    Those have the same pixels, in whichever format. It refuses a picture that is linked and not
    in the file, a drawing, the picture as a background, and a scaled copy of it.
    """
    found = _slide(item, slide).pictures
    if len(found) != count:
        return verdict(False, f"the pictures of slide {slide}", seen=len(found), wanted=count)
    missing = 0
    for image in images:
        try:
            wanted = _pixels(image)
        except Fails as error:
            raise GradingError(f"one of images: {error}") from error
        missing += not any(_same(one, wanted) for one in found)
    message = f"{missing} of {len(images)} pictures are not on slide {slide}"
    return verdict(not missing, message, seen=len(images) - missing, wanted=len(images))


def _pixels(data: bytes) -> tuple[tuple[int, int], bytes]:
    image = open_image(data)
    return image.size, image.convert("RGBA").tobytes()


def _same(data: bytes, wanted: tuple[tuple[int, int], bytes]) -> bool:
    try:
        return _pixels(data) == wanted
    except Fails:
        return False


@check
def table(
    item: Item,
    *,
    slide: int,
    expected: list[list[str]],
    number: int = 1,
    whitespace: Whitespace = "trim",
) -> Verdict:
    """A slide's table of this number has exactly these texts, row by row.

    It refuses text with tabs that looks like a table, and further rows and columns.
    """
    if number < 1 or not any(one.strip() for row in expected for one in row):
        raise GradingError("a table has a number from 1 and some text")
    found = _slide(item, slide).tables
    if number > len(found):
        raise Fails(f"slide {slide} has no such table", seen=len(found), wanted=number)
    seen = [[normal(one, whitespace=whitespace) for one in row] for row in found[number - 1]]
    wanted = [[normal(one, whitespace=whitespace) for one in row] for row in expected]
    return verdict(seen == wanted, f"table {number}", seen=str(seen), wanted=str(wanted))


@check
def layout(
    item: Item,
    *,
    slide: int,
    expected: list[Literal["title", "subtitle", "content", "picture", "chart", "table"]],
) -> Verdict:
    """A slide has exactly these places for content, filled or not, in any order.

    ``["title", "content", "content"]`` is what programs call *Title and two contents*; no place
    at all is a blank slide. It refuses text boxes put where a layout has a place.
    """
    seen = sorted(_slide(item, slide).places)
    return verdict(
        seen == sorted(expected), f"the layout of slide {slide}", seen=seen, wanted=sorted(expected)
    )
