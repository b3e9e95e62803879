"""The words in files."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile

import openpyxl
import pytest

from cua_gym.gates.phrases import Said
from cua_gym.gates.texts import texts_of


def said(data: bytes) -> Said:
    """What a file says."""
    return Said(texts_of(data))


def zipped(**members: bytes) -> bytes:
    """A zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    """A tar."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def numbered(data: bytes) -> str:
    """A name for a test that the time within the archives has no part in."""
    return "data"


@pytest.mark.parametrize(
    "data",
    [
        "Zürich 12".encode(),
        "Zürich 12".encode("utf-8-sig"),
        "Zürich 12".encode("utf-16"),
        "Zürich 12".encode("cp1252"),
        gzip.compress("Zürich 12".encode()),
        bz2.compress("Zürich 12".encode()),
        lzma.compress("Zürich 12".encode()),
        zipped(a="Zürich 12".encode()),
        tarred("a", "Zürich 12".encode()),
        gzip.compress(tarred("a", zipped(b="Zürich 12".encode()))),
        zipped(a=b"<w:t>Z&#252;ri</w:t><w:t>ch 12</w:t>"),
        zipped(a='<sheet name="Zürich 12"/>'.encode()),
        tarred("Zürich 12.txt", b""),
    ],
    ids=numbered,
)
def test_text_is_found(data: bytes) -> None:
    """In every encoding and package, packages in packages, over tags, in attributes and names."""
    assert said(data).has("Zürich 12")


def test_a_workbook() -> None:
    """Its texts, numbers and sheet names."""
    book = openpyxl.Workbook()
    book.active.title = "Orders"
    book.active.append(["Baker", 41.5])
    saved = io.BytesIO()
    book.save(saved)
    found = said(saved.getvalue())
    assert all(found.has(value) for value in ("Orders", "Baker", 41.5))


def test_a_database() -> None:
    """Names of tables and columns, values of rows."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute('CREATE TABLE "my orders" (customer TEXT, total REAL)')
        database.execute('INSERT INTO "my orders" VALUES (?, ?)', ("Costa", 12.25))
        database.commit()
        found = said(database.serialize())
    assert all(found.has(value) for value in ("my orders", "customer", "Costa", 12.25))


@pytest.mark.parametrize(
    "data",
    [b"", b"\0\1\2\xff", b"PK\x03\x04broken", b"%PDF-1.7 broken", b"SQLite format 3\0broken",
     b"\x1f\x8bbroken", b"BZhbroken", zipped(a=b"x" * 100)[:60]],
    ids=numbered,
)  # fmt: skip
def test_broken_files_say_nothing(data: bytes) -> None:
    """No error, and no words that are not there."""
    assert not said(data).has("Zürich")


def test_archives_end() -> None:
    """An archive in an archive, over and over, is read to a depth and no further."""
    data = b"deep"
    for _ in range(10):
        data = zipped(a=data)
    assert not said(data).has("deep")
