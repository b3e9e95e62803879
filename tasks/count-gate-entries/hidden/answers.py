"""The counts, read from the files that the setup gave; the right ones and the tempting ones."""

from __future__ import annotations

import datetime
import gzip
import io
import re
import tarfile
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Rows of the report, the total, and what comes of a step left out."""
    lines = _lines(inputs["logs.tar"], params)
    last = {request: (time, gate, result) for time, request, gate, result in lines}
    every = [(time, gate, result) for time, _, gate, result in lines]
    first = {request: (time, gate, result) for time, request, gate, result in reversed(lines)}
    ever = {
        r: (time, gate, result) for time, r, gate, result in lines if result == params["admitted"]
    }
    sign, hours, minutes = re.fullmatch(r"([+-])(\d\d):(\d\d)", params["offset"]).groups()
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    offset = -offset if sign == "-" else offset
    none = datetime.timedelta()

    def rows(entries: Any, offset: datetime.timedelta) -> list[list[Any]]:
        gates = [
            gate
            for time, gate, result in entries
            if result == params["admitted"] and (time - offset).date().isoformat() == params["day"]
        ]
        return [["gate", "entries"], *([gate, gates.count(gate)] for gate in params["gates"])]

    def total(table: list[list[Any]]) -> str:
        return str(sum(row[1] for row in table[1:]))

    right = rows(last.values(), offset)
    tempting = [
        rows(every, offset),
        rows(last.values(), none),
        rows(every, none),
        rows(first.values(), offset),
        rows(ever.values(), offset),
        rows(ever.values(), none),
    ]
    totals = [total(table) for table in tempting if total(table) != total(right)]
    return {
        "rows": right,
        "total": total(right),
        "tempting_rows": [table for table in tempting if table != right],
        "tempting_total": totals[0],
        "tempting_totals": totals[1:],
    }


def _lines(packed: bytes, params: dict[str, Any]) -> list[tuple[datetime.datetime, str, str, str]]:
    texts = []
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            data = archive.extractfile(member).read()
            texts.append((gzip.decompress(data) if member.name.endswith(".gz") else data).decode())
    found = []
    for line in "".join(texts).splitlines():
        if line.startswith("#"):
            continue
        if params["id_first"]:
            request, date, clock, gate, result = line.split()
        else:
            date, clock, request, gate, result = line.split()
        time = datetime.datetime.strptime(f"{date} {clock}", f"{params['dates']} %H:%M:%S")
        found.append((time, request, gate, result))
    return found
