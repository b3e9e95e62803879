"""Books that are almost closed."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.gates.mutant import Mutant, breaks, keeps
from cua_gym.grading.items import Evidence


def mutants(params: Mapping[str, Any], start: Evidence, solved: Evidence) -> Iterator[Mutant]:
    """Made of the solved folder."""
    folder = f"/home/user/{params['folder']}/{params['month']}"
    files = {path.rpartition("/")[2]: data for path, data in solved["files"].files().items()}
    first, second = (f"{params['month']}-{params[f'name_{n}']}.txt" for n in (1, 2))
    packed = {name: data for name, data in files.items() if name != "statement.txt"}
    note = solved["note"].text()

    def changed(name: str, data: bytes) -> dict[str, bytes | None]:
        return {f"{folder}/{name}": data}

    yield keeps("packed with ./", archive=_tar({f"./{n}": d for n, d in packed.items()}))
    yield keeps("amounts in a column", note=note.replace(": ", ":     ").encode())
    yield breaks("the statement too", archive=_tar(files))
    yield breaks(
        "in its folder", archive=_tar({f"{params['month']}/{n}": d for n, d in packed.items()})
    )
    yield breaks("not compressed", archive=gzip.decompress(_tar(packed)))
    yield breaks("packed before the note", archive=_tar({**packed, "closing.txt": b"Closing\n"}))
    yield breaks(
        "one not renamed",
        files={f"{folder}/{first}": None, f"{folder}/{params['name_1']}.txt": files[first]},
    )
    yield breaks("copied, not renamed", files=changed(f"{params['name_1']}.txt", files[first]))
    yield breaks(
        "names taken for each other",
        files={**changed(first, files[second]), **changed(second, files[first])},
    )
    head, _, last = files[second].decode().rstrip("\n").rpartition("\n")
    yield breaks("no balance", files=changed(second, f"{head}\nclosing \n".encode()))
    yield breaks(
        "a balance in cents", files=changed(second, f"{head}\n{last.replace('.', '')}\n".encode())
    )
    yield breaks(
        "a balance on its own line",
        files=changed(second, f"{head}\n{last.replace(' ', chr(10))}\n".encode()),
    )
    lines = note.splitlines()
    yield breaks("no sum of all", note="\n".join(lines[:-1]).encode())
    yield breaks("a comma", note=note.replace(".", ",").encode())


def _tar(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=0)
