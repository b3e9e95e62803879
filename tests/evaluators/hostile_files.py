"""Files that no check may choke on, for the tests of every format."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Iterator

ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
) + "]>"  # fmt: skip


def zipped(members: dict[str, bytes | str]) -> bytes:
    """A zip with these members."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def edited(data: bytes, edit: Callable[[str, bytes], bytes | None]) -> bytes:
    """A package with each member as ``edit(name, content)`` says; None leaves it out."""
    result = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            content = edit(name, source.read(name))
            if content is not None:
                target.writestr(name, content)
    return result.getvalue()


def encrypted(data: bytes) -> bytes:
    """The zip with the flag of encryption on each member."""
    out = bytearray(data)
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = out.find(magic)
        while at >= 0:
            out[at + offset] |= 1
            at = out.find(magic, at + 4)
    return bytes(out)


def bad_packages(good: bytes, main: str) -> Iterator[tuple[str, bytes]]:
    """Ways to spoil a package of XML parts whose main part is ``main``."""

    def main_part(change: Callable[[bytes], bytes]) -> bytes:
        return edited(good, lambda name, data: change(data) if name == main else data)

    def after_declaration(data: bytes, text: str) -> bytes:
        head, mark, rest = data.rpartition(b"?>") if b"?>" in data[:100] else (b"", b"", data)
        return head + mark + text.encode() + rest

    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    yield "empty", b""
    yield "random", random.Random(1).randbytes(5000)
    yield "another kind", b"%PDF-1.7\n"
    yield "cut short", good[:-60]
    yield "a nested archive", zipped({"inner.zip": good})
    yield "encrypted", encrypted(good)
    yield "OLE, as an encrypted OOXML is", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)
    yield "no main part", edited(good, lambda name, data: None if name == main else data)
    yield "broken XML", main_part(lambda data: data[: len(data) // 2])
    yield "entity bomb", main_part(lambda data: after_declaration(data, ENTITIES))
    yield "outer entity", main_part(lambda data: after_declaration(data, outside))
    yield "UTF-16", main_part(lambda data: '<?xml version="1.0"?><a/>'.encode("utf-16"))
    yield "bomb", main_part(lambda data: data + b" " * 101 * 1024 * 1024)
    yield "many tags", main_part(lambda data: data + b"<a/>" * 700_000)
    yield "deep", main_part(lambda data: b"<a>" * 100_000 + b"</a>" * 100_000)
    yield "another XML", main_part(lambda data: b"<a><b/></a>")


def damaged(good: bytes, times: int = 60) -> Iterator[bytes]:
    """Copies with a few bytes changed."""
    rng = random.Random(1)
    for _ in range(times):
        data = bytearray(good)
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        yield bytes(data)
