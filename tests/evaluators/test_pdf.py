"""PDFs: pages, their text, whose they are; hostile ones refused."""

from __future__ import annotations

import io
import zlib
from typing import Any

import pypdf
import pytest

from cua_gym.errors import GradingError

from .conftest import ROOT, Judge
from .hostile_files import damaged, zipped

LETTER = (ROOT / "tests/evaluators/saved/letter.pdf").read_bytes()
"""Two pages by LibreOffice Writer: ligatures, a header, ``Page 1 of 2`` in the footer."""


def pdf(pages: list[str], title: str = "", content: list[bytes] | None = None) -> bytes:
    """A PDF with a line of text on each page, or with these contents."""
    made = content or [f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() for text in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(made)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(made)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, data in enumerate(made):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>"
            b"/Contents %d 0 R>>" % (5 + 2 * number)
        )
        packed = zlib.compress(data)
        head = b"<</Filter/FlateDecode/Length %d>>" % len(packed)
        objects.append(head + b"stream\n" + packed + b"\nendstream")
    objects.append(f"<</Title({title})>>".encode() if title else b"<<>>")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer\n<</Size %d/Root 1 0 R/Info %d 0 R>>\n" % (size, size - 1)
    return (
        out
        + (b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer)
        + b"startxref\n%d\n%%%%EOF\n" % len(out)
    )


def rewritten(source: bytes, order: list[int], turned: int = 0, password: str = "") -> bytes:
    """What a program for pages makes of a PDF."""
    reader, writer = pypdf.PdfReader(io.BytesIO(source)), pypdf.PdfWriter()
    for number in order:
        page = writer.add_page(reader.pages[number - 1])
        if turned:
            page.rotate(turned)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


THREE = pdf(["First page", "Second page 170", "Third page"], title="Three")


def test_a_pdf_has_its_pages(judge: Judge):
    """As many as there are, one more or less is wrong."""
    assert judge("pdf.pages", THREE, count=3).passed
    assert judge("pdf.pages", LETTER, count=2).passed
    for other in (rewritten(THREE, [1, 2]), rewritten(THREE, [1, 2, 3, 3]), b"", None):
        assert not judge("pdf.pages", other, count=3).passed


def test_the_text_is_all_of_the_text(judge: Judge):
    """Of one page or of all; a part is not the text."""
    assert judge("pdf.text", THREE, page=1, expected="First page").passed
    assert judge("pdf.text", THREE, expected="First page Second page 170\nThird page").passed
    for wanted in ({"page": 1, "expected": "First"}, {"page": 1, "expected": "first page"},
                   {"page": 2, "expected": "First page"}, {"page": 4, "expected": "First page"},
                   {"expected": "First page"}):  # fmt: skip
        assert not judge("pdf.text", THREE, **wanted).passed


def test_a_writers_pdf_is_read(judge: Judge):
    """Ligatures are letters, header and footer are text of the page."""
    wanted = "Header one\nFirst office, efficient waffle.\nPage 1 of 2"
    found = judge("pdf.text", LETTER, page=1, expected=wanted)
    assert found.passed, found
    assert judge("pdf.states", LETTER, page=2, facts=[["Second page"], ["2 of 2"]]).passed
    assert judge("pdf.metadata", LETTER, key="title", expected="A letter").passed


def test_facts_are_words_of_their_own(judge: Judge):
    """A share of them is a part; a forbidden one is nothing."""
    assert judge("pdf.states", THREE, facts=[["170", "171"], ["third page"]]).passed
    assert judge("pdf.states", THREE, facts=[["170"], ["fourth"]]).value == 0.5
    assert judge("pdf.states", THREE, facts=[["17"]]).value == 0
    assert judge("pdf.states", THREE, facts=[["170"]], page=1).value == 0
    assert judge("pdf.states", THREE, facts=[["170"]], forbidden=["first"]).value == 0


def test_metadata_is_exact(judge: Judge):
    """None is not an empty one."""
    assert judge("pdf.metadata", THREE, key="title", expected="Three").passed
    assert not judge("pdf.metadata", THREE, key="title", expected="three").passed
    assert not judge("pdf.metadata", THREE, key="author", expected="").passed
    assert not judge("pdf.metadata", pdf(["x"]), key="title", expected="Three").passed


def test_pages_of_an_original_in_an_order(judge: Judge):
    """Reordered, taken out, turned; not further, missing or others."""
    rule: dict[str, Any] = {"original": THREE, "order": [3, 1]}
    assert judge("pdf.pages_of", rewritten(THREE, [3, 1]), **rule).passed
    for other in ([1, 3], [3], [3, 1, 2], [3, 2]):
        assert not judge("pdf.pages_of", rewritten(THREE, other), **rule).passed
    assert not judge("pdf.pages_of", THREE, **rule).passed
    assert not judge("pdf.pages_of", pdf(["Third page", "First  pages"]), **rule).passed
    turned = rewritten(THREE, [1, 2, 3], 90)
    whole: dict[str, Any] = {"original": THREE, "order": [1, 2, 3], "turned": [90, 90, 90]}
    assert judge("pdf.pages_of", turned, **whole).passed
    assert not judge("pdf.pages_of", THREE, **whole).passed
    assert not judge("pdf.pages_of", turned, **{**whole, "turned": [270, 90, 90]}).passed
    assert not judge("pdf.pages_of", rewritten(THREE, [3, 1], 90), **rule).passed
    assert judge("pdf.pages_of", rewritten(LETTER, [2, 1]), original=LETTER, order=[2, 1]).passed


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("text", {"expected": " "}),
        ("text", {"expected": "x", "page": -1}),
        ("states", {"facts": []}),
        ("pages_of", {"original": b"", "order": [1]}),
        ("pages_of", {"original": pdf(["a", "a"]), "order": [2, 1]}),
        ("pages_of", {"original": THREE, "order": []}),
        ("pages_of", {"original": THREE, "order": [4]}),
        ("pages_of", {"original": THREE, "order": [1, 2, 3]}),
        ("pages_of", {"original": THREE, "order": [3, 1], "turned": [90]}),
    ],
)
def test_what_cannot_be_meant_is_the_authors_fault(judge: Judge, name: str, wanted: dict[str, Any]):
    """Named, before it gives anybody a wrong score."""
    with pytest.raises(GradingError):
        judge(f"pdf.{name}", THREE, **wanted)


LOOP = pdf(["x"]).replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]")
SHOWS = b"BT /F1 12 Tf " + b"(word) Tj " * 5_000 + b"ET"

HOSTILE = {
    "empty": b"",
    "text": b"First page",
    "zip": zipped({"a.pdf": THREE}),
    "head alone": b"%PDF-1.7\n",
    "cut short": THREE[:400],
    "encrypted": rewritten(THREE, [1, 2, 3], password="secret"),
    "pages in a circle": LOOP,
    "bomb": pdf([], content=[b" " * 200_000_000]),
    "nested arrays": pdf([], content=[b"[" * 50_000]),
    "many words": pdf([], content=[SHOWS] * 4),
    "no pages": pdf([]).replace(b"/Kids[]", b"/Kids 5"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pdfs_are_a_plain_fail(judge: Judge, name: str):
    """No hang, and never the grader's fault."""
    data = HOSTILE[name]
    assert not judge("pdf.text", data, page=1, expected="First page").passed
    assert not judge("pdf.pages", data, count=3).passed
    assert not judge("pdf.metadata", data, key="title", expected="Four").passed


def test_damage_is_never_the_graders_fault(judge: Judge):
    """Copies with a few bytes changed give a verdict each."""
    for good in (THREE, LETTER):
        for data in damaged(good, 40):
            judge("pdf.states", data, facts=[["170"]])
            judge("pdf.metadata", data, key="title", expected="x")
