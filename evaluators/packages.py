"""Reading packages (zips of XML) that an agent made: a fault in one is the file's, never ours.

What the parts mean is for the modules of each subject; what reading costs is in `bounds`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import zipfile
from collections.abc import Callable, Iterator
from typing import TypeVar
from xml.etree import ElementTree

from cua_gym.grading.check import Fails, GradingError

from .bounds import within

MAX_UNPACKED = 100 * 1024 * 1024
MAX_MEMBERS = 2000
MAX_TAGS = 600_000
"""Of all XML in a package. Counting them takes no time; reading millions takes minutes."""
MAX_DEPTH = 200
READ_S = 8.0
"""Processor time for one file: honest ones of 100 thousand cells take half of it."""

T = TypeVar("T")


@contextlib.contextmanager
def reading(what: str, cpu_s: float = READ_S) -> Iterator[None]:
    """Around a parser that is given an agent's bytes: it may raise anything or take for ever.

    Raises:
        Fails: whatever was raised (zlib.error, EOFError, KeyError, ...), or it takes too long.
    """
    try:
        with within(what, cpu_s):
            yield
    except (Fails, GradingError):
        raise
    except Exception as error:
        raise Fails(f"{what}: {type(error).__name__}: {error}"[:500]) from error


def once(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Read the same bytes once, for all checkpoints that look at them; a failure is kept too."""

    @functools.lru_cache(maxsize=4)
    def kept(data: bytes) -> T | Fails:
        try:
            return read(data)
        except Fails as failure:
            return failure

    @functools.wraps(read)
    def reader(data: bytes) -> T:
        found = kept(data)
        if isinstance(found, Fails):
            raise Fails(str(found), seen=found.seen, wanted=found.wanted)
        return found

    return reader


class Package:
    """A zip of XML parts (OOXML, OpenDocument), looked over before anything is parsed.

    Raises:
        Fails: no whole zip, encrypted, a name twice, a document type declaration (entities), or
            more members, bytes or tags than any file of a task has.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._what = what
        with reading(f"no whole {what}"), zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            unpacked = sum(m.file_size for m in members)
            if len(members) > MAX_MEMBERS or unpacked > MAX_UNPACKED:
                raise Fails(f"{len(members)} members of {unpacked} bytes: no {what} of a task")
            if any(m.flag_bits & 1 for m in members):
                raise Fails(f"an encrypted {what}")
            self._parts = {m.filename: archive.read(m) for m in members}
        if len(self._parts) != len(members):
            raise Fails(f"a {what} with a member twice")
        xml = [d for n, d in self._parts.items() if n.endswith((".xml", ".rels", ".vml"))]
        for part in xml:
            # UTF-16, which would hide what is searched for here; no program writes it.
            if b"\0" in part[:4] or part[:2] in (b"\xff\xfe", b"\xfe\xff"):
                raise Fails(f"a {what} with UTF-16 in it")
            if b"<!DOCTYPE" in part:
                raise Fails(f"a {what} with a document type declaration")
        tags = sum(part.count(b"<") for part in xml)
        if tags > MAX_TAGS:
            raise Fails(f"{tags} tags: no {what} of a task")

    @property
    def names(self) -> set[str]:
        """The members."""
        return set(self._parts)

    def read(self, name: str) -> bytes:
        """One member.

        Raises:
            Fails: it is not there.
        """
        if name not in self._parts:
            raise Fails(f"no whole {self._what}: {name} is missing", seen=sorted(self._parts)[:20])
        return self._parts[name]

    def xml(self, name: str) -> ElementTree.Element:
        """One member, parsed.

        Raises:
            Fails: it is not there, no XML, or nested deeper than `MAX_DEPTH`.
        """
        data = self.read(name)
        with reading(f"no whole {self._what}: {name}"):
            root = ElementTree.fromstring(data)
        level, depth = [root], 0
        while level:
            depth += 1
            if depth > MAX_DEPTH:
                raise Fails(f"{name} is nested over {MAX_DEPTH} deep: no {self._what} of a task")
            level = [child for node in level for child in node]
        return root


def number(text: str | None, what: str) -> int:
    """A whole number out of a file, at most nine digits.

    Raises:
        Fails: it is none.
    """
    text = text or ""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
        raise Fails(f"{what} is {text!r:.40}")
    return int(text)
