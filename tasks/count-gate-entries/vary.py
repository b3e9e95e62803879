"""Logs of some turnstiles: requests that are repeated, and a clock that is not UTC."""

from __future__ import annotations

import datetime
import gzip
import io
import random
import tarfile
from typing import Any

_SITES = ["museum", "stadium", "aquarium", "fairground", "swimming-hall"]
_GATES = ["N1", "N2", "E1", "E2", "S1", "W1", "W2"]
_OFFSETS = ["+05:30", "-03:00", "+09:00", "-07:00", "+12:45", "-04:30"]


def vary(rng: random.Random) -> dict[str, Any]:
    """Site, day, gates, the clock's offset, the words and the layout of a line."""
    day = datetime.date(2025, rng.randint(2, 11), rng.randint(3, 26))
    return {
        "site": rng.choice(_SITES),
        "day": day.isoformat(),
        "gates": sorted(rng.sample(_GATES, rng.randint(3, 5))),
        "offset": rng.choice(_OFFSETS),
        "admitted": rng.choice(["admitted", "opened", "passed"]),
        "dates": rng.choice(["%Y-%m-%d", "%d.%m.%Y"]),
        "id_first": rng.random() < 0.5,
        "files": rng.randint(3, 5),
        "report": f"{rng.choice(['entries', 'visits', 'gates'])}-{rng.randint(10, 99)}.csv",
        "noise": rng.randrange(2**31),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The log in several files, in an archive for the setup."""
    lines = _lines(params)
    size = len(lines) // params["files"] + 1
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for number in range(params["files"]):
            part = _header(params) + lines[number * size : (number + 1) * size]
            data = "".join(f"{line}\n" for line in part).encode()
            # The newest has no number, as rotated logs have it.
            age = params["files"] - 1 - number
            member = tarfile.TarInfo(f"gates.log.{age}.gz" if age else "gates.log")
            if age:
                data = gzip.compress(data, mtime=0)
            member.size, member.mtime = len(data), 1704067200
            archive.addfile(member, io.BytesIO(data))
    return {"logs.tar": packed.getvalue()}


def _header(params: dict[str, Any]) -> list[str]:
    order = "request, time, gate" if params["id_first"] else "time, request, gate"
    return [
        f"# turnstiles of the {params['site']}",
        f"# clock: UTC{params['offset']}, all year",
        f"# line: {order}, result",
        "# A turnstile repeats a request, under the same id, until the server has answered it.",
        "# Of the lines with the same id the last one says when it was done, and what came of it.",
    ]


def _lines(params: dict[str, Any]) -> list[str]:
    rng = random.Random(params["noise"])
    midnight = datetime.datetime.fromisoformat(params["day"])
    begin = midnight - datetime.timedelta(hours=13)
    sign = -1 if params["offset"][0] == "-" else 1
    hours, minutes = params["offset"][1:].split(":")
    offset = sign * datetime.timedelta(hours=int(hours), minutes=int(minutes))
    # Some are under way at either end of the day.
    ends = [(13 + 24 * (n % 2)) * 3600 - rng.randint(1, 30) for n in range(8)]
    seconds = [rng.randrange(50 * 3600) for _ in range(rng.randint(1800, 2400))] + ends
    found = []
    for second in seconds:
        request, gate = f"q{rng.randrange(16**7):07x}", rng.choice(params["gates"])
        results = [_result(rng, params) for _ in range(rng.choices([1, 2, 3], [70, 20, 10])[0])]
        for result in results:
            found.append((second, request, gate, result))
            second += rng.randint(2, 45)
    lines = []
    for second, request, gate, result in sorted(found):
        local = begin + datetime.timedelta(seconds=second) + offset
        time = local.strftime(f"{params['dates']} %H:%M:%S")
        first = f"{request} {time}" if params["id_first"] else f"{time} {request}"
        lines.append(f"{first} {gate} {result}")
    return lines


def _result(rng: random.Random, params: dict[str, Any]) -> str:
    return rng.choices([params["admitted"], "refused", "no-answer"], [78, 12, 10])[0]
