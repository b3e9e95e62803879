"""Files and folders: there, not there, the same bytes, a whole tree."""

from __future__ import annotations

from pathlib import PurePosixPath

from cua_gym.grading.check import GradingError, Item, Verdict, check, verdict


@check
def exists(item: Item) -> Verdict:
    """It was there and could be taken. It refuses links, devices and files over the limit."""
    return verdict(item.present, item.note or item.source, seen=item.state, wanted="present")


@check
def absent(item: Item) -> Verdict:
    """Nothing is there. It refuses a link or anything else of that name."""
    return verdict(
        item.state == "absent", item.note or item.source, seen=item.state, wanted="absent"
    )


@check
def same_bytes(item: Item, *, expected: bytes) -> Verdict:
    """The file has exactly these bytes: ``"{hidden.NAME}"``, ``"{input.NAME}"``."""
    if not isinstance(expected, bytes):
        raise GradingError(f"expected must be a file's bytes, not {expected!r:.80}")
    data = item.bytes()
    message = f"{len(data)} bytes against {len(expected)}"
    return verdict(data == expected, message, seen=data[:200], wanted=expected[:200])


@check
def tree_equals(item: Item, *, root: str, expected: dict[str, bytes | str]) -> Verdict:
    """A glob's files are exactly these, by path below ``root``, with these contents.

    A text as content is UTF-8. The value is all or nothing. Folders are not looked at, except
    that a file must lie in the right one. It refuses further files, and links and devices.
    """
    if item.kind != "glob":
        raise GradingError(f"{item.name} is a {item.kind}; a tree needs a glob")
    wanted = {k: v.encode() if isinstance(v, str) else v for k, v in expected.items()}
    seen = {_below(root, path): data for path, data in item.files().items()}
    odd = [_below(root, e.guest) for e in item.entries if e.kind not in ("file", "dir")]
    missing = sorted(wanted.keys() - seen.keys())
    further = sorted([*(seen.keys() - wanted.keys()), *odd])
    changed = sorted(k for k in wanted.keys() & seen.keys() if wanted[k] != seen[k])
    message = f"missing {missing}, further {further}, changed {changed}"
    same = not missing and not further and not changed and item.state != "refused"
    if item.state == "refused":
        message = item.note
    elif same:
        message = f"all {len(wanted)} files"
    return verdict(same, message, seen=sorted([*seen, *odd]), wanted=sorted(wanted))


def _below(root: str, path: str) -> str:
    try:
        return PurePosixPath(path).relative_to(root).as_posix()
    except ValueError as error:
        raise GradingError(f"{path} is not below root {root!r}") from error
