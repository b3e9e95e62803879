"""Text documents: the same answers for docx and odt, of whichever program."""

from __future__ import annotations

from typing import Any

import pytest

from cua_gym.errors import GradingError

from .conftest import ROOT, Judge
from .hostile_files import bad_packages, damaged, zipped

SAVED = ROOT / "tests/evaluators/saved"
REPORTS = {
    # One document: by python-docx, and as LibreOffice Writer saves it.
    name: (SAVED / name).read_bytes()
    for name in ("report.docx", "report.odt", "report-other.docx")
}
MAIN = {"docx": "word/document.xml", "odt": "content.xml"}

ALL = [
    "Report", "The quick brown fox and red end.", "Centred line", "Aims", "one", "two", "three",
    "Between", "first", "second", "Said he", "Name", "Sum", "x", "Ann", "3", "y",
    "Tabs\tand  two spaces",
]  # fmt: skip
TABLE = [["Name", "Sum", "x"], ["Ann", "3", "y"]]
HEADINGS = [[1, "Report"], [2, "Aims"]]
FOOT = "Page <page> of <pages>"

HOLDS: list[tuple[str, dict[str, Any]]] = [
    ("paragraphs", {"expected": ALL}),
    ("paragraphs", {"expected": ["REPORT", *ALL[1:]], "case": "fold"}),
    ("paragraphs", {"expected": ["Report"], "style": "Heading 1"}),
    ("paragraphs", {"expected": ["one", "two", "three"], "style": "list bullet"}),
    ("paragraphs", {"expected": ["Said he"], "style": "Quotations", "variants": ["Quote"]}),
    ("states", {"facts": [["quick  brown", "lazy dog"], ["3"], ["Said he"]], "forbidden": ["dog"]}),
    ("headings", {"expected": HEADINGS}),
    ("items", {"expected": ["one", "two", "three"], "kind": "bullet"}),
    ("items", {"expected": ["first", "second"], "kind": "number"}),
    ("table", {"expected": TABLE}),
    ("header", {"expected": "Header one"}),
    ("footer", {"expected": FOOT}),
    ("format", {"phrase": "quick brown", "bold": True, "italic": False, "only": True}),
    ("format", {"phrase": "red", "italic": True, "size": 14, "color": "ff0000", "only": True}),
    ("format", {"phrase": "Centred line", "align": "center", "bold": False, "only": True}),
    ("format", {"phrase": "Report", "bold": True, "size": 14}),
    ("format", {"phrase": "Said he", "italic": True}),
    ("page", {"width": 297, "height": 210, "orientation": "landscape"}),
    ("page", {"margins": [25, 20, 25, 20]}),
]

NEAR: list[tuple[str, dict[str, Any]]] = [
    ("paragraphs", {"expected": ALL[:-1]}),
    ("paragraphs", {"expected": [*ALL, "more"]}),
    ("paragraphs", {"expected": ["report", *ALL[1:]]}),
    ("paragraphs", {"expected": [*ALL[:-1], "Tabs and two spaces"]}),
    ("paragraphs", {"expected": ["Report"], "style": "Heading"}),
    ("paragraphs", {"expected": ["Aims"], "style": "Heading 1"}),
    ("states", {"facts": [["quick"], ["bro"]]}),
    ("states", {"facts": [["one two"]]}),
    ("states", {"facts": [["quick"]], "forbidden": ["fox"]}),
    ("states", {"facts": [["Header one"]]}),
    ("headings", {"expected": [[1, "Report"], [1, "Aims"]]}),
    ("headings", {"expected": [[1, "Report"]]}),
    ("headings", {"expected": [[2, "Aims"], [1, "Report"]]}),
    ("items", {"expected": ["one", "two"], "kind": "bullet"}),
    ("items", {"expected": ["one", "two", "three"], "kind": "number"}),
    ("items", {"expected": ["one", "two", "three"], "kind": "bullet", "depth": 2}),
    ("items", {"expected": ["one", "three", "two"], "kind": "bullet"}),
    ("table", {"expected": TABLE[:1]}),
    ("table", {"expected": [["Name", "Sum"], ["Ann", "3"]]}),
    ("table", {"expected": [["Name", "Sum", "x"], ["Ann", "3.0", "y"]]}),
    ("table", {"expected": TABLE, "number": 2}),
    ("header", {"expected": "Header"}),
    ("header", {"expected": FOOT}),
    ("header", {"expected": ""}),
    ("footer", {"expected": "Page 1 of 1"}),
    ("format", {"phrase": "quick", "bold": True, "italic": True}),
    ("format", {"phrase": "quick", "bold": True, "only": True}),
    ("format", {"phrase": "brown fox", "bold": True}),
    ("format", {"phrase": "quic", "bold": True}),
    ("format", {"phrase": "the quick", "bold": True}),
    ("format", {"phrase": "quick brown", "bold": True, "count": 2}),
    ("format", {"phrase": "red", "color": "FE0000"}),
    ("format", {"phrase": "red", "size": 14.5}),
    ("format", {"phrase": "red", "underline": True}),
    ("format", {"phrase": "Between", "align": "center"}),
    ("page", {"width": 210, "height": 297}),
    ("page", {"orientation": "portrait"}),
    ("page", {"margins": [25, 20, 25, 22]}),
]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(("name", "wanted"), HOLDS)
def test_what_is_there_holds(judge: Judge, report: str, name: str, wanted: dict[str, Any]):
    """Whichever program saved it."""
    found = judge(f"documents.{name}", REPORTS[report], **wanted)
    assert found.passed, found


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize(("name", "wanted"), NEAR)
def test_a_near_miss_is_none(judge: Judge, report: str, name: str, wanted: dict[str, Any]):
    """Off by a word, a level, a colour."""
    assert not judge(f"documents.{name}", REPORTS[report], **wanted).passed


@pytest.mark.parametrize(("name", "wanted"), HOLDS)
def test_an_empty_document_has_none_of_it(judge: Judge, name: str, wanted: dict[str, Any]):
    """Nor has one that is not there."""
    for data in (docx("<w:p/>"), odt("<text:p/>"), None):
        assert not judge(f"documents.{name}", data, **wanted).passed


def test_facts_are_paid_by_share(judge: Judge):
    """Two of three; what stands in two paragraphs is no one fact."""
    facts = [["quick brown"], ["two three"], ["Tabs and two spaces"]]
    found = judge("documents.states", REPORTS["report.odt"], facts=facts)
    assert found.value == pytest.approx(2 / 3)


@pytest.mark.parametrize("report", REPORTS)
def test_the_kind_is_told_by_the_content(judge: Judge, report: str):
    """Whatever the name; what is no whole document has none."""
    docx_kind = report.endswith("docx")
    assert judge("documents.kind", REPORTS[report], expected="docx").passed is docx_kind
    assert judge("documents.kind", REPORTS[report], expected="odt").passed is not docx_kind
    assert not judge("documents.kind", REPORTS[report][:-30], expected="docx").passed
    assert not judge("documents.kind", None, expected="docx").passed


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def docx(body: str, styles: str = "") -> bytes:
    """The least that is a docx."""
    package = "http://schemas.openxmlformats.org/package/2006"
    parts: dict[str, bytes | str] = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="a" '
        f'Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
    }
    if styles:
        parts["word/_rels/document.xml.rels"] = (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="s" '
            f'Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>'
        )
        parts["word/styles.xml"] = f'<w:styles xmlns:w="{W}">{styles}</w:styles>'
    return zipped(parts)


def odt(body: str, automatic: str = "") -> bytes:
    """The least that is an odt."""
    names = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
        for short, long in (
            ("office", "office"),
            ("text", "text"),
            ("style", "style"),
            ("table", "table"),
            ("fo", "xsl-fo-compatible"),
            ("draw", "drawing"),
        )
    )
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {names}><office:automatic-styles>{automatic}"
            f"</office:automatic-styles><office:body><office:text>{body}</office:text>"
            "</office:body></office:document-content>",
        }
    )


def run(text: str, properties: str = "") -> str:
    """A run of a docx."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def test_a_tracked_change_counts_as_accepted(judge: Judge):
    """What it inserted is there, what it deleted is not; a text box is beside the text."""
    box = "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent>" \
        "</w:pict></w:r>"  # fmt: skip
    body = f"<w:p>{run('a ')}<w:ins>{run('new')}</w:ins><w:del><w:r><w:delText>old</w:delText>" \
        f"</w:r></w:del>{box}</w:p>"  # fmt: skip
    assert judge("documents.paragraphs", docx(body), expected=["a new"]).passed
    odt_body = (
        "<text:tracked-changes><text:changed-region><text:deletion><text:p>old</text:p>"
        "</text:deletion></text:changed-region></text:tracked-changes><text:p>a <text:change "
        'text:change-id="1"/>new<draw:frame><draw:text-box><text:p>box</text:p></draw:text-box>'
        "</draw:frame><text:note><text:note-body><text:p>n</text:p></text:note-body></text:note>"
        "</text:p>"
    )
    assert judge("documents.paragraphs", odt(odt_body), expected=["a new"]).passed


def test_styles_add_up_as_programs_show_them(judge: Judge):
    """Bold within bold is not bold where both are styles; set by hand it is."""
    bold = "<w:rPr><w:b/></w:rPr>"
    styles = (
        f'<w:style w:type="paragraph" w:styleId="P"><w:name w:val="P"/>{bold}</w:style>'
        f'<w:style w:type="paragraph" w:styleId="Q"><w:basedOn w:val="P"/></w:style>'
        f'<w:style w:type="character" w:styleId="C"><w:name w:val="C"/>{bold}</w:style>'
        # In a circle, which ends nowhere.
        '<w:style w:type="paragraph" w:styleId="X"><w:basedOn w:val="X"/></w:style>'
    )
    words = (
        run("plain")
        + run(" styled", '<w:rStyle w:val="C"/>')
        + run(" hand", '<w:rStyle w:val="C"/><w:b/>')
        + run(" off", '<w:b w:val="0"/>')
    )
    data = docx(f'<w:p><w:pPr><w:pStyle w:val="Q"/></w:pPr>{words}</w:p>', styles)
    for word, is_bold in (("plain", True), ("styled", False), ("hand", True), ("off", False)):
        assert judge("documents.format", data, phrase=word, bold=is_bold).passed
    circle = docx(f'<w:p><w:pPr><w:pStyle w:val="X"/></w:pPr>{run("x")}</w:p>', styles)
    assert judge("documents.format", circle, phrase="x", bold=False).passed


def test_formats_of_an_odt_are_found_through_nested_spans(judge: Judge):
    """The inner one counts; a phrase may be cut by it."""
    automatic = "".join(
        f'<style:style style:name="{name}" style:family="text"><style:text-properties '
        f'fo:font-weight="{weight}"/></style:style>'
        for name, weight in (("B", "bold"), ("N", "normal"))
    )
    body = (
        '<text:p>a <text:span text:style-name="B">b <text:span text:style-name="N">c</text:span>'
        "<text:span>d</text:span></text:span></text:p>"
    )
    data = odt(body, automatic)
    assert judge("documents.format", data, phrase="b", bold=True).passed
    assert judge("documents.format", data, phrase="a", bold=False).passed
    assert not judge("documents.format", data, phrase="b cd", bold=True).passed
    assert not judge("documents.format", data, phrase="cd", bold=False).passed


def test_typed_bullets_are_no_list_and_large_letters_no_heading(judge: Judge):
    """They only look so."""
    large = run("Title", '<w:b/><w:sz w:val="40"/>')
    data = docx(f"<w:p>{run('• one')}</w:p><w:p>{large}</w:p>")
    assert not judge("documents.items", data, expected=["one"], kind="bullet").passed
    assert not judge("documents.headings", data, expected=[[1, "Title"]]).passed


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("paragraphs", {"expected": []}),
        ("paragraphs", {"expected": [" "]}),
        ("headings", {"expected": []}),
        ("headings", {"expected": [["Report", 1]]}),
        ("items", {"expected": [], "kind": "bullet"}),
        ("table", {"expected": [[""]]}),
        ("table", {"expected": TABLE, "number": 0}),
        ("format", {"phrase": "x"}),
        ("format", {"phrase": "", "bold": True}),
        ("page", {}),
        ("page", {"margins": [1, 2]}),
    ],
)
def test_what_cannot_be_meant_is_the_authors_fault(judge: Judge, name: str, wanted: dict[str, Any]):
    """Named, before it gives anybody a wrong score."""
    with pytest.raises(GradingError):
        judge(f"documents.{name}", REPORTS["report.odt"], **wanted)


@pytest.mark.parametrize("report", ["report.docx", "report.odt"])
def test_hostile_documents_are_a_plain_fail(judge: Judge, report: str):
    """For each check, never a hang or the grader's fault."""
    good = REPORTS[report]
    checks = dict(HOLDS)
    for what, data in bad_packages(good, MAIN[report.rpartition(".")[2]]):
        # What reads the file is one for all checks.
        few = checks if what in ("random", "another XML") else {HOLDS[0][0]: HOLDS[0][1]}
        for name, wanted in few.items():
            assert not judge(f"documents.{name}", data, **wanted).passed, (what, name)
    for data in damaged(good, 25):
        judge("documents.paragraphs", data, expected=ALL)


@pytest.mark.parametrize(
    "data",
    [
        odt('<text:p>a<text:s text:c="999999999"/>b</text:p>'),
        odt('<text:p>a<text:s text:c="-1"/><text:s text:c="x"/>b</text:p>'),
        odt(
            '<table:table><table:table-row table:number-rows-repeated="1000000000"/></table:table>'
        ),
        odt("<text:list><text:list-item>" * 90 + "</text:list-item></text:list>" * 90),
        docx("<w:tbl><w:tr><w:tc>" * 60 + "</w:tc></w:tr></w:tbl>" * 60),
        docx(
            '<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="999999999"/></w:tcPr></w:tc></w:tr>'
            "</w:tbl>"
        ),
        docx("<w:p>" + run("a", '<w:sz w:val="NaN"/>') + "</w:p>"),
        docx(f"<w:p>{run('a ' * 3_000_000)}</w:p>"),
        docx(
            '<w:p><w:r><w:fldChar w:fldCharType="end"/><w:instrText>PAGE</w:instrText></w:r></w:p>'
        ),
    ],
)
def test_odd_documents_are_a_plain_fail(judge: Judge, data: bytes):
    """Huge repetitions, nesting and numbers that are none."""
    assert not judge("documents.format", data, phrase="a", bold=True).passed
    assert not judge("documents.table", data, expected=TABLE).passed
