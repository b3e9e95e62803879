"""Archives that are almost the right one, and reports that did not stay as they were."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """All made of the solved archive."""
    with tarfile.open(fileobj=io.BytesIO(solved["archive"].bytes())) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    year, quarter = params["year"], params["quarter"]
    other = {name.replace(f"-{year}-", f"-{4047 - year}-"): data for name, data in files.items()}

    yield keeps("names that begin with ./", archive=_packed(_renamed(files, "./")))
    yield breaks("within a folder", archive=_packed(_renamed(files, "Reports/")))
    yield breaks("the same quarter of the other year", archive=_packed(other))
    summary = {f"summary-{year}-{quarter}.txt": f"Summary of {year} {quarter}.\n".encode()}
    yield breaks("the summary too", archive=_packed({**files, **summary}))
    yield breaks("not compressed", archive=gzip.decompress(solved["archive"].bytes()))
    moved = solved["scope_end"].bytes().replace(f"Reports/{next(iter(files))}".encode(), b"moved")
    yield breaks("a report moved away", scope_end=moved)


def _renamed(files: Mapping[str, bytes], folder: str) -> dict[str, bytes]:
    return {folder + name: data for name, data in files.items()}


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)
