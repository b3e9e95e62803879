"""Letters that are filled in almost well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence
from cua_gym.task.documents import document_bytes


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the template, as the word processor's own file says the same."""
    right: dict[str, str] = dict(params["filled"])
    other: dict[str, str] = dict(params["other"])

    def letter(values: Mapping[str, str], table: Mapping[str, str] | None = None) -> bytes:
        in_table = values if table is None else table
        return document_bytes(params["kind"], _filled(params["blocks"], values, in_table))

    yield keeps("written by another program", letter=letter(right))
    yield breaks("for the one with the same last name", letter=letter(other))
    yield breaks("the town of the other one", letter=letter(right | {"TOWN": other["TOWN"]}))
    yield breaks(
        "the fee of the other one in the table", letter=letter(right, right | {"FEE": other["FEE"]})
    )
    yield breaks("the table left as it was", letter=letter(right, {}))
    yield breaks("only the table filled in", letter=letter({}, right))
    yield breaks("one word left", letter=letter({k: v for k, v in right.items() if k != "DATE"}))
    yield breaks("brackets left", letter=letter({k: f"[{v}]" for k, v in right.items()}))
    yield breaks("a cent more", letter=letter(right | {"FEE": right["FEE"][:-1] + "1"}))
    yield breaks("in small letters", letter=letter({k: v.lower() for k, v in right.items()}))
    yield breaks("the template filled in too", scope_end=_touched(params, solved))


def _filled(blocks: Any, values: Mapping[str, str], table: Mapping[str, str]) -> Any:
    def put(text: str, given: Mapping[str, str]) -> str:
        for key, value in given.items():
            text = text.replace(f"[{key}]", value)
        return text

    return [
        [block[0], put(block[1], values)]
        if isinstance(block[0], str)
        else [[put(cell, table) for cell in row] for row in block]
        for block in blocks
    ]


def _touched(params: Mapping[str, Any], solved: Evidence) -> bytes:
    """The listing with other bytes in the template."""
    listing = solved["scope_end"].bytes()
    name = f" ./{params['folder']}/{params['template']}\0".encode()
    at = listing.index(name) if name in listing else listing.index(name.replace(b" ./", b" *./"))
    return listing[: at - 65] + b"0" * 64 + listing[at:]
