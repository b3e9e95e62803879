"""A report of some pages with a header, in which one name is misspelt and another begins alike."""

from __future__ import annotations

import io
import random
import zipfile
from typing import Any

from cua_gym.task.authoring import package_bytes
from cua_gym.task.documents import Block, document_bytes

# Right, misspelt, and what begins like the misspelt one.
_NAMES = [
    ("Meyer", "Meier", "Meierhofer"),
    ("Hansson", "Hanson", "Hansonfield"),
    ("Schmitt", "Schmid", "Schmidberg"),
    ("Larsen", "Larson", "Larsonville"),
    ("Martens", "Mertens", "Mertensburg"),
    ("Thomsen", "Thomson", "Thomsonhill"),
    ("Kowalska", "Kovalska", "Kovalskaya"),
    ("Nyström", "Nystrom", "Nystromberg"),
]
_FIRST = ["Ines", "Ada", "Yuki", "Sofia", "Edith", "Priya", "Olga", "Ruth"]
_SUBJECTS = ["harbour", "library", "bridge", "theatre", "station", "market hall"]
_FOLDERS = ["Documents", "Documents/reports", "Desktop/office", "Papers"]
_OF_ONE = [
    "The drawings that {who} made in {month} were looked through again.",
    "In {month} {who} went to the {subject} and counted {number} lamps.",
    "It was {who}, not the town, who paid for the {number} chairs.",
    "{who} wrote in {month} that the roof was to be mended first.",
    "Nobody but {who} had a key to the {subject} in {month}.",
]
_OF_NOBODY = [
    "The {subject} was closed for {number} days in {month}.",
    "In {month} the {number} windows of the {subject} were cleaned.",
    "For {number} years nobody had asked what the {subject} costs.",
    "The town sent {number} letters about it in {month}.",
    "Rain came in at {number} places, most of them on the north side.",
    "In {month} {number} people came to look at the {subject}, as on every first Sunday.",
    "The old plans of the {subject} were found in {month}, on page {number} of a book of maps.",
    "A lamp of the {subject} was left on for {number} nights, and nobody knew by whom.",
    "The floor was painted in {month} and was dry after {number} hours.",
    "There were {number} offers, of which the third was the lowest.",
    "From {month} on the {subject} is to be open for {number} hours a week.",
]
_MONTHS = ["January", "March", "April", "May", "June", "September", "October", "November"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The report as it is, with the misspelt name."""
    kind = rng.choice(["odt", "docx"])
    right, wrong, alike = rng.choice(_NAMES)
    first, other = rng.sample(_FIRST, 2)
    subject = rng.choice(_SUBJECTS)
    return {
        "kind": kind,
        "folder": rng.choice(_FOLDERS),
        "file": f"{subject.replace(' ', '-')}-{rng.randint(10, 99)}.{kind}",
        "first": first,
        "right": right,
        "wrong": wrong,
        "alike": alike,
        "header": f"{rng.choice(['Report', 'An account'])} by {first} {wrong}, {subject}",
        "blocks": _blocks(rng, subject, f"{first} {wrong}", wrong, f"{other} {alike}"),
    }


def _blocks(rng: random.Random, subject: str, full: str, wrong: str, alike: str) -> list[Block]:
    """Three chapters of paragraphs, and a table of who did what."""
    ways = [full, f"Ms {wrong}", wrong, f"Ms {wrong}"]

    def sentence(patterns: list[str], who: str = "") -> str:
        return rng.choice(patterns).format(
            who=who, subject=subject, month=rng.choice(_MONTHS), number=rng.randint(3, 99)
        )

    blocks: list[Block] = [
        ["Title", f"The {subject}"],
        ["Text", f"Written by {full} for the town."],
    ]
    for number, chapter in enumerate(["What was found", "What was done", "What it costs"]):
        blocks.append(["Heading 1", chapter])
        paragraphs = [
            [sentence(_OF_NOBODY) for _ in range(rng.randint(2, 4))]
            for _ in range(rng.randint(3, 5))
        ]
        for paragraph in rng.sample(paragraphs, 2):
            paragraph.insert(0, sentence(_OF_ONE, rng.choice(ways)))
        rng.choice(paragraphs).append(sentence(_OF_ONE, alike))
        blocks += [["Text", " ".join(paragraph)] for paragraph in paragraphs]
        if number == 1:
            rows = [
                [work, who, f"{rng.randint(2, 40)} days"]
                for work, who in zip(
                    rng.sample(["Roof", "Windows", "Doors", "Lamps", "Stairs"], 4),
                    rng.sample([wrong, full, alike, "the town"], 4),
                    strict=True,
                )
            ]
            blocks.append([["Work", "Done by", "Time"], *rows])
    blocks.append(["Quotation", f"We thank {full} most of all, and {alike} too."])
    return blocks


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The report."""
    data = document_bytes(params["kind"], params["blocks"])
    return {"document": with_header(data, params["kind"], params["header"])}


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PART = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PATCHES = {
    "docx": {
        "[Content_Types].xml": (
            "</Types>",
            f'<Override PartName="/word/header1.xml" ContentType="{_PART}.header+xml"/></Types>',
        ),
        "word/_rels/document.xml.rels": (
            "</Relationships>",
            f'<Relationship Id="rId2" Type="{_R}/header" Target="header1.xml"/></Relationships>',
        ),
        "word/document.xml": (
            "<w:sectPr>",
            f'<w:sectPr><w:headerReference xmlns:r="{_R}" w:type="default" r:id="rId2"/>',
        ),
    },
    "odt": {
        "styles.xml": (
            'style:page-layout-name="A4"/>',
            'style:page-layout-name="A4"><style:header><text:p text:style-name="Standard">HEADER'
            "</text:p></style:header></style:master-page>",
        ),
    },
}


def with_header(data: bytes, kind: str, text: str) -> bytes:
    """The same document with a page header."""
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    for name, (old, new) in _PATCHES[kind].items():
        parts[name] = parts[name].replace(old.encode(), new.replace("HEADER", text).encode())
    if kind == "docx":
        paragraph = f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
        parts["word/header1.xml"] = f"<w:hdr {_W}>{paragraph}</w:hdr>".encode()
    else:
        parts["styles.xml"] = parts["styles.xml"].replace(
            b"</style:page-layout>",
            b'<style:header-style><style:header-footer-properties fo:min-height="1cm"/>'
            b"</style:header-style></style:page-layout>",
        )
    return package_bytes(parts)
