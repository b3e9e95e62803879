"""The grader's process: one JSON request on standard input, one JSON answer on standard output.

It limits itself before it reads anything that an agent made. Nothing is unpickled or evaluated.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from cua_gym.errors import GradingError
from cua_gym.grading.checkpoints import Rubric
from cua_gym.grading.items import Evidence

MB = 1024 * 1024


def main() -> None:
    """Answer one request: ``{"results": [...]}`` or ``{"error": text}``."""
    # What a check prints must not end up in the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    request = json.load(sys.stdin)
    _limit(request["limits"])
    try:
        results = Rubric.from_dict(request["rubric"]).judge(Evidence(Path(request["evidence"])))
        reply: dict[str, Any] = {"results": [dataclasses.asdict(r) for r in results]}
    except GradingError as error:
        reply = {"error": str(error)}
    json.dump(reply, answer, allow_nan=False)
    answer.flush()


def _limit(limits: dict[str, int]) -> None:
    for kind, value in (
        (resource.RLIMIT_AS, limits["memory_mb"] * MB),
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_FSIZE, limits["file_mb"] * MB),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (soft, hard))


if __name__ == "__main__":
    main()
