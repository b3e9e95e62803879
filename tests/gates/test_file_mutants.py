"""Mutants of pictures, archives, folders and listings."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from PIL import Image, ImageDraw, PngImagePlugin

from cua_gym.gates import picture_mutants
from cua_gym.grading.probes import LISTING

from .conftest import At, Judge, Make, Records, point


def picture(*boxes: tuple[int, int, int, int], form: str = "PNG") -> bytes:
    """A grey picture with black boxes."""
    image = Image.new("RGB", (60, 40), (200, 200, 200))
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, fill=(0, 0, 0))
    data = io.BytesIO()
    image.save(data, form)
    return data.getvalue()


BOXES = ((5, 5, 14, 14), (40, 5, 49, 14))


def test_picture(make: Make, judged: Judge) -> None:
    """Half of what was drawn is not enough, nor is a blank picture; how it is encoded is free."""
    start = make("start", plan=At("/plan.png", picture()))
    solved = make("solved", plan=At("/plan.png", picture(*BOXES)))
    region = {"reference": picture(*BOXES), "box": [0, 0, 60, 40], "max_difference": 1.0}
    found = judged(start, solved, point("images.region", "plan", **region))
    assert not found.offenders
    assert {
        "reverted:plan",
        "half:plan:left",
        "half:plan:right",
        "half:plan:cut",
        "blank:plan",
        "resized:plan",
        "reencoded:plan",
    } <= set(found.names)


def test_lenient_picture(make: Make, judged: Judge) -> None:
    """A check with so wide a tolerance that half of the drawing passes is caught."""
    start = make("start", plan=At("/plan.png", picture()))
    solved = make("solved", plan=At("/plan.png", picture(*BOXES)))
    region = {"reference": picture(*BOXES), "box": [0, 0, 60, 40], "max_difference": 10.0}
    found = judged(start, solved, point("images.region", "plan", **region))
    assert {"half:plan:left", "half:plan:right"} <= set(found.offenders)


def test_size_alone(make: Make, judged: Judge) -> None:
    """A check of nothing but the size takes any picture, and is caught."""
    start = make("start", plan=At("/plan.jpg", None))
    solved = make("solved", plan=At("/plan.jpg", picture(*BOXES, form="JPEG")))
    size = {"width": 60, "height": 40, "file_format": "JPEG"}
    found = judged(start, solved, point("images.size", "plan", **size))
    assert found.offenders == ("blank:plan",)


def test_notes_are_kept() -> None:
    """A picture that is encoded anew keeps its text, and its pixels."""
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Author", "Ada")
    data = io.BytesIO()
    Image.new("L", (9, 9), 77).save(data, "PNG", pnginfo=notes, dpi=(72, 72))
    image = picture_mutants.read(data.getvalue())
    assert image is not None
    (variant,) = picture_mutants.kept(image)
    other = picture_mutants.read(variant.make())
    assert isinstance(other, PngImagePlugin.PngImageFile)
    assert other.text == {"Author": "Ada"}
    assert other.tobytes() == image.tobytes()
    assert other.info["dpi"] == image.info["dpi"]


MEMBERS = {"a.csv": b"1\n", "b/c.csv": b"2\n"}


def zipped(members: dict[str, bytes]) -> bytes:
    """A zip of these members."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    """A tar.gz of these members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_archive(make: Make, judged: Judge, pack: object) -> None:
    """Every member counts, and one too many; their order, times and compression do not."""
    assert callable(pack)
    start = make("start", box=At("/box", None))
    solved = make("solved", box=At("/box", pack(MEMBERS)))
    expected = {name: data.decode() for name, data in MEMBERS.items()}
    found = judged(start, solved, point("archives.contents", "box", expected=expected))
    assert not found.offenders
    assert {
        "half:box:first",
        "half:box:cut",
        "further:box",
        "reverted:box:a.csv",
        "renamed:box:b/c.csv",
        "altered:box:a.csv:content",
    } <= set(found.names)
    assert any(mutant.keeps and mutant.name.startswith("repacked:box") for mutant in found.mutants)


def test_added_to_an_archive(make: Make, judged: Judge) -> None:
    """Of an archive that was there, what was added is undone, and altered."""
    start = make("start", box=At("/box.zip", zipped({"a.csv": b"1\n"})))
    solved = make("solved", box=At("/box.zip", zipped(MEMBERS)))
    source = (
        "@check\n"
        "def has(item: Item) -> Verdict:\n"
        "    '''The one member is there.'''\n"
        "    import io, zipfile\n"
        "    try:\n"
        "        names = zipfile.ZipFile(io.BytesIO(item.bytes())).namelist()\n"
        "    except zipfile.BadZipFile as error:\n"
        "        raise Fails('no zip') from error\n"
        "    return verdict('b/c.csv' in names)\n"
    )
    found = judged(start, solved, point("checks.has", "box"), source=source)
    assert "altered:box:b/c.csv:content" in found.offenders
    assert "reverted:box:b/c.csv" not in found.offenders


def test_compressed_text(make: Make, judged: Judge) -> None:
    """Of what no module knows, at least half of the bytes are missed."""
    start = make("start", log=At("/log.gz", None))
    data = gzip.compress(b"a line\n" * 9, mtime=0)
    solved = make("solved", log=At("/log.gz", data))
    found = judged(start, solved, point("files.same_bytes", "log", expected=data))
    assert not found.offenders
    assert "half:log:cut" in found.names


HOME = "/home/user"
BEFORE = {f"{HOME}/a.txt": b"one\n", f"{HOME}/old.txt": b"two\n", f"{HOME}/gone.txt": b"three\n"}
AFTER = {
    f"{HOME}/a.txt": b"uno\n",
    f"{HOME}/old.txt": b"two\n",
    f"{HOME}/done/gone.txt": b"three\n",
    f"{HOME}/new.txt": b"four\nfive\n",
}


def test_glob(make: Make, judged: Judge) -> None:
    """Each entry that is new, changed, moved or gone counts, on its own too."""
    start, solved = make("start", tree=BEFORE), make("solved", tree=AFTER)
    expected = {path.removeprefix(f"{HOME}/"): data.decode() for path, data in AFTER.items()}
    tree = {"root": HOME, "expected": expected}
    found = judged(start, solved, point("files.tree_equals", "tree", **tree))
    assert not found.offenders
    assert {
        "half:tree:first",
        "half:tree:second",
        "reverted:tree:a.txt",
        "removed:tree:a.txt",
        "reverted:tree:gone.txt",
        "reverted:tree:done/gone.txt",
        "misnamed:tree:done/gone.txt",
        "misnamed:tree:new.txt",
        "emptied:tree:new.txt",
        "altered:tree:new.txt:line-2:cut",
        "reordered:tree",
    } <= set(found.names)
    assert not [n for n in found.names if "old.txt" in n or "gone.txt:line" in n]
    assert not [n for n in found.names if n.startswith("newlines")]  # every byte is looked at


def test_glob_of_one(make: Make, judged: Judge) -> None:
    """A check that finds the right content anywhere misses the wrong name, and is caught."""
    start, solved = make("start", tree={}), make("solved", tree={f"{HOME}/new.txt": b"four\n"})
    source = (
        "@check\n"
        "def somewhere(item: Item) -> Verdict:\n"
        "    '''The text is in some file.'''\n"
        "    return verdict(b'four' in b''.join(item.files().values()))\n"
    )
    found = judged(start, solved, point("checks.somewhere", "tree"), source=source)
    assert "misnamed:tree:new.txt" in found.offenders
    assert "reverted:tree" not in found.offenders


def test_listing(make: Make, judged: Judge, tmp_path: Path) -> None:
    """Each entry of a listing that changed is undone, but what programs write by themselves."""
    folder = tmp_path / "home"
    (folder / "Notes").mkdir(parents=True)
    (folder / ".config").write_bytes(b"1")
    (folder / "Notes/a\tb.txt").write_bytes(b"one")
    before = listed(folder)
    (folder / ".config").write_bytes(b"2")
    (folder / "Notes/new.txt").write_bytes(b"two")
    (folder / "Notes/a\tb.txt").chmod(0o600)
    start = make("start", tree=Records("tree", before, ""))
    solved = make("solved", tree=Records("tree", listed(folder), ""))
    expected = {"a\tb.txt": "one", "new.txt": "two"}
    found = judged(
        start,
        solved,
        point("files.tree_equals", "tree", weight=0.5, root="Notes", expected=expected),
        point("files.entry", "tree", weight=0.5, path="Notes/a\tb.txt", mode="600"),
    )
    assert not found.offenders
    names = {n for n in found.names if n.startswith("reverted:tree:")}
    assert names == {"reverted:tree:Notes/new.txt", "reverted:tree:Notes/a-b.txt"}


def listed(folder: Path) -> bytes:
    """The listing of a folder."""
    command = ["bash", "-c", LISTING]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout


def test_same_names_in_every_process(make: Make, judged: Judge) -> None:
    """Two makings give the same mutants in the same order, to the byte."""
    start, solved = make("start", tree=BEFORE), make("solved", tree=AFTER)
    tree = {
        "root": HOME,
        "expected": {k.removeprefix(f"{HOME}/"): v.decode() for k, v in AFTER.items()},
    }
    one, two = (judged(start, solved, point("files.tree_equals", "tree", **tree)) for _ in "ab")
    digests = [
        hashlib.sha256(repr([(m.name, m.changes) for m in found.mutants]).encode()).hexdigest()
        for found in (one, two)
    ]
    assert digests[0] == digests[1]
