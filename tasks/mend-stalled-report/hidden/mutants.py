"""Repairs of what one sees, and of half the cause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """What looks like a repair, and is none."""
    entries, units = solved["entries"].bytes(), solved["units"].bytes()
    account, group = params["folder_account"].encode(), params["name"].encode()
    folder = params["folder"].encode()

    def entry(mode: bytes, owner: bytes, team: bytes) -> bytes:
        head, _, rest = entries.partition(b"\t" + folder + b"\0")
        first, _, last = head.rpartition(b"\0d\t")
        size = last.rpartition(b"\t")[2]
        fields = b"\t".join([b"\0d", mode, owner, team, size, folder])
        return first + fields + b"\0" + rest

    yield breaks("the waiting batches carried by hand", totals_later=start["totals_later"])
    yield breaks("the report run by hand", totals_now=start["totals_now"])
    yield breaks("open to all", entries=entry(b"2777", account, group))
    yield breaks("open to the group", entries=entry(b"2775", account, group))
    yield breaks("a folder of one's own", entries=entry(b"2775", b"user", group))
    name, report = params["name"], params["report"]
    timer = f"Id={name}-{report}.timer".encode()
    yield breaks(
        "the timer stopped",
        units=b"\n\n".join(
            part.replace(b"ActiveState=active", b"ActiveState=inactive") if timer in part else part
            for part in units.split(b"\n\n")
        ),
    )
    yield breaks(
        "a unit that fails now", units=units.replace(b"Result=success", b"Result=exit-code")
    )
    yield breaks("under the old account", units=units.replace(account, group + b"-old"))
