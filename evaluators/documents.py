"""Text documents (docx, odt): what they say, how it is structured, and how it looks.

Fields for the page's number and the number of pages are ``<page>`` and ``<pages>``. Text boxes,
footnotes, comments and what a tracked change deleted are not looked at.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .docx import read_docx
from .odt import read_odt
from .office_text import MAX_TEXT, Look, PageSetup, Paragraph, TextDocument
from .packages import Package, once, reading
from .text import Case, Whitespace, first_difference, normal, stated

Align = Literal["", "left", "center", "right", "justify"]


@once
def read_document(data: bytes) -> TextDocument:
    """A text document of either kind, told by its content.

    Raises:
        Fails: it is none, broken, encrypted, or larger than any document of a task.
    """
    package = Package(data, "document")
    with reading("no whole document"):
        if "[Content_Types].xml" in package.names:
            found = read_docx(package)
        elif b"opendocument.text" in package.read("mimetype"):
            found = read_odt(package)
        else:
            raise Fails("neither docx nor odt", seen=sorted(package.names)[:20])
        size = sum(len(run.text) for p in found.paragraphs for run in p.runs)
        size += sum(1 + len(cell) for rows in found.tables for row in rows for cell in row)
        size += sum(len(one.header) + len(one.footer) for one in found.pages)
        if size > MAX_TEXT:
            raise Fails(f"{size} characters: no document of a task")
    return found


def _lines(paragraphs: Sequence[Paragraph]) -> list[str]:
    """Their texts; empty paragraphs are spacing, and every program adds some."""
    return [paragraph.text for paragraph in paragraphs if paragraph.text.strip()]


def _against(
    seen: list[str], wanted: list[str], what: str, whitespace: Whitespace, case: Case
) -> Verdict:
    def rule(lines: list[str]) -> str:
        return "\n".join(normal(one, whitespace=whitespace, case=case) for one in lines)

    same = [normal(s, whitespace=whitespace, case=case) for s in seen] == [
        normal(w, whitespace=whitespace, case=case) for w in wanted
    ]
    message = what if same else f"{what}: {first_difference(rule(seen), rule(wanted))}"
    return verdict(same, message, seen="\n".join(seen), wanted="\n".join(wanted))


@check
def paragraphs(
    item: Item,
    *,
    expected: list[str],
    style: str = "",
    variants: Sequence[str] = (),
    whitespace: Whitespace = "trim",
    case: Case = "exact",
) -> Verdict:
    """The paragraphs with any text, or those of one style, are exactly these in this order.

    Those in tables count, in reading order. ``style`` is the name that a person sees, case aside
    (``Heading 1``, ``Quotations``); ``variants`` are other names of it. ``Standard``, ``Default
    Paragraph Style`` and ``Normal`` are one. It refuses formats by hand that look like the style.
    """
    if not any(one.strip() for one in expected):
        raise GradingError("expected is empty, as an untouched document may be")
    found = read_document(item.bytes()).paragraphs
    if style:
        names = {_style(one) for one in (style, *variants)}
        found = tuple(p for p in found if _style(p.style) in names)
    what = f"the paragraphs of style {style}" if style else "the paragraphs"
    return _against(_lines(found), expected, what, whitespace, case)


def _style(name: str) -> str:
    name = name.casefold()
    return "normal" if name in ("standard", "default paragraph style", "default style") else name


@check
def states(item: Item, *, facts: list[list[str]], forbidden: Sequence[str] = ()) -> Verdict:
    """The paragraphs state every fact, each by one of its variants; headers and footers aside.

    A fact is a word or number of its own within one paragraph, as in `text.states`; any run of
    white space is one space. The value is the share of facts. It refuses, wholly, a document with
    any of ``forbidden``.
    """

    def flat(value: str) -> str:
        return normal(value, whitespace="collapse")

    text = "\n".join(flat(p.text) for p in read_document(item.bytes()).paragraphs)
    wanted = [[flat(one) for one in fact] for fact in facts]
    return stated(text, wanted, [flat(word) for word in forbidden])


@check
def kind(item: Item, *, expected: Literal["docx", "odt"]) -> Verdict:
    """A whole document of this kind, told by its content. It refuses another kind with its name."""
    data = item.bytes()
    read_document(data)
    seen = "docx" if "[Content_Types].xml" in Package(data, "document").names else "odt"
    return verdict(seen == expected, "its kind", seen=seen, wanted=expected)


@check
def headings(item: Item, *, expected: list[list[int | str]]) -> Verdict:
    """The headings with any text are exactly these, ``[[1, "Intro"], [2, "Aims"]]``, in order.

    A heading is a paragraph with an outline level, as its style gives it one. White space at the
    ends aside. It refuses text that only looks like a heading, and another level.
    """
    if not expected:
        raise GradingError("expected is empty, as an untouched document may be")
    if not all(len(one) == 2 and isinstance(one[0], int) for one in expected):
        raise GradingError("expected is a list of a level and a text, [[1, 'Intro']]")
    found = read_document(item.bytes()).paragraphs
    seen = [[p.level, p.text.strip()] for p in found if p.level and p.text.strip()]
    return verdict(seen == expected, "the headings", seen=str(seen), wanted=str(expected))


@check
def items(
    item: Item,
    *,
    expected: list[str],
    kind: Literal["bullet", "number"],
    depth: int = 1,
    whitespace: Whitespace = "trim",
) -> Verdict:
    """Somewhere these are all items, in order, of one list with bullets or numbers.

    A list is a run of such paragraphs of this depth or deeper; only those of this depth count. It
    refuses bullets or numbers that were typed, further and missing items.
    """
    if not expected:
        raise GradingError("expected is empty; name at least one item")
    lists: list[list[str]] = [[]]
    for paragraph in read_document(item.bytes()).paragraphs:
        if paragraph.bullet == kind and paragraph.depth == depth:
            lists[-1].append(normal(paragraph.text, whitespace=whitespace))
        elif not (paragraph.bullet and paragraph.depth > depth) and lists[-1]:
            lists.append([])
    wanted = [normal(one, whitespace=whitespace) for one in expected]
    return verdict(wanted in lists, f"the {kind} lists", seen=str(lists[:20]), wanted=str(wanted))


@check
def table(
    item: Item,
    *,
    expected: list[list[str]],
    number: int = 1,
    whitespace: Whitespace = "trim",
    case: Case = "exact",
) -> Verdict:
    """The table of this number (the first is 1) has exactly these texts, row by row.

    A cell over several columns is followed by empty ones; paragraphs of a cell are lines. It
    refuses text with tabs that looks like a table, and further rows and columns.
    """
    if number < 1 or not any(one.strip() for row in expected for one in row):
        raise GradingError("a table has a number from 1 and some text")
    found = read_document(item.bytes()).tables
    if number > len(found):
        raise Fails("there is no such table", seen=len(found), wanted=number)
    rows = found[number - 1]
    seen = [[normal(one, whitespace=whitespace, case=case) for one in row] for row in rows]
    wanted = [[normal(one, whitespace=whitespace, case=case) for one in row] for row in expected]
    return verdict(seen == wanted, f"table {number}", seen=str(seen), wanted=str(wanted))


@check
def header(item: Item, *, expected: str, whitespace: Whitespace = "trim") -> Verdict:
    """Every page's header says exactly this, ``Page <page> of <pages>``.

    That of a first or a left page alone is not looked at. It refuses a section without it, a
    number that was typed, and the same text in the body.
    """
    return _beside(item, "header", expected, whitespace)


@check
def footer(item: Item, *, expected: str, whitespace: Whitespace = "trim") -> Verdict:
    """Every page's footer says exactly this; as `header`."""
    return _beside(item, "footer", expected, whitespace)


def _beside(
    item: Item, kind: Literal["header", "footer"], expected: str, whitespace: Whitespace
) -> Verdict:
    seen = [
        normal(getattr(page, kind), whitespace=whitespace)
        for page in read_document(item.bytes()).pages
    ]
    wanted = normal(expected, whitespace=whitespace)
    same = bool(seen) and all(one == wanted for one in seen)
    return verdict(same, f"each section's {kind}", seen=str(seen), wanted=wanted)


@check
def format(  # noqa: A001  what a task's author calls it
    item: Item,
    *,
    phrase: str,
    count: int = 1,
    bold: bool | None = None,
    italic: bool | None = None,
    underline: bool | None = None,
    strike: bool | None = None,
    size: float | None = None,
    font: str = "",
    color: str = "",
    align: Align = "",
    only: bool = False,
) -> Verdict:
    """A phrase, which is there ``count`` times, has all the formats that are named.

    It is words of their own within one paragraph, case as it is. What styles give counts, not
    just what was set by hand; white space may look as it likes. Sizes are points, colours RGB
    (``"FF0000"``, automatic is ``"000000"``). With ``only`` no other text of paragraphs of the
    same style has all of these formats. It refuses a phrase of which a part looks otherwise.
    """
    asked = {
        "bold": bold,
        "italic": italic,
        "underline": underline,
        "strike": strike,
        "size": size,
        "font": font or None,
        "color": color.upper() or None,
        "align": align or None,
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    if not wanted or not phrase.strip():
        raise GradingError("name a phrase and at least one format")
    found = read_document(item.bytes()).paragraphs
    pattern = re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)")
    places = [[match.span() for match in pattern.finditer(p.text)] for p in found]
    if (seen := sum(map(len, places))) != count:
        raise Fails(f"{phrase!r} is there {seen} times", seen=seen, wanted=count)
    wrong: dict[str, Any] = {}
    beside: list[tuple[str, str]] = []
    for paragraph, spans in zip(found, places, strict=True):
        for inside, text, look in _parts(paragraph, spans):
            off = _differs(look, paragraph, wanted) if text.strip() else {}
            if inside:
                wrong = wrong or off
            elif text.strip() and not off:
                beside.append((paragraph.style, text))
    if wrong:
        return verdict(False, f"{phrase!r} looks otherwise", seen=str(wrong), wanted=str(wanted))
    styles = {p.style for p, spans in zip(found, places, strict=True) if spans}
    others = " ".join(text for style, text in beside if only and style in styles)
    message = f"other text looks so too: {others[:80]!r}" if others else f"{phrase!r} looks so"
    return verdict(not others, message, seen=others[:200] or str(wanted), wanted=str(wanted))


def _parts(paragraph: Paragraph, spans: list[tuple[int, int]]) -> Iterator[tuple[bool, str, Look]]:
    """The paragraph's runs, cut where one of the spans begins or ends, and whether within one."""
    place = 0
    for run in paragraph.runs:
        end = place + len(run.text)
        cuts = sorted({place, end, *(cut for span in spans for cut in span if place < cut < end)})
        for first, last in itertools.pairwise(cuts):
            inside = any(a <= first and last <= b for a, b in spans)
            yield inside, run.text[first - place : last - place], run.look
        place = end


def _differs(look: Look, paragraph: Paragraph, wanted: dict[str, Any]) -> dict[str, Any]:
    """What of the formats is not as wanted, with its values."""
    off = {}
    for name, value in wanted.items():
        seen = paragraph.align if name == "align" else getattr(look, name)
        # Half points are the smallest difference that a program offers.
        same = abs((seen or 0) - value) < 0.05 if name == "size" else seen == value
        if not same:
            off[name] = seen
    return off


@check
def page(
    item: Item,
    *,
    width: float = 0.0,
    height: float = 0.0,
    orientation: Literal["", "portrait", "landscape"] = "",
    margins: Sequence[float] = (),
    tolerance: float = 1.0,
) -> Verdict:
    """All pages have this size, way up and margins (top, right, bottom, left), in millimetres.

    Each length within ``tolerance``; only what is named is looked at. The top and bottom margins
    are those of the body: a header or footer is within them. It refuses a document of which one
    section differs.
    """
    if margins and len(margins) != 4:
        raise GradingError("margins are four: top, right, bottom, left")
    if not (width or height or orientation or margins):
        raise GradingError("name a size, an orientation or margins")
    pages = read_document(item.bytes()).pages
    seen = [_lengths(one) for one in pages]
    sides: Sequence[float | None] = margins or [None] * 4
    wanted = [width or None, height or None, *sides]
    fits = bool(pages) and all(
        abs(length - want) <= tolerance
        for lengths in seen
        for length, want in zip(lengths, wanted, strict=True)
        if want is not None
    )
    ways = ["landscape" if one.width > one.height else "portrait" for one in pages]
    fits = fits and all(orientation in ("", way) for way in ways)
    return verdict(
        fits,
        "width, height, margins and way up of each section",
        seen=str(list(zip(seen, ways, strict=True))),
        wanted=str((wanted, orientation)),
    )


def _lengths(page: PageSetup) -> list[float]:
    sides = (page.width, page.height, page.top, page.right, page.bottom, page.left)
    return [round(length, 1) for length in sides]
