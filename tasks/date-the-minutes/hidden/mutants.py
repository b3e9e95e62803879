"""Names by the wrong day, of the wrong files, in the wrong places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Changes of the whole folder; what the other evidence shows changes with it."""
    root = f"/home/user/{params['folder']}"
    files = solved["tree"].files()

    def named(old: str, new: str) -> dict[str, bytes | None]:
        return {f"{root}/{old}": None, f"{root}/{new}": files[f"{root}/{old}"]}

    def text(name: str) -> bytes:
        return files[f"{root}/{name}"]

    late = params[f"new_{params['late']}"]
    by_writing = params["by_writing"]
    yield breaks(
        "by the day of writing",
        tree=named(late, by_writing),
        by_writing=text(late),
        **{f"new_{params['late']}": None},
    )
    yield breaks(
        "by the day of writing, as a second copy",
        tree={f"{root}/{by_writing}": text(late)},
        by_writing=text(late),
    )
    one, two = params["new_1"], params["new_2"]
    yield breaks("each has the other's name", new_1=text(two), new_2=text(one))
    yield breaks(
        "copied instead of renamed",
        tree={f"{root}/{params['old_3']}": text(params["new_3"])},
        old_3=text(params["new_3"]),
    )
    yield breaks("without its ending", tree=named(one, one.removesuffix(".txt")), new_1=None)
    yield breaks("in capitals", tree=named(one, one.upper()), new_1=None)
    yield breaks("the invitation renamed too", tree=named(params["kept_1"], params["example"]))
    yield breaks("the list of members thrown away", tree={f"{root}/{params['kept_2']}": None})
    yield breaks("in a folder of their own", tree=named(one, f"Minutes/{one}"), new_1=None)
