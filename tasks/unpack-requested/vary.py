"""An archive with a few dozen files in folders, and a request for some of them."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import zipfile
from typing import Any

_TOPICS = ["harbour", "bridge", "theatre", "station", "garden"]
_FOLDERS = ["Inbox", "Documents/incoming", "Desktop/post", "Archive"]
_NAMES = ["Ines", "Tomas", "Yuki", "Ada", "Malik", "Sofia"]
_WORDS = ["quay", "roof", "gate", "north wall", "cellar", "lamp", "railing", "stairs"]


def vary(rng: random.Random) -> dict[str, Any]:
    """What is in the archive by path, and what the request asks for."""
    topic = rng.choice(_TOPICS)
    ending = rng.choice(["zip", "tar.gz"])
    years = [2021, 2022, 2023]
    year, plan = rng.choice(years), rng.choice(_WORDS)
    top = rng.choice(["", f"{topic}/", f"{topic}-files/"])
    number = rng.randint(2, 4)
    days = [[y, m, rng.randint(1, 28)] for y in years for m in rng.sample(range(1, 13), 3)]
    files = [f"letters/{y}/{y}-{m:02}-{d:02}.txt" for y, m, d in days]
    files += [f"measured/{y}/week-{w:02}.csv" for y in years for w in rng.sample(range(1, 53), 4)]
    files += [f"measured/{y}/about.txt" for y in years]
    files += [f"plans/{word.replace(' ', '-')}-v{v}.txt" for word in _WORDS[:5] for v in (1, 2, 3)]
    files += [f"drafts/{plan.replace(' ', '-')}-v{v}.txt" for v in (number, number + 1)]
    plans = f"plans/{plan.replace(' ', '-')}-v{number}.txt"
    files = sorted({*files, plans})
    letter = rng.choice([f for f in files if f.startswith("letters/")])
    wanted = [plans, letter]
    wanted += [f for f in files if f.startswith(f"measured/{year}/") and f.endswith(".csv")]
    mixed = rng.sample(files, len(files))
    folder = rng.choice(_FOLDERS)
    lines = [
        f"- the plan of the {plan}, version {number} (from plans, not from drafts)",
        f"- the letter of {letter[-14:-4]}",
        f"- all csv files of {year} that are in measured, and no other files from there",
    ]
    asked = "\n".join(rng.sample(lines, 3))
    names = rng.sample(_NAMES, 2)
    return {
        "folder": folder,
        "place": folder.rpartition("/")[2],
        "archive": f"{topic}-{rng.randint(10, 99)}.{ending}",
        "request": rng.choice(["request.txt", "please.txt", "letter-to-you.txt"]),
        "target": rng.choice(["Unpacked", "Documents/for-{0}", "Desktop/{0}"]).format(
            names[0].lower()
        ),
        "letter": f"From: {names[0]}\nTo: {names[1]}\n\nFrom the archive about the {topic} I need\n"
        f"{asked}\n\nThat is all. Please leave out the rest.\n",
        "files": [f"{top}{name}" for name in mixed],
        "wanted": [f"{top}{name}" for name in sorted(wanted)],
        "texts": rng.randrange(2**31),
    }


def contents(params: dict[str, Any]) -> dict[str, str]:
    """The text of each file by its path in the archive; no two are the same."""
    rng = random.Random(params["texts"])
    numbers = rng.sample(range(1000, 10000), len(params["files"]))
    return {
        path: f"Sheet {number}\n{rng.choice(_WORDS)}, {rng.randint(2, 99)}\n"
        for path, number in zip(params["files"], numbers, strict=True)
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The archive, and the request."""
    pack = _zip if params["archive"].endswith(".zip") else _tar_gz
    return {params["archive"]: pack(contents(params)), "request.txt": params["letter"].encode()}


def _zip(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            member = zipfile.ZipInfo(path, (2024, 3, 14, 9, 26, 52))
            member.create_system = 3
            member.external_attr = 0o100644 << 16
            archive.writestr(member, text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _tar_gz(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            member.mtime = 1710408412
            archive.addfile(member, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)
