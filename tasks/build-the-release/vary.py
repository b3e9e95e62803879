"""A small project before its release, whose number follows from what its changes really are."""

from __future__ import annotations

import hashlib
import io
import random
import tarfile
import zipfile
from typing import Any

_NAMES = ["lantern", "compass", "anchor", "beacon", "sundial", "abacus", "lighthouse"]
_FOLDERS = ["Projects/{0}", "work/{0}", "{0}", "Documents/{0}"]
_MODULES = ["list", "search", "print", "settings", "window", "paper", "clock", "sound", "export"]
_FIXES = [
    "the log no longer grows without end",
    "times before noon are shown right",
    "an empty file is no longer taken for a broken one",
    "the window keeps its size",
    "names with blanks are found",
    "the last line of a list is printed too",
    "a slow disk no longer stops the search",
]
_NEWS = [
    "lists can be sorted by size",
    "pictures can be turned",
    "the option --quiet prints nothing",
    "a search can be saved",
    "pages can be numbered",
]
_HIDDEN = [
    ("fix", "the option --colour is called --color now, and the old name is refused"),
    ("fix", "files in the old format are no longer read"),
    (
        "new",
        "the command list prints a table, so scripts that read its lines must be changed",
    ),
    ("fix", "a port in the old settings file is ignored from now on; it must stand in the new one"),
]
"""Marked as harmless, though something that worked works no more."""
_BREAKING = [
    "the command export is gone",
    "settings in the home folder are no longer read",
    "the option --all is refused",
]
_OLD = [
    "the help is complete",
    "colours can be chosen",
    "a full disk is told",
    "the start is faster",
]


def vary(rng: random.Random) -> dict[str, Any]:
    """The entries, what each is by the rules, and the number that follows."""
    name = rng.choice(_NAMES)
    old = [rng.randint(1, 4), rng.randint(1, 9), rng.randint(1, 9)]
    kind = rng.choice(["hidden", "hidden", "taken-back", "all-taken-back"])
    fixes, news = rng.sample(_FIXES, 3), rng.sample(_NEWS, 3)
    entries = [["fix", text] for text in fixes]
    # What is taken back counts for nothing: the mark, the text, its later opposite.
    if kind == "hidden":
        entries += [["new", news[0]], list(rng.choice(_HIDDEN))]
        void = [rng.choice([["breaking", rng.choice(_BREAKING)], ["new", news[1]]])]
    else:
        void = [["breaking", rng.choice(_BREAKING)]]
        if kind == "taken-back":
            entries += [["new", text] for text in news[:2]]
        else:
            void.append(["new", news[0]])
    rng.shuffle(entries)
    kept = [list(entry) for entry in entries]
    for entry in void:
        at = rng.randint(0, len(entries) - 1)
        entries.insert(at, entry)
        entries.insert(rng.randint(at + 1, len(entries)), ["taken back", entry[1]])
    first, second, third = old
    numbers = [f"{first + 1}.0.0", f"{first}.{second + 1}.0", f"{first}.{second}.{third + 1}"]
    level = {"hidden": 0, "taken-back": 1, "all-taken-back": 2}[kind]
    hidden = [text for _, text in _HIDDEN]
    params = {
        "name": name,
        "title": name.capitalize(),
        "folder": rng.choice(_FOLDERS).format(name),
        "old": ".".join(map(str, old)),
        "version": numbers[level],
        "tempting": "|".join(
            number.replace(".", r"\.") for number in numbers if number != numbers[level]
        ),
        "entries": entries,
        "kept": [["breaking" if text in hidden else mark, text] for mark, text in kept],
        "older": rng.sample(_OLD, 3),
        "modules": rng.sample(_MODULES, rng.randint(4, 7)),
        "parts": rng.randrange(2**31),
    }
    # What is packed in the end, when every file is as the rules want it.
    files = project(params | {"last_bytes": 100})
    notes = f"notes/{params['version']}.txt"
    files[notes] = "\n".join([f"{params['title']} {params['version']}", *_notes(params), ""])
    for path in ("version.txt", "package.conf", "CHANGES.txt"):
        files[path] = _edited(params, path, files[path])
    packed = [text for path, text in files.items() if _is_packed(path)]
    size = sum(map(len, packed))
    last = size * 1000 // rng.randint(1040, 1390)
    return params | {"packed_files": len(packed), "packed_bytes": size, "last_bytes": last}


def _notes(params: dict[str, Any]) -> list[str]:
    heads = {"breaking": "Breaking", "new": "New", "fix": "Fixed"}
    return [
        f"{head}: {text}"
        for kind, head in heads.items()
        for mark, text in params["kept"]
        if mark == kind
    ]


def _edited(params: dict[str, Any], path: str, text: str) -> str:
    old, version = params["old"], params["version"]
    if path == "version.txt":
        return f"{version}\n"
    if path == "package.conf":
        return text.replace(f"\nversion = {old}\n", f"\nversion = {version}\n")
    return text.replace("\nUnreleased\n", f"\nVersion {version}\n")


def _is_packed(path: str) -> bool:
    return path.startswith(("src/", "notes/")) or path in (
        "version.txt",
        "package.conf",
        "CHANGES.txt",
    )


def project(params: dict[str, Any]) -> dict[str, str]:
    """The project's files by path, without the script."""
    rng = random.Random(params["parts"])
    name, title, old = params["name"], params["title"], params["old"]
    files = {
        f"src/{module}.txt": f"Part {module} of {name}\n"
        + "".join(
            f"step {n}: {rng.choice(_MODULES)} {rng.randint(10, 999)}\n"
            for n in range(rng.randint(9, 40))
        )
        for module in params["modules"]
    }
    files["version.txt"] = f"{old}\n"
    # The number of the last release stands in other lines too.
    files["package.conf"] = (
        f"# What {name} is and needs\nname = {name}\nneeds = paper {old}\nversion = {old}\n"
        f"first_version = 0.{rng.randint(2, 9)}.0\nformat_version = {old}\n"
    )
    files["CHANGES.txt"] = (
        f"Changes of {title}\n\nUnreleased\n"
        + "".join(f"- {mark}: {text}\n" for mark, text in params["entries"])
        + f"\nVersion {old}\n- new: {params['older'][0]}\n- fix: {params['older'][1]}\n"
    )
    files[f"notes/{old}.txt"] = (
        f"{title} {old}\nNew: {params['older'][0]}\nFixed: {params['older'][1]}\n"
    )
    last = params["last_bytes"]
    before = last * 100 // rng.randint(103, 120)
    grown = (last - before) * 100 / before
    first = ".".join([*old.split(".")[:2], str(int(old.split(".")[2]) - 1)])
    files["history.csv"] = (
        "version,files,bytes,growth\n"
        f"{first},{len(params['modules']) + 2},{before},2.{rng.randint(1, 9)}\n"
        f"{old},{len(params['modules']) + 4},{last},{grown:.1f}\n"
    )
    files["RELEASING.txt"] = _rules(params)
    return files


def _rules(params: dict[str, Any]) -> str:
    name, title, old = params["name"], params["title"], params["old"]
    return f"""How {title} is released

1. The number. Look at the entries under "Unreleased" in CHANGES.txt.
   An entry "taken back" and the earlier entry that it repeats cancel
   each other: neither of them counts any further.
   An entry after which something that worked before works no more
   is breaking, whatever it is marked as.
   If an entry that counts is breaking, the first part of the number
   goes up by one and the others become 0. Else, if one is new, the
   second goes up by one and the third becomes 0. Else the third goes
   up by one. The last release was {old}.

2. version.txt becomes the new number, and so does the line "version"
   of package.conf. Its other lines stay.

3. In CHANGES.txt the line "Unreleased" becomes "Version NUMBER",
   with the new number. The entries stay as they are.

4. Write notes/NUMBER.txt. Its first line is: {title} NUMBER
   Then there is one line for each entry that counts: the breaking
   ones as "Breaking: TEXT", then the new ones as "New: TEXT", then
   all others as "Fixed: TEXT". TEXT is what stands in CHANGES.txt
   behind the mark. Within each of the three they keep their order.

5. Run ./build.sh in a terminal. It says how much it has packed. Run
   it again when one of the files was changed afterwards.

6. Add a line to the end of history.csv: the number, how many files
   and how many bytes were packed, and by how many percent the bytes
   are more than those of the last release, rounded to one decimal
   (such as 12.0).

7. Rename build/release.zip to {name}-NUMBER.zip and move it into the
   folder releases. No copy of it stays in build.

8. Save its SHA-256 sum as releases/{name}-NUMBER.sha256: one line as
   the one of the last release, with the sum, two blanks, and the name
   of the zip file without a folder.
"""


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The project in one archive for the setup, with the last release in its folder."""
    files = {path: text.encode() for path, text in project(params).items()}
    last = io.BytesIO()
    with zipfile.ZipFile(last, "w") as archive:
        member = zipfile.ZipInfo("version.txt", (2025, 2, 11, 9, 26, 52))
        archive.writestr(member, files["version.txt"])
    released = f"{params['name']}-{params['old']}"
    files[f"releases/{released}.zip"] = last.getvalue()
    sha256 = hashlib.sha256(last.getvalue()).hexdigest()
    files[f"releases/{released}.sha256"] = f"{sha256}  {released}.zip\n".encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            entry.mtime = 1739266012
            archive.addfile(entry, io.BytesIO(data))
    return {"project.tar": packed.getvalue()}
