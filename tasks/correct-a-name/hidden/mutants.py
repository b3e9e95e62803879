"""Corrections that reach too little or too far."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence
from cua_gym.task.authoring import package_bytes

_TABLE = r"<(table:table|w:tbl)[ >].*?</\1>"


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the solved document's parts."""
    with zipfile.ZipFile(io.BytesIO(solved["document"].bytes())) as source:
        parts = {name: source.read(name).decode("latin-1") for name in source.namelist()}
    right, wrong, alike = (
        params[key].encode().decode("latin-1") for key in ("right", "wrong", "alike")
    )
    docx = params["kind"] == "docx"
    body = "word/document.xml" if docx else "content.xml"
    beside = [name for name in parts if right in parts[name] and name != body]

    def document(**changed: str) -> bytes:
        made = parts | changed
        return package_bytes({name: text.encode("latin-1") for name, text in made.items()})

    def with_body(text: str) -> bytes:
        return document(**{body: text})

    text = parts[body]
    table = re.search(_TABLE, text, re.DOTALL)
    assert table is not None  # the document has one
    old_table = table[0].replace(right, wrong)
    yield breaks(
        "the header forgotten",
        document=document(**{name: parts[name].replace(right, wrong) for name in beside}),
    )
    yield breaks("only the header corrected", document=with_body(text.replace(right, wrong)))
    yield breaks("the table forgotten", document=with_body(text.replace(table[0], old_table)))
    yield breaks("only the first corrected", document=with_body(_from(text, 1, right, wrong)))
    yield breaks("the last forgotten", document=with_body(_from(text, -2, right, wrong)))
    longer = alike.replace(wrong, right)
    yield breaks("what begins alike too", document=with_body(text.replace(alike, longer)))
    yield breaks("what begins alike once", document=with_body(text.replace(alike, longer, 1)))
    yield breaks("what begins alike cut", document=with_body(text.replace(alike, right)))
    yield breaks("in capitals", document=with_body(text.replace(right, right.upper())))
    yield breaks("a name removed", document=with_body(text.replace(right, "", 1)))


def _from(text: str, number: int, right: str, wrong: str) -> str:
    """The text with the names behind this part of it (before the last is -2) misspelt again."""
    parts = text.split(right)
    parts[number:] = [wrong.join(parts[number:])]
    return right.join(parts)
