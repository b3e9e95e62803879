"""Files in almost the right places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Changes of the whole folder; what the other evidence shows changes with it."""
    root = "/home/user/Project"
    moved, new = f"{root}/Archive/{params['moved']}", f"{root}/{params['new']}"
    files = solved["tree"].files()
    yield breaks("copied instead of moved", tree={f"{root}/{params['moved']}": files[moved]})
    yield breaks("copied instead of renamed", tree={f"{root}/{params['old']}": files[new]})
    yield breaks(
        "the other minutes moved too",
        tree={
            f"{root}/{params['other']}": None,
            f"{root}/Archive/{params['other']}": files[f"{root}/{params['other']}"],
        },
    )
    yield breaks("what was there deleted", tree={f"{root}/Archive/kept.txt": None})
    yield breaks("each has the other's place", moved=files[new], renamed=files[moved])
