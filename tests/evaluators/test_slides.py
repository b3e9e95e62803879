"""Presentations: the same answers for pptx and odp, of whichever program."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from cua_gym.errors import GradingError

from .conftest import ROOT, Judge
from .hostile_files import bad_packages, damaged, edited

SAVED = ROOT / "tests/evaluators/saved"
TALKS = {
    # One talk: by python-pptx, and as LibreOffice Impress saves it.
    name: (SAVED / name).read_bytes()
    for name in ("talk.pptx", "talk.odp", "talk-other.pptx")
}
MAIN = {"pptx": "ppt/presentation.xml", "odp": "content.xml"}


def red(colour: tuple[int, int, int] = (200, 30, 30), kind: str = "PNG") -> bytes:
    """The picture on slide 3, or another."""
    image = Image.new("RGB", (40, 30), colour)
    image.putpixel((3, 3), (0, 255, 0))
    data = io.BytesIO()
    image.save(data, kind)
    return data.getvalue()


TITLES = ["Annual plan", "Aims", "Picture", ""]
AIMS = ["first aim", "second aim", "a detail"]
TABLE = [["c00", "c01"], ["c10", "c11"]]

HOLDS: list[tuple[str, dict[str, Any]]] = [
    ("titles", {"expected": TITLES}),
    ("titles", {"expected": ["annual PLAN", *TITLES[1:]], "case": "fold"}),
    ("hidden", {"expected": [4]}),
    ("text", {"slide": 1, "expected": ["By the team"]}),
    ("text", {"slide": 2, "expected": AIMS}),
    ("text", {"slide": 2, "expected": AIMS[::-1], "order": False}),
    ("text", {"slide": 3, "expected": ["A caption"]}),
    ("notes", {"slide": 2, "expected": "Say this.\nThen that."}),
    ("pictures", {"slide": 3, "count": 1}),
    ("pictures", {"slide": 3, "count": 1, "images": [red()]}),
    ("pictures", {"slide": 3, "count": 1, "images": [red(kind="BMP")]}),
    ("table", {"slide": 4, "expected": TABLE}),
    ("layout", {"slide": 1, "expected": ["subtitle", "title"]}),
    ("layout", {"slide": 2, "expected": ["title", "content"]}),
]

NEAR: list[tuple[str, dict[str, Any]]] = [
    ("titles", {"expected": TITLES[:3]}),
    ("titles", {"expected": ["Aims", "Annual plan", "Picture", ""]}),
    ("titles", {"expected": ["annual plan", *TITLES[1:]]}),
    ("titles", {"expected": [*TITLES, ""]}),
    ("titles", {"expected": ["Annual", *TITLES[1:]]}),
    ("hidden", {"expected": [3]}),
    ("hidden", {"expected": [3, 4]}),
    ("text", {"slide": 1, "expected": ["Annual plan", "By the team"]}),
    ("text", {"slide": 2, "expected": AIMS[:2]}),
    ("text", {"slide": 2, "expected": AIMS[::-1]}),
    ("text", {"slide": 2, "expected": ["Say this.", "Then that."]}),
    ("text", {"slide": 5, "expected": AIMS}),
    ("text", {"slide": 4, "expected": ["c00"]}),
    ("notes", {"slide": 2, "expected": "Say this."}),
    ("notes", {"slide": 1, "expected": "Say this.\nThen that."}),
    ("pictures", {"slide": 3, "count": 2}),
    ("pictures", {"slide": 2, "count": 1}),
    ("pictures", {"slide": 3, "count": 1, "images": [red((201, 30, 30))]}),
    ("table", {"slide": 4, "expected": TABLE[:1]}),
    ("table", {"slide": 4, "expected": [["c00", "c10"], ["c01", "c11"]]}),
    ("table", {"slide": 4, "expected": TABLE, "number": 2}),
    ("table", {"slide": 3, "expected": TABLE}),
    ("layout", {"slide": 1, "expected": ["title"]}),
    ("layout", {"slide": 2, "expected": ["title", "content", "content"]}),
]


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize(("name", "wanted"), HOLDS)
def test_what_is_there_holds(judge: Judge, talk: str, name: str, wanted: dict[str, Any]):
    """Whichever program saved it."""
    found = judge(f"slides.{name}", TALKS[talk], **wanted)
    assert found.passed, found


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize(("name", "wanted"), NEAR)
def test_a_near_miss_is_none(judge: Judge, talk: str, name: str, wanted: dict[str, Any]):
    """Off by a slide, a word, a pixel's colour."""
    assert not judge(f"slides.{name}", TALKS[talk], **wanted).passed


def test_the_order_is_that_of_the_show_not_of_the_files(judge: Judge):
    """Slides that were moved keep the names of their files."""
    good = TALKS["talk-other.pptx"]

    def moved(name: str, data: bytes) -> bytes:
        if name != "ppt/presentation.xml":
            return data
        head, _, rest = data.partition(b"<p:sldIdLst>")
        ids, _, tail = rest.partition(b"</p:sldIdLst>")
        slides = [part + b"/>" for part in ids.split(b"/>") if part.strip()]
        return head + b"<p:sldIdLst>" + b"".join(slides[::-1]) + b"</p:sldIdLst>" + tail

    data = edited(good, moved)
    assert judge("slides.titles", data, expected=TITLES[::-1]).passed
    assert not judge("slides.titles", data, expected=TITLES).passed


def test_a_place_that_was_not_filled_says_nothing(judge: Judge):
    """But is part of the layout."""
    for talk, old, new in (
        ("talk.odp", b'presentation:class="subtitle" presentation:user-transformed="true"',
         b'presentation:class="subtitle" presentation:placeholder="true"'),
        ("talk-other.pptx", b"<a:t>By the team</a:t>", b"<a:t></a:t>"),
    ):  # fmt: skip
        data = edited(TALKS[talk], lambda _, part, old=old, new=new: part.replace(old, new))
        assert data != TALKS[talk]
        assert not judge("slides.text", data, slide=1, expected=["By the team"]).passed
        assert judge("slides.layout", data, slide=1, expected=["title", "subtitle"]).passed


def test_a_picture_that_is_not_in_the_file_is_none(judge: Judge):
    """A link to a file of the host is not followed; a broken picture is no picture of the task."""
    odp = edited(
        TALKS["talk.odp"], lambda _, d: d.replace(b'"Pictures/', b'"file:///etc/Pictures/')
    )
    assert judge("slides.pictures", odp, slide=3, count=0).passed
    broken = edited(
        TALKS["talk-other.pptx"], lambda name, d: b"x" if name.startswith("ppt/media/") else d
    )
    assert not judge("slides.pictures", broken, slide=3, count=1, images=[red()]).passed


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("titles", {"expected": []}),
        ("hidden", {"expected": []}),
        ("hidden", {"expected": [0]}),
        ("text", {"slide": 0, "expected": ["x"]}),
        ("text", {"slide": 1, "expected": [" "]}),
        ("notes", {"slide": 1, "expected": ""}),
        ("pictures", {"slide": 3, "count": 1, "images": [b"x"]}),
        ("table", {"slide": 4, "expected": TABLE, "number": 0}),
    ],
)
def test_what_cannot_be_meant_is_the_authors_fault(judge: Judge, name: str, wanted: dict[str, Any]):
    """Named, before it gives anybody a wrong score."""
    with pytest.raises(GradingError):
        judge(f"slides.{name}", TALKS["talk.odp"], **wanted)


@pytest.mark.parametrize("talk", ["talk-other.pptx", "talk.odp"])
def test_hostile_presentations_are_a_plain_fail(judge: Judge, talk: str):
    """For each check, never a hang or the grader's fault."""
    good = TALKS[talk]
    checks = dict(HOLDS)
    for what, data in bad_packages(good, MAIN[talk.rpartition(".")[2]]):
        # What reads the file is one for all checks.
        few = checks if what in ("random", "another XML") else {HOLDS[0][0]: HOLDS[0][1]}
        for name, wanted in few.items():
            assert not judge(f"slides.{name}", data, **wanted).passed, (what, name)
    for data in damaged(good, 25):
        judge("slides.titles", data, expected=TITLES)
        judge("slides.pictures", data, slide=3, count=1, images=[red()])


def test_other_kinds_of_package_are_no_presentation(judge: Judge):
    """A document or workbook with this name."""
    for name in ("report.docx", "report.odt", "looks.xlsx", "looks.ods"):
        data = (SAVED / name).read_bytes()
        assert not judge("slides.titles", data, expected=TITLES).passed
        assert not judge("slides.layout", data, slide=1, expected=["title"]).passed
    for name in ("talk.pptx", "talk.odp", "looks.xlsx", "looks.ods"):
        data = (SAVED / name).read_bytes()
        assert not judge("documents.headings", data, expected=[[1, "Report"]]).passed
    for name in ("talk.pptx", "talk.odp", "report.docx", "report.odt"):
        data = (SAVED / name).read_bytes()
        assert not judge("spreadsheets.sheets", data, expected=["Data"]).passed
