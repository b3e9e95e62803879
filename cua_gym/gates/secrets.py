"""What is hidden about a variation, as bytes that would give it away wherever they are found."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from cua_gym.gates.given import found_at_start, given_texts
from cua_gym.gates.phrases import Said
from cua_gym.gates.wanted import wanted
from cua_gym.task import Variation

__all__ = ["Secret", "Secrets", "secrets"]

CHUNKS = 12
"""How many are taken of a file."""
CHUNK_BYTES = 32
LINE = 24
LONGEST = 60
_COMMON = re.compile(r'import |from |def |class |@|#|"""|except |for |while |with |return ')
"""How lines begin that programs have in common."""


@dataclass(frozen=True, slots=True)
class Secret:
    """One hidden thing.

    Attributes:
        name: such as ``answer.total`` or ``hidden/reference.csv``.
        shown: the value, for a person.
        needles: the bytes that it has in a file or in memory.
    """

    SHORTEST: ClassVar[int] = 8
    """Bytes; less may stand anywhere by chance."""

    name: str
    shown: str
    needles: tuple[bytes, ...]


@dataclass(slots=True)
class Secrets:
    """What can be searched for.

    Attributes:
        short: names of what cannot.
    """

    secrets: list[Secret] = field(default_factory=list)
    short: list[str] = field(default_factory=list)


def secrets(variation: Variation, start: Path) -> Secrets:
    """Hidden values that are not given, and characteristic chunks of hidden files and the oracle.

    Args:
        start: evidence of doing nothing: what checkpoints want and it shows is no secret.
    """
    found = Secrets()
    texts = list(given_texts(variation))
    given, shown = Said(texts), Said(found_at_start(start))
    whole = "\n".join(texts)
    values = [(f"answer.{name}", leaf) for name, value in variation.answers.items()
              for leaf in _leaves(value) if not given.has(leaf)]  # fmt: skip
    values += [
        (f"what {want.checkpoint} wants as {want.place}", value)
        for want in wanted(variation)
        for value in want.either
        if not isinstance(value, bytes) and not given.has(value) and not shown.has(value)
    ]
    for name, value in values:
        lines = [line.strip() for line in str(value).splitlines()]
        if len(lines) > 1:
            # Part of it may be there for all to see, as in a report that is to be completed.
            lines = [line for line in lines if line and not given.has(line) and not shown.has(line)]
        _add(found, name, [_telling(max(lines, key=len, default=""), whole)])
    for path in [*sorted(variation.task.hidden.rglob("*")), variation.task.folder / "oracle.py"]:
        if path.is_file():
            name = path.relative_to(variation.task.folder).as_posix()
            _add_file(found, name, path.read_bytes(), texts, list(variation.inputs.values()))
    found.short = sorted(set(found.short))
    return found


def _telling(line: str, given: str) -> str:
    """Its first piece that is not given; a form that was filled in begins like the empty one."""
    pieces = (line[at : at + LONGEST] for at in range(0, len(line), LONGEST // 2))
    return next((p for p in pieces if len(p) >= Secret.SHORTEST and p not in given), line)


def _add(found: Secrets, name: str, texts: list[str]) -> None:
    """Search for these; each is one line, which is what grep looks for."""
    known = {needle for secret in found.secrets for needle in secret.needles}
    for text in texts:
        line = text[:LONGEST]
        plain = line.encode("utf-8", "surrogateescape")
        if len(plain) < Secret.SHORTEST:
            found.short.append(name)
        elif plain not in known:
            found.secrets.append(Secret(name, line, (plain, line.encode("utf-16-le", "replace"))))


def _add_file(
    found: Secrets, name: str, data: bytes, texts: list[str], inputs: list[bytes]
) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        chunks = [c for c in _chunks(data) if not any(c in given for given in inputs)]
        found.secrets += [Secret(name, repr(c[:12]), (c,)) for c in chunks[:CHUNKS]]
        if not chunks:
            found.short.append(name)
        return
    whole = "\n".join(texts)
    lines = {line.strip() for line in text.splitlines()}
    own = [x for x in lines if len(x) >= LINE and not _COMMON.match(x) and x not in whole]
    if own:
        _add(found, name, sorted(own, key=lambda x: (-len(x), x))[:CHUNKS])
    else:
        found.short.append(name)


def _chunks(data: bytes) -> Iterator[bytes]:
    """Spread over the file, without line ends and not of one colour."""
    step = max(CHUNK_BYTES, len(data) // (4 * CHUNKS))
    for start in range(0, len(data) - CHUNK_BYTES + 1, step):
        chunk = data[start : start + CHUNK_BYTES]
        if b"\n" not in chunk and len(set(chunk)) > CHUNK_BYTES // 2:
            yield chunk


def _leaves(value: Any) -> Iterator[str | int | float]:
    if isinstance(value, dict):
        value = list(itertools.chain(value.keys(), value.values()))
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
