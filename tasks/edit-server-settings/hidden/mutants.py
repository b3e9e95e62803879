"""Settings changed in the wrong place, more than asked, or written otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Files made of the solved and of the untouched one."""
    before, after = start["settings"].text(), solved["settings"].text()
    key, value = params["key_1"], params["value_1"]
    line = f"\n{key} = {value}\n"

    yield keeps("with a byte order mark", settings=f"\ufeff{after}".encode())
    yield breaks("each such name set, in every section", settings=_everywhere(before, params))
    yield breaks(
        "the same name in another section too",
        settings=_set(after, params["other_1"], key, value),
    )
    yield breaks("another section instead", settings=_set(before, params["other_1"], key, value))
    yield breaks("without spaces", settings=after.replace(line, f"\n{key}={value}\n"))
    yield breaks("in quotes", settings=after.replace(line, f'\n{key} = "{value}"\n'))
    yield breaks("the old line kept as a comment", settings=after.replace(line, f"\n# old{line}"))
    yield breaks("said twice", settings=after.replace(line, f"{line}{line[1:]}"))
    yield breaks("the new lines at the end", settings=f"{before}{line[1:]}")
    yield breaks("a blank line more", settings=after.replace("\n\n", "\n\n\n", 1))
    yield breaks("only what was changed", settings=line)
    yield breaks("another file changed", scope_end=_stray(solved))


def _everywhere(text: str, params: Mapping[str, Any]) -> bytes:
    wanted = {params[f"key_{n}"]: params[f"value_{n}"] for n in (1, 2, 3)}
    lines = []
    for line in text.split("\n"):
        key = line.partition(" = ")[0]
        lines.append(f"{key} = {wanted[key]}" if key in wanted else line)
    return "\n".join(lines).encode()


def _set(text: str, section: str, key: str, value: str) -> bytes:
    head, mark, rest = text.partition(f"[{section}]\n")
    body, gap, more = rest.partition("\n\n")
    lines = [
        f"{key} = {value}" if line.startswith(f"{key} = ") else line for line in body.split("\n")
    ]
    return "".join([head, mark, "\n".join(lines), gap, more]).encode()


def _stray(solved: Evidence) -> bytes:
    return b"f\t644\tuser\tuser\t3\tcopy.conf\0\0" + solved["scope_end"].bytes()
