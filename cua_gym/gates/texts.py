"""The words in a file: plain text, office files, archives, pdf and SQLite, told by content.

It is for finding words, not for showing them: markup may stay between them. What cannot be read
has none, since a picture or a broken file says nothing that could be compared.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import html
import io
import lzma
import re
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pypdf
from pypdf.errors import PyPdfError

__all__ = ["texts_of"]

MAX_BYTES = 32 << 20
MAX_DEPTH = 4
_TAG = re.compile(r"<[^<>]*>")
_UNREADABLE = (
    OSError, EOFError, ValueError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile,
    tarfile.TarError, zlib.error, lzma.LZMAError, sqlite3.Error, PyPdfError,
)  # fmt: skip


def texts_of(data: bytes, depth: int = 0) -> Iterator[str]:
    """Every text in a file, and in the files within it; names of members too."""
    if depth > MAX_DEPTH or not data:
        return
    for magic, read in _KINDS:
        if data.startswith(magic):
            yield from _readable(read, data, depth)
            return
    if data[257:262] == b"ustar":
        yield from _readable(_tar, data, depth)
    else:
        yield from _plain(data)


def _readable(read: Callable[[bytes, int], Iterator[str]], data: bytes, depth: int) -> list[str]:
    found: list[str] = []
    with contextlib.suppress(*_UNREADABLE):
        found.extend(read(data, depth))
    return found


def _plain(data: bytes) -> Iterator[str]:
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "ascii"):
        with contextlib.suppress(UnicodeDecodeError):
            text = data[:MAX_BYTES].decode(encoding)
            break
    else:
        if b"\0" in data:
            return
        text = data[:MAX_BYTES].decode("cp1252", "replace")
    if text.lstrip()[:1] == "<":
        # With the markup, for what stands in attributes; and without, since words run over tags.
        yield html.unescape(_TAG.sub("", text))
        text = html.unescape(text)
    yield text


def _zip(data: bytes, depth: int) -> Iterator[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        left = MAX_BYTES
        for member in archive.infolist():
            yield member.filename
            left -= member.file_size
            if not member.is_dir() and left >= 0:
                yield from texts_of(archive.read(member), depth + 1)


def _tar(data: bytes, depth: int) -> Iterator[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        left = MAX_BYTES
        for member in archive:
            yield member.name
            left -= member.size
            content = archive.extractfile(member) if member.isreg() and left >= 0 else None
            if content is not None:
                yield from texts_of(content.read(), depth + 1)


def _packed(open_file: Callable[[io.BytesIO], Any]) -> Callable[..., Iterator[str]]:
    def read(data: bytes, depth: int) -> Iterator[str]:
        with open_file(io.BytesIO(data)) as file:
            yield from texts_of(file.read(MAX_BYTES), depth + 1)

    return read


def _pdf(data: bytes, depth: int) -> Iterator[str]:
    reader = pypdf.PdfReader(io.BytesIO(data))
    for page in reader.pages:
        yield page.extract_text()
    for value in (reader.metadata or {}).values():
        yield str(value)


def _sqlite(data: bytes, depth: int) -> Iterator[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(data)
        database.text_factory = lambda raw: raw.decode("utf-8", "replace")
        schema = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
        for name, sql in database.execute(schema).fetchall():
            yield str(sql)
            quoted = str(name).replace('"', '""')
            for values in database.execute(f'SELECT * FROM "{quoted}"'):
                yield "\n".join(str(v) for v in values if v is not None and v != b"")


_KINDS = (
    (b"PK\x03\x04", _zip),
    (b"\x1f\x8b", _packed(gzip.open)),
    (b"BZh", _packed(bz2.open)),
    (b"\xfd7zXZ\0", _packed(lzma.open)),
    (b"%PDF-", _pdf),
    (b"SQLite format 3\0", _sqlite),
)
