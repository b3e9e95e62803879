"""PDF: how many pages, what they say, what the file says of itself, and whose pages they are.

Text is what can be extracted, white space aside: a PDF has glyphs at places, not lines. A page
that is a picture has no text; nothing here recognises letters.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pypdf

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .office_text import MAX_TEXT
from .packages import once, reading
from .text import Case, Form, Whitespace, first_difference, normal, stated

MAX_PAGES = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        width: of its media box, in points (1/72 inch), before it is turned.
        rotation: clockwise, 0, 90, 180 or 270 degrees.
        images: width and height of each picture on it, in pixels.
    """

    text: str
    width: float
    height: float
    rotation: int
    images: tuple[tuple[int, int], ...]


def _open(data: bytes) -> pypdf.PdfReader:
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted:
        raise Fails("an encrypted PDF")
    if len(reader.pages) > MAX_PAGES:
        raise Fails(f"{len(reader.pages)} pages: no PDF of a task")
    return reader


@once
def read_pages(data: bytes) -> tuple[Page, ...]:
    """All pages, their text extracted.

    Raises:
        Fails: no whole PDF, encrypted, or larger than any PDF of a task.
    """
    with reading("no whole PDF"):
        pages = tuple(_page(page) for page in _open(data).pages)
    size = sum(len(page.text) for page in pages)
    if size > MAX_TEXT:
        raise Fails(f"{size} characters: no PDF of a task")
    return pages


def _page(page: pypdf.PageObject) -> Page:
    return Page(
        page.extract_text(),
        float(page.mediabox.width),
        float(page.mediabox.height),
        page.rotation % 360,
        tuple(sorted(_images(page))),
    )


def _images(page: pypdf.PageObject) -> list[tuple[int, int]]:
    resources = page.get("/Resources")
    objects = None if resources is None else resources.get_object().get("/XObject")
    found = [] if objects is None else [one.get_object() for one in objects.get_object().values()]
    images = [one for one in found if one.get("/Subtype") == "/Image"]
    return [(int(one["/Width"]), int(one["/Height"])) for one in images]


def _text(data: bytes, page: int) -> str:
    if page < 0:
        raise GradingError(f"pages are counted from 1, 0 is all of them, and {page} is none")
    found = read_pages(data)
    if page > len(found):
        raise Fails("there is no such page", seen=len(found), wanted=page)
    return found[page - 1].text if page else "\n".join(one.text for one in found)


@check
def pages(item: Item, *, count: int) -> Verdict:
    """A whole PDF of exactly this many pages, each of which can be read.

    It refuses an encrypted one, and another kind of file with this name.
    """
    seen = len(read_pages(item.bytes()))
    return verdict(seen == count, "its pages", seen=seen, wanted=count)


@check
def text(
    item: Item,
    *,
    expected: str,
    page: int = 0,
    whitespace: Whitespace = "collapse",
    case: Case = "exact",
    form: Form = "NFKC",
) -> Verdict:
    """All text of one page (the first is 1), or of all of them, by the rules of `text.normal`.

    By default any run of white space is one space, and a ligature is its letters. It refuses text
    around the expected one, headers and page numbers too, and text that is a picture.
    """
    if not expected.strip():
        raise GradingError("expected is empty, as the text of any scanned page is")
    found = _text(item.bytes(), page)

    def rule(value: str) -> str:
        return normal(value, whitespace=whitespace, case=case, form=form)

    same = rule(found) == rule(expected)
    message = "as wanted" if same else first_difference(rule(found), rule(expected))
    return verdict(same, message, seen=found, wanted=expected)


@check
def states(
    item: Item, *, facts: list[list[str]], page: int = 0, forbidden: Sequence[str] = ()
) -> Verdict:
    """The text of one page, or of all of them, has every fact, each by one of its variants.

    A fact is a word or number of its own, as in `text.states`. The value is the share of facts.
    It refuses, wholly, a text with any of ``forbidden``.
    """

    def flat(value: str) -> str:
        return normal(value, whitespace="collapse", form="NFKC")

    wanted = [[flat(one) for one in fact] for fact in facts]
    return stated(flat(_text(item.bytes(), page)), wanted, [flat(word) for word in forbidden])


@check
def metadata(
    item: Item, *, key: Literal["title", "author", "subject", "keywords"], expected: str
) -> Verdict:
    """One entry of what the file says of itself is exactly this text.

    It refuses another case, and a file without such an entry.
    """
    with reading("no whole PDF"):
        about = _open(item.bytes()).metadata
        found = None if about is None else about.get(f"/{key.title()}")
        seen = None if found is None else str(found.get_object())
    return verdict(seen == expected, f"its {key}", seen=seen, wanted=expected)


@check
def pages_of(
    item: Item, *, original: bytes, order: list[int], turned: Sequence[int] = ()
) -> Verdict:
    """The pages are exactly these of ``original`` (the first is 1), in this order.

    ``turned`` says for each how far it was turned clockwise, in degrees; none by default. Pages
    are equal when their text (white space aside), their size to one point and the sizes of their
    pictures are. It refuses further and missing pages, and is an error of the task where two pages
    of the original are equal.
    """
    try:
        source = [_print(page) for page in read_pages(original)]
    except Fails as error:
        raise GradingError(f"the original: {error}") from error
    if len(set(source)) != len(source):
        raise GradingError("two pages of the original are equal to this check")
    if not order or not {*order} <= {*range(1, len(source) + 1)}:
        raise GradingError(f"order {order} names no pages of the original, which has {len(source)}")
    if turned and len(turned) != len(order):
        raise GradingError("turned must be as long as order")
    if order == [*range(1, len(source) + 1)] and not any(turn % 360 for turn in turned):
        raise GradingError("the original itself would pass")
    found = read_pages(item.bytes())
    seen = [source.index(p) + 1 if (p := _print(page)) in source else 0 for page in found]
    if seen != order:
        message = "pages by their number in the original, 0 is none of them"
        return verdict(False, message, seen=seen, wanted=order)
    before = read_pages(original)
    turns = [
        (page.rotation - before[number - 1].rotation) % 360
        for page, number in zip(found, order, strict=True)
    ]
    wanted = [turn % 360 for turn in turned] or [0] * len(order)
    return verdict(turns == wanted, "how far they are turned", seen=turns, wanted=wanted)


def _print(page: Page) -> tuple[str, int, int, tuple[tuple[int, int], ...]]:
    flat = normal(page.text, whitespace="collapse", form="NFKC")
    return flat, round(page.width), round(page.height), page.images
