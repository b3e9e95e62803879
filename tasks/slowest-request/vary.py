"""A log of some thousand requests, one answered slowest, one that failed even slower."""

from __future__ import annotations

import random
from typing import Any

_PATHS = ["/", "/cart", "/search", "/api/items", "/api/orders", "/login", "/static/app.js"]


def vary(rng: random.Random) -> dict[str, Any]:
    """The two requests that matter, and the log's own seed."""
    return {
        "incident": rng.randint(2000, 9999),
        "slow_id": f"r{rng.randrange(16**8):08x}",
        "slow_ms": rng.randint(21_000, 29_000),
        "failed_id": f"r{rng.randrange(16**8):08x}",
        "failed_ms": rng.randint(31_000, 59_000),
        "noise": rng.randrange(2**31),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The log."""
    rng = random.Random(params["noise"])
    rows = []
    for _ in range(rng.randint(2500, 3500)):
        status = rng.choices([200, 304, 404, 500], [90, 5, 3, 2])[0]
        duration = min(20_000, int(rng.lognormvariate(4, 1.2)))
        rows.append((status, f"r{rng.randrange(16**8):08x}", duration))
    rows.insert(rng.randrange(len(rows)), (200, params["slow_id"], params["slow_ms"]))
    rows.insert(rng.randrange(len(rows)), (504, params["failed_id"], params["failed_ms"]))
    lines = []
    for n, (status, request, duration) in enumerate(rows):
        time = f"2025-03-14T{9 + n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"
        method = rng.choice(["GET", "GET", "GET", "POST"])
        lines.append(f"{time} {method} {rng.choice(_PATHS)} {status} {request} {duration}ms\n")
    return {"access.log": "".join(lines).encode()}
