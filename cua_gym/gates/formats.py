"""Which kind of file some content is, and so which variants it has."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from cua_gym.errors import GradingError
from cua_gym.gates import (
    csv_mutants,
    document_mutants,
    json_mutants,
    listing_mutants,
    picture_mutants,
    sqlite_mutants,
    text_mutants,
    workbook_cells,
    workbook_mutants,
    xml_mutants,
    zip_mutants,
)
from cua_gym.gates.variants import Content, Variant
from cua_gym.grading.items import Fails
from cua_gym.grading.library import evaluators_package
from cua_gym.task.suite import bundled_suite

__all__ = ["recalculated", "variants"]

Found = tuple[list[Content], list[Content]]
"""Those that break what the file says, and those that keep it."""


def variants(path: str, start: bytes | None, solved: bytes) -> Found:
    """Variants of what a file became.

    Args:
        path: where it lies; only its ending is looked at.
        start: its content before, None when it was not there.
        solved: its content now.
    """
    if not solved or start == solved:
        return [], []
    if listing_mutants.is_listing(solved):
        return listing_mutants.broken(start, solved), []
    if solved.startswith(sqlite_mutants.MAGIC):
        old = None if start is None else {"": start}
        return sqlite_mutants.broken(old, {"": solved}), list(sqlite_mutants.kept({"": solved}))
    text = text_mutants.text_of(solved)
    if text is not None:
        return _text(PurePosixPath(path).suffix.lower(), start, solved, text)
    broken, kept = _packed(start, solved)
    half = Variant("half", "cut", partial(bytes, solved[: len(solved) // 2]))
    return [half, *broken], kept


def _text(suffix: str, start: bytes | None, solved: bytes, text: str) -> Found:
    before = None if start is None else text_mutants.text_of(start)
    kept = list(text_mutants.kept(text))
    if suffix in csv_mutants.SUFFIXES:
        return csv_mutants.broken(before, text), kept
    if (value := json_mutants.read(text)) is not None:
        old = None if before is None else json_mutants.read(before)
        return json_mutants.broken(old, value), [*kept, *json_mutants.kept(text, value)]
    if suffix not in (".html", ".htm") and (root := xml_mutants.read(solved)) is not None:
        earlier = None if start is None else xml_mutants.read(start)
        return xml_mutants.broken(earlier, root), [*kept, *xml_mutants.kept(solved)]
    return text_mutants.broken(before, text), kept


def _packed(start: bytes | None, solved: bytes) -> Found:
    """Of what is no text: archives, office files, pictures."""
    if (members := zip_mutants.read_zip(solved)) is not None:
        old = None if start is None else zip_mutants.read_zip(start)
        kept = list(zip_mutants.repacked(members))
        if not zip_mutants.is_office(members):
            return zip_mutants.broken(old, members, None), kept
        if (book := workbook_cells.read(members)) is not None:
            kind = "xlsx" if "xl/workbook.xml" in members else "ods"
            kept += workbook_mutants.kept(solved, kind, recalculated)
            return workbook_mutants.broken(old, book), kept
        return document_mutants.broken(old, members), kept
    if (tar := zip_mutants.read_tar(solved)) is not None:
        earlier = None if start is None else zip_mutants.read_tar(start)
        packed = zip_mutants.broken(None if earlier is None else earlier[1], tar[1], tar[0])
        return packed, list(zip_mutants.tar_repacked(tar))
    if (picture := picture_mutants.read(solved)) is not None:
        untouched = None if start is None else picture_mutants.read(start)
        broken = list(picture_mutants.broken(untouched, picture))
        return broken, list(picture_mutants.kept(picture))
    return [], []


def recalculated(data: bytes, kind: str) -> bytes:
    """A workbook as LibreOffice saves it, in the sandbox that the bundled checks have for it.

    Raises:
        GradingError: it does not work here, or not with this workbook.
    """
    package = evaluators_package(bundled_suite().path / "evaluators")
    module: Any = importlib.import_module(f"{package}.recalculation")
    try:
        saved: bytes = module.recalculated(data, kind)
    except Fails as failure:
        raise GradingError(f"the solved workbook cannot be saved anew: {failure}") from failure
    return saved
