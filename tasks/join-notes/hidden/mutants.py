"""The notes joined in the ways that are almost right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Files made of the solved one."""
    texts = {params[f"tab_{n}"]: params[f"text_{n}"] for n in range(1, 7)}
    names = params["order"].split("\n")
    notes = [texts[name].removesuffix("\n") for name in names]
    line = params["separator"]

    def joined(parts: list[str], between: str = f"\n{line}\n") -> bytes:
        return f"{between.join(parts)}\n".encode()

    first, second, *rest = notes
    extra = texts[params["look_alike"]].removesuffix("\n")
    yield keeps("with a byte order mark", joined=b"\xef\xbb\xbf" + joined(notes))
    yield breaks("two notes changed places", joined=joined([second, first, *rest]))
    yield breaks("by name", joined=joined([texts[n].removesuffix("\n") for n in sorted(names)]))
    yield breaks("the look-alike at the end", joined=joined([*notes, extra]))
    yield breaks(
        "the look-alike instead",
        joined=joined([extra if n == names[0] else texts[n].removesuffix("\n") for n in names]),
    )
    yield breaks("nothing between", joined=joined(notes, "\n"))
    yield breaks("an empty line between", joined=joined(notes, "\n\n"))
    yield breaks("empty lines around it", joined=joined(notes, f"\n\n{line}\n\n"))
    yield breaks("another line between", joined=joined(notes, f"\n{line}{line[0]}\n"))
    yield breaks("a line before the first", joined=f"{line}\n".encode() + joined(notes))
    yield breaks("a line after the last", joined=joined(notes) + f"{line}\n".encode())
    yield breaks("spaces around the line between", joined=joined(notes, f"\n {line} \n"))
    # As `cat` does it where a note has no newline at its end.
    yield breaks("glued", joined=f"{line}\n".join(texts[name] for name in names).encode())
    empty = [note for note in notes if "\n\n" in note]
    if empty:
        yield breaks(
            "empty lines left out", joined=joined([n.replace("\n\n", "\n") for n in notes])
        )
    yield breaks("the first note alone", joined=joined([first]))
    yield breaks("a note changed", scope_end=_changed(params, solved))


def _changed(params: Mapping[str, Any], solved: Evidence) -> bytes:
    """The listing with other rights on a note, as one sees that it was written anew."""
    path = f"{params['folder']}/{params['tab_1']}\0".encode()
    head, found, rest = solved["scope_end"].bytes().partition(path)
    return head.rpartition(b"\0")[0] + b"\0f\t600\tuser\tuser\t1\t" + found + rest
