"""Too much, too little, the wrong version, the wrong place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Other files in the folder."""
    root = f"/home/user/{params['target']}"
    files = solved["unpacked"].files()
    wanted = params["wanted"]
    others = [path for path in params["files"] if path not in wanted]
    plan = next(path for path in wanted if "plans/" in path)

    def moved(name: str) -> dict[str, bytes | None]:
        return {f"{root}/{plan}": None, name: files[f"{root}/{plan}"]}

    yield breaks("everything unpacked", unpacked={f"{root}/{path}": b"Sheet\n" for path in others})
    drafts = plan.replace("plans/", "drafts/")
    yield breaks("the draft instead of the plan", unpacked=moved(f"{root}/{drafts}"))
    yield breaks("the draft too", unpacked={f"{root}/{drafts}": b"Sheet 1000\n"})
    yield breaks("the text of the draft", unpacked={f"{root}/{plan}": b"Sheet 1000\n"})
    yield breaks("without its folder", unpacked=moved(f"{root}/{plan.rpartition('/')[2]}"))
    yield breaks("in a folder more", unpacked=moved(f"{root}/unpacked/{plan}"))
    yield breaks(
        "all without folders",
        unpacked={
            **dict.fromkeys(files),
            **{f"{root}/{path.rpartition('/')[2]}": data for path, data in files.items()},
        },
    )
    about = next(path for path in others if path.endswith("about.txt"))
    yield breaks("what is no csv file too", unpacked={f"{root}/{about}": b"Sheet 1001\n"})
    yield breaks("the request copied along", unpacked={f"{root}/{params['request']}": b"From\n"})
    yield breaks("the archive deleted", scope_end=_without(solved, params["archive"]))
    yield breaks("unpacked beside it too", scope_end=_stray(solved))


def _without(solved: Evidence, name: str) -> bytes:
    """The listing with the archive under another name."""
    return solved["scope_end"].bytes().replace(f"/{name}\0".encode(), f"/{name}.done\0".encode())


def _stray(solved: Evidence) -> bytes:
    return b"d\t755\tuser\tuser\t0\tplans\0\0" + solved["scope_end"].bytes()
