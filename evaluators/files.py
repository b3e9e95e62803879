"""Files and folders: there, moved, the same bytes, a whole tree, what changed besides.

Some checks look at a *listing*, evidence of kind ``tree`` (its command is
`cua_gym.grading.probes.LISTING`): names, kinds, rights, links and hashes of a whole folder, read
without its contents. With ``at = "start"`` it is what was there before anybody acted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Literal

from cua_gym.grading.check import Evidence, Fails, GradingError, Item, Verdict, check, verdict

Kind = Literal["file", "dir", "link", "other"]

DESKTOP_NOISE = (
    ".cache/**", ".config/**", ".local/**", ".dbus/**", ".pki/**", ".gnupg/**", ".Xauthority",
    ".ICEauthority", ".xsession-errors*", ".bash_history", "**/.~lock.*#",
)  # fmt: skip
"""What programs of a desktop write in a home folder by themselves."""


@dataclasses.dataclass(frozen=True, slots=True)
class Listed:
    """One entry of a listing; ``size`` and ``sha256`` only of files, ``target`` only of links."""

    kind: Kind
    mode: int
    user: str
    group: str
    size: int | None
    target: str
    sha256: str | None


def read_listing(item: Item) -> dict[str, Listed]:
    """Entries by path below the listed folder, which itself is ``.``.

    Raises:
        Fails: it could not be taken, or is no listing.
    """
    fields = iter(item.bytes().decode("utf-8", "surrogateescape").removesuffix("\0").split("\0"))
    kinds: dict[str, Kind] = {"f": "file", "d": "dir", "l": "link"}
    found: dict[str, Listed] = {}
    for head in fields:
        if not head:  # between the entries and the hashes
            break
        match = re.fullmatch(r"(\S)\t([0-7]+)\t([^\t]+)\t([^\t]+)\t(\d+)\t(.*)", head, re.DOTALL)
        if match is None:
            raise Fails(f"{item.name}: no listing: {head!r:.80}", seen=head)
        kind = kinds.get(match[1], "other")
        size = int(match[5]) if kind == "file" else None
        target = next(fields, "")
        found[match[6] or "."] = Listed(
            kind, int(match[2], 8), match[3], match[4], size, target, None
        )
    for record in fields:
        match = re.fullmatch(r"([0-9a-f]{64}) [ *]\./(.+)", record, re.DOTALL)
        if match is None or match[2] not in found:
            raise Fails(f"{item.name}: no listing: {record!r:.80}", seen=record)
        found[match[2]] = dataclasses.replace(found[match[2]], sha256=match[1])
    if "." not in found:
        raise Fails(f"{item.name}: no listing, since the folder itself is not in it")
    return found


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
def moved(evidence: Evidence, *, expected: bytes) -> Verdict:
    """The first evidence is absent, and the second is a file with exactly these bytes.

    It refuses a copy, a link at either place, and a file that was changed on the way.
    """
    if len(evidence) != 2:
        raise GradingError(f"evidence is [from, to], not {list(evidence)}")
    source, target = evidence.values()
    if source.state != "absent":
        message = f"{source.source} is still there"
        return verdict(False, message, seen=source.state, wanted="absent")
    data = target.bytes()
    message = f"{target.source}: {len(data)} bytes against {len(expected)}"
    return verdict(data == expected, message, seen=data[:200], wanted=expected[:200])


@check
def tree_equals(item: Item, *, root: str, expected: dict[str, bytes | str]) -> Verdict:
    """A glob's (or listing's) files are exactly these, by path below ``root``, with these contents.

    A text as content is UTF-8. The value is all or nothing. Folders are not looked at, except
    that a file must lie in the right one. It refuses further files, and links and devices. In a
    listing ``root`` is below the listed folder (``.`` is all of it), and what lies elsewhere is
    not looked at.
    """
    wanted = {
        k: hashlib.sha256(v.encode() if isinstance(v, str) else v).hexdigest()
        for k, v in expected.items()
    }
    seen, odd = _tree(item, root)
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


def _tree(item: Item, root: str) -> tuple[dict[str, str], list[str]]:
    """Files below ``root`` with their hashes (of a huge one, its size), and what is no file."""
    if item.kind in ("tree", "command", "file"):
        inside = {
            PurePosixPath(path).relative_to(root).as_posix(): entry
            for path, entry in read_listing(item).items()
            if PurePosixPath(path).is_relative_to(root) and entry.kind != "dir"
        }
        files = {k: e.sha256 or f"{e.size} bytes" for k, e in inside.items() if e.kind == "file"}
        return files, sorted(inside.keys() - files.keys())
    if item.kind != "glob":
        raise GradingError(f"{item.name} is a {item.kind}; it needs a glob or a listing")
    odd = [_below(root, e.guest) for e in item.entries if e.kind not in ("file", "dir")]
    # No file at all is a tree too; what was refused is looked at by its state.
    contents = item.files().items() if item.present else ()
    return {_below(root, path): hashlib.sha256(data).hexdigest() for path, data in contents}, odd


def _below(root: str, path: str) -> str:
    try:
        return PurePosixPath(path).relative_to(root).as_posix()
    except ValueError as error:
        raise GradingError(f"{path} is not below root {root!r}") from error


def _octal(text: str) -> None:
    int(text or "0", 8)


@check
def entry(
    item: Item,
    *,
    path: str,
    kind: Kind = "file",
    mode: Annotated[str, _octal] = "",
    user: str = "",
    group: str = "",
    target: str = "",
) -> Verdict:
    """What a listing has at ``path``: its kind, and those of the others that are declared.

    ``mode`` is octal and all of it (``"640"``); ``target`` is what a link says, letter by letter.
    It refuses another kind and nothing at all.
    """
    found = read_listing(item).get(path)
    if found is None:
        raise Fails(f"there is no {path}", wanted=kind)
    pairs = {
        "kind": (found.kind, kind),
        "mode": (f"{found.mode:o}", f"{int(mode, 8):o}" if mode else ""),
        "user": (found.user, user),
        "group": (found.group, group),
        "target": (found.target, target),
    }
    seen = {k: a for k, (a, b) in pairs.items() if b}
    wanted = {k: b for k, (_, b) in pairs.items() if b}
    return verdict(seen == wanted, path, seen=seen, wanted=wanted)


@check
def only_changed(
    evidence: Evidence, *, may_change: list[str], noise: Sequence[str] = DESKTOP_NOISE
) -> Verdict:
    """Between two listings, start and end, nothing differs but what ``may_change`` names.

    Patterns are of paths below the listed folder; ``*`` stays within one name, ``**`` is any
    number of folders, none too (``Notes/**`` is also ``Notes``). A difference is an entry more or
    less, another kind, content, link, right or owner; times are none. ``noise`` is what programs
    write by themselves. It holds when nothing was done at all, so it earns no weight alone: give
    it a negative one and ``negate``. It refuses listings that are absent or cut short.
    """
    if len(evidence) != 2:
        raise GradingError(f"evidence is [start, end], not {list(evidence)}")
    start, end = (read_listing(item) for item in evidence.values())
    free = [_path_pattern(p) for p in (*may_change, *noise)]

    def outside(paths: set[str]) -> list[str]:
        return sorted(p for p in paths if not any(f.fullmatch(p) for f in free))

    new = outside(end.keys() - start.keys())
    gone = outside(start.keys() - end.keys())
    other = outside({p for p in start.keys() & end.keys() if start[p] != end[p]})
    message = f"new {new[:10]!a}, gone {gone[:10]!a}, changed {other[:10]!a}"
    if not (new or gone or other):
        message = f"{len(end)} entries; nothing changed but what may"
    return verdict(not (new or gone or other), message, seen=len(new + gone + other), wanted=0)


def _path_pattern(pattern: str) -> re.Pattern[str]:
    parts = pattern.split("/")
    result = ""
    for number, part in enumerate(parts):
        if part == "**":
            # With the slash that it has on one side; alone it is everything.
            result += r"(?:/[^/]+)*" if number else r"(?:[^/]+/)*" if parts[1:] else r"(?s:.*)"
            continue
        slash = "/" if number and parts[:number] != ["**"] else ""
        name = re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
        result += slash + name
    return re.compile(result)
