"""For the authors of ``vary.py``: text documents (docx, odt) whose bytes depend on their content.

One plain description gives either kind, as little as a word processor opens without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from xml.sax.saxutils import escape

from cua_gym.task.authoring import package_bytes

__all__ = ["Block", "document_bytes"]

Block = Sequence[Any]
"""A paragraph, ``["Text", "Words."]``, or a table, ``[["Name", "Room"], ["Ann", "12"]]``."""

STYLES = ("Title", "Heading 1", "Heading 2", "Text", "Quotation")
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def document_bytes(kind: Literal["docx", "odt"], blocks: Sequence[Block]) -> bytes:
    """A document of these paragraphs and tables, on A4.

    Args:
        blocks: a paragraph is its style, one of `STYLES`, and its text; a table is rows of cells.

    Raises:
        ValueError: another kind or style.
    """
    makers = {"docx": _docx, "odt": _odt}
    if kind not in makers:
        raise ValueError(f"kind is {' or '.join(makers)}, not {kind!r}")
    for block in blocks:
        if isinstance(block[0], str) and (len(block) != 2 or block[0] not in STYLES):
            raise ValueError(f"a paragraph is a style of {STYLES} and a text, not {block!r}")
    return package_bytes(makers[kind](blocks))


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_PART = "application/vnd.openxmlformats-officedocument.wordprocessingml"
# Id, name, and what it says of paragraphs and of characters.
_DOCX = {
    "Text": ("Normal", "Normal", '<w:spacing w:after="140"/>', '<w:sz w:val="24"/>'),
    "Title": ("Title", "Title", '<w:jc w:val="center"/>', '<w:b/><w:sz w:val="44"/>'),
    "Heading 1": ("Heading1", "heading 1", '<w:outlineLvl w:val="0"/>', '<w:b/><w:sz w:val="34"/>'),
    "Heading 2": ("Heading2", "heading 2", '<w:outlineLvl w:val="1"/>', '<w:b/><w:sz w:val="28"/>'),
    "Quotation": ("Quote", "Quote", '<w:ind w:left="567" w:right="567"/>', "<w:i/>"),
}


def _docx(blocks: Sequence[Block]) -> dict[str, str]:
    """Source: ECMA-376 part 1, chapter 17."""
    body = "".join(
        _docx_paragraph(block[1], _DOCX[block[0]][0])
        if isinstance(block[0], str)
        else _docx_table(block)
        for block in blocks
    )
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{key}"{_default(key)}><w:name w:val="{name}"/>'
        f"<w:qFormat/><w:pPr>{paragraph}</w:pPr><w:rPr>{look}</w:rPr></w:style>"
        for key, name, paragraph, look in _DOCX.values()
    )
    return {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_PART}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{_PART}.styles+xml"/></Types>',
        "_rels/.rels": _relation("officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": _relation("styles", "styles.xml"),
        "word/document.xml": f"{_HEAD}<w:document {_W}><w:body>{body}<w:sectPr>"
        '<w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" '
        'w:left="1134" w:header="567" w:footer="567" w:gutter="0"/></w:sectPr></w:body>'
        "</w:document>",
        "word/styles.xml": f"{_HEAD}<w:styles {_W}><w:docDefaults><w:rPrDefault><w:rPr>"
        '<w:rFonts w:ascii="Liberation Serif" w:hAnsi="Liberation Serif"/></w:rPr></w:rPrDefault>'
        f"</w:docDefaults>{styles}</w:styles>",
    }


def _default(key: str) -> str:
    return ' w:default="1"' if key == "Normal" else ""


def _relation(kind: str, target: str) -> str:
    return (
        f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_RELATION}/{kind}" Target="{target}"/></Relationships>'
    )


def _docx_paragraph(text: str, style: str = "Normal") -> str:
    return (
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
        f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r></w:p>'
    )


def _docx_table(rows: Sequence[Sequence[str]]) -> str:
    width = 9638 // len(rows[0])
    sides = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:color="808080"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    cells = f'<w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>'
    body = "".join(
        f"<w:tr>{''.join(f'<w:tc>{cells}{_docx_paragraph(text)}</w:tc>' for text in row)}</w:tr>"
        for row in rows
    )
    grid = f'<w:gridCol w:w="{width}"/>' * len(rows[0])
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="{width * len(rows[0])}" w:type="dxa"/>'
        f"<w:tblBorders>{sides}</w:tblBorders></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{body}</w:tbl>"
    )


_URN = "urn:oasis:names:tc:opendocument:xmlns"
_SPACES = " ".join(
    f'xmlns:{short}="{_URN}:{name}:1.0"'
    for short, name in (
        ("office", "office"),
        ("style", "style"),
        ("text", "text"),
        ("table", "table"),
        ("fo", "xsl-fo-compatible"),
    )
)
_VERSION = 'office:version="1.2"'
_MIME = "application/vnd.oasis.opendocument.text"
_FONT = 'fo:font-family="&apos;Liberation Serif&apos;"'
# Name of the style, its parent, and what it says of paragraphs and of characters.
_ODT = {
    "Text": ("Text_20_body", "Standard", 'fo:margin-bottom="0.25cm"', ""),
    "Title": ("Title", "Standard", 'fo:text-align="center"', 'fo:font-size="22pt"'),
    "Heading 1": ("Heading_20_1", "Standard", "", 'fo:font-size="17pt"'),
    "Heading 2": ("Heading_20_2", "Standard", "", 'fo:font-size="14pt"'),
    "Quotation": ("Quotations", "Standard", 'fo:margin-left="1cm"', 'fo:font-style="italic"'),
}


def _odt(blocks: Sequence[Block]) -> dict[str, str]:
    """Source: OpenDocument 1.2 part 1; the mimetype comes first and plain."""
    body = "".join(
        _odt_paragraph(block[0], block[1]) if isinstance(block[0], str) else _odt_table(block)
        for block in blocks
    )
    styles = "".join(
        f'<style:style style:name="{name}" style:display-name="{name.replace("_20_", " ")}" '
        f'style:family="paragraph" style:parent-style-name="{parent}" style:class="text"'
        f"{_outline(name)}>"
        f"<style:paragraph-properties {paragraph}/><style:text-properties {look}/></style:style>"
        for name, parent, paragraph, look in _ODT.values()
    )
    return {
        "mimetype": _MIME,
        "content.xml": f"{_HEAD}<office:document-content {_SPACES} {_VERSION}>"
        "<office:automatic-styles>"
        '<style:style style:name="Cell" style:family="table-cell"><style:table-cell-properties '
        'fo:padding="0.1cm" fo:border="0.5pt solid #808080"/></style:style>'
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>",
        "styles.xml": f"{_HEAD}<office:document-styles {_SPACES} {_VERSION}><office:styles>"
        '<style:default-style style:family="paragraph"><style:text-properties '
        f'{_FONT} fo:font-size="12pt" fo:language="en" fo:country="US"/></style:default-style>'
        '<style:style style:name="Standard" style:family="paragraph" style:class="text"/>'
        f"{styles}</office:styles><office:automatic-styles>"
        '<style:page-layout style:name="A4"><style:page-layout-properties fo:page-width="21cm" '
        'fo:page-height="29.7cm" fo:margin="2cm"/></style:page-layout></office:automatic-styles>'
        '<office:master-styles><style:master-page style:name="Standard" '
        'style:page-layout-name="A4"/></office:master-styles></office:document-styles>',
        "META-INF/manifest.xml": f'{_HEAD}<manifest:manifest xmlns:manifest="{_URN}:manifest:1.0" '
        f'manifest:version="1.2"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{_MIME}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/>'
        '<manifest:file-entry manifest:full-path="styles.xml" manifest:media-type="text/xml"/>'
        "</manifest:manifest>",
    }


def _outline(name: str) -> str:
    """Without it a paragraph that is given the style later is no heading."""
    level = name.removeprefix("Heading_20_")
    return f' style:default-outline-level="{level}"' if level.isdecimal() else ""


def _odt_paragraph(style: str, text: str) -> str:
    tag = f'text:h text:outline-level="{style[-1]}"' if style.startswith("Heading") else "text:p"
    close = tag.partition(" ")[0]
    return f'<{tag} text:style-name="{_ODT[style][0]}">{escape(text)}</{close}>'


def _odt_table(rows: Sequence[Sequence[str]]) -> str:
    body = "".join(
        "<table:table-row>"
        + "".join(
            '<table:table-cell table:style-name="Cell" office:value-type="string">'
            f'<text:p text:style-name="Standard">{escape(text)}</text:p></table:table-cell>'
            for text in row
        )
        + "</table:table-row>"
        for row in rows
    )
    column = f'<table:table-column table:number-columns-repeated="{len(rows[0])}"/>'
    return f'<table:table table:name="Table1">{column}{body}</table:table>'
