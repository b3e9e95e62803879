"""What is in a tar archive, read without unpacking it anywhere."""

from __future__ import annotations

import io
import tarfile
import zlib

from cua_gym.grading.check import Fails, Item, Verdict, check, verdict

MAX_BYTES = 10_000_000


def _members(data: bytes, mode: str) -> dict[str, bytes]:
    """Files by name; anything that is no plain file has the name of its kind as content."""
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode=mode) as archive:
            for member in archive:
                left -= member.size
                if left < 0:
                    raise Fails(f"it holds over {MAX_BYTES} bytes")
                content = archive.extractfile(member) if member.isreg() else None
                files[member.name] = b"(no file)" if content is None else content.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise Fails(f"no whole gzip-compressed tar archive: {error}", seen=data[:20]) from error
    return files


@check
def archive_of(item: Item, *, given: bytes, ending: str) -> Verdict:
    """A tar.gz of exactly the given files with this ending, under plain names (./ is plain).

    Refuses folders, links, further and missing files, and another compression.
    """
    found = {name.removeprefix("./"): data for name, data in _members(item.bytes(), "r:gz").items()}
    wanted = {n: d for n, d in _members(given, "r:").items() if n.endswith(ending)}
    same = found == wanted
    return verdict(same, "files in the archive", seen=sorted(found), wanted=sorted(wanted))
