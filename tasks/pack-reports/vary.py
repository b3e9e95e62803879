"""Reports of two years and four quarters, as csv and as other kinds of file."""

from __future__ import annotations

import io
import random
import tarfile
from typing import Any

_TEAMS = ["sales", "support", "research", "finance", "legal"]


def vary(rng: random.Random) -> dict[str, Any]:
    """Which reports there are, and which quarter is asked for."""
    year, quarter = rng.choice([2023, 2024]), f"Q{rng.randint(1, 4)}"
    teams = rng.sample(_TEAMS, rng.randint(3, 5))
    return {
        "year": year,
        "quarter": quarter,
        "archive": f"reports-{rng.randint(100, 999)}",
        "teams": teams,
        "figures": rng.randrange(2**31),
    }


def reports(params: dict[str, Any]) -> dict[str, bytes]:
    """All reports by file name."""
    rng = random.Random(params["figures"])
    files = {}
    for year in (2023, 2024):
        for quarter in ("Q1", "Q2", "Q3", "Q4"):
            for team in params["teams"]:
                text = f"month,amount\n1,{rng.randint(10, 999)}\n2,{rng.randint(10, 999)}\n"
                files[f"{team}-{year}-{quarter}.csv"] = text.encode()
            # The same quarter in another format: not asked for.
            files[f"summary-{year}-{quarter}.txt"] = f"Summary of {year} {quarter}.\n".encode()
    return files


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """All reports in one archive for the setup."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in reports(params).items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mtime = 1704067200
            archive.addfile(member, io.BytesIO(data))
    return {"reports.tar": packed.getvalue()}
