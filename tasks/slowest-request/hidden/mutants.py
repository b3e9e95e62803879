"""Reports of other requests, and the right one said in other ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Reports made of the solved one."""
    report = solved["report"].text()
    slow, failed = params["slow_id"], params["failed_id"]
    slow_ms, failed_ms = str(params["slow_ms"]), str(params["failed_ms"])
    yield breaks(
        "the failed request", report=report.replace(slow, failed).replace(slow_ms, failed_ms)
    )
    yield breaks("both requests", report=report.replace(slow, f"{slow}, {failed}"))
    yield breaks("the failed request's duration", report=report.replace(slow_ms, failed_ms))
    yield breaks("the unit twice", report=report.replace(f"{slow_ms} ms", f"{slow_ms}ms ms"))
    yield breaks("a line less", report=report.replace("Reported by: operations\n", ""))
    log = solved["scope_end"].bytes().replace(b"server/access.log\0", b"server/access.log.1\0")
    yield breaks("the log moved away", scope_end=log)
