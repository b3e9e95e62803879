"""Files: there or not, moved, whole trees, and what changed besides."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cua_gym.errors import GradingError
from cua_gym.grading.check import Verdict
from cua_gym.grading.items import Evidence, Item
from cua_gym.grading.probes import LISTING
from evaluators import files

from .conftest import Judge, store

HASHED = 64 * 1024 * 1024


def test_there_and_not_there(judge: Judge):
    """Each is the other's opposite."""
    assert judge("files.exists", "x").passed
    assert not judge("files.exists", None).passed
    assert judge("files.absent", None).passed
    assert not judge("files.absent", "x").passed


def test_a_tree_is_all_of_it(judge: Judge):
    """Further, missing and changed files are differences."""
    wanted = {"root": "/home/user", "expected": {"a": "1", "d/b": b"2"}}
    assert judge(
        "files.tree_equals", {"/home/user/a": b"1", "/home/user/d/b": b"2"}, **wanted
    ).passed
    for other in (
        {"/home/user/a": b"1"},
        {"/home/user/a": b"1", "/home/user/d/b": b"3"},
        {"/home/user/a": b"1", "/home/user/d/b": b"2", "/home/user/c": b""},
        {"/home/user/a": b"1", "/home/user/b": b"2"},
    ):
        assert not judge("files.tree_equals", other, **wanted).passed


def test_no_files_at_all_are_a_tree(tmp_path: Path):
    """Where nothing matched; what was refused is none, whatever is expected."""
    absent = Item("all", "glob", "/home/user/*", "absent", tmp_path, "nothing matches")
    assert files.tree_equals(absent, root="/home/user", expected={}).passed
    assert not files.tree_equals(absent, root="/home/user", expected={"a": ""}).passed
    refused = dataclasses.replace(absent, state="refused", note="too many")
    assert not files.tree_equals(refused, root="/home/user", expected={}).passed


def make(folder: Path, name: str, state: str, data: bytes = b"", kind: str = "file") -> Item:
    """One evidence."""
    path = f"/home/user/{name}"
    if state != "present":
        return Item(name, kind, path, state, folder, "why")
    return Item(name, kind, path, state, folder, entries=(store(folder, name, path, data),))


def pair(folder: Path, *items: Item) -> Evidence:
    """The evidence that a checkpoint lists, in its order."""
    evidence = object.__new__(Evidence)
    evidence.folder = folder
    evidence._items = {item.name: item for item in items}
    return evidence


def test_moved_is_gone_there_and_whole_here(tmp_path: Path):
    """A copy, a changed file, a link at the old place and a lost file are not moved."""

    def moved(old: str, new: str, data: bytes = b"text") -> bool:
        evidence = pair(tmp_path, make(tmp_path, "old", old), make(tmp_path, "new", new, data))
        return files.moved(evidence, expected=b"text").passed

    assert moved("absent", "present")
    assert not moved("present", "present")
    assert not moved("refused", "present")
    assert not moved("absent", "absent")
    assert not moved("absent", "refused")
    assert not moved("absent", "present", b"text\n")
    assert not moved("present", "absent")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a file in a folder, a link, and a name that nobody expects."""
    home = tmp_path / "home"
    (home / "Notes").mkdir(parents=True)
    (home / "Notes" / "a.txt").write_text("one\n")
    (home / "Notes" / "b\n\t* c").write_bytes(b"two")
    (home / os.fsdecode(b"odd\xff")).touch()
    (home / "link").symlink_to("Notes/a.txt")
    (home / ".cache").mkdir()
    return home


def listing(home: Path, evidence: Path, name: str = "list") -> Item:
    """What the command prints of a folder, as it is now."""
    done = subprocess.run(["bash", "-c", LISTING], cwd=home, stdout=subprocess.PIPE, check=True)
    evidence.mkdir(exist_ok=True)
    return dataclasses.replace(make(evidence, name, "present", done.stdout), kind="tree")


Changed = Callable[..., Verdict]


@pytest.fixture
def changed(home: Path, tmp_path: Path) -> Changed:
    """``only_changed`` from the folder at first to what it is now."""
    start = listing(home, tmp_path / "evidence", "start")

    def run(*may: str, **arguments: object) -> Verdict:
        end = listing(home, tmp_path / "evidence", "end")
        evidence = pair(tmp_path, start, end)
        return files.only_changed(evidence, may_change=list(may), **arguments)

    return run


def test_nothing_changed_is_no_damage(changed: Changed, home: Path):
    """Nor is another time, or what a desktop's programs write by themselves."""
    assert changed().passed
    os.utime(home / "Notes" / "a.txt", (0, 0))
    (home / ".cache" / "x").mkdir()
    assert changed().passed
    assert not changed(noise=[]).passed


@pytest.mark.parametrize(
    "damage",
    [
        lambda home: (home / "Notes" / "a.txt").write_text("ONE\n"),
        lambda home: (home / "Notes" / "a.txt").unlink(),
        lambda home: (home / "Notes" / "a.txt").rename(home / "a.txt"),
        lambda home: (home / "Notes" / "a.txt").chmod(0o600),
        lambda home: (home / "Notes").chmod(0o700),
        lambda home: (home / "Notes" / "new").touch(),
        lambda home: (home / "Notes" / "new").mkdir(),
        lambda home: ((home / "link").unlink(), (home / "link").symlink_to("Notes")),
        lambda home: ((home / "link").unlink(), (home / "link").write_text("one\n")),
        lambda home: os.mkfifo(home / "pipe"),
        lambda home: (home / os.fsdecode(b"odd\xff")).write_bytes(b"\0\0\0"),
    ],
)
def test_each_kind_of_damage_is_seen(
    changed: Changed, home: Path, damage: Callable[[Path], object]
):
    """Content, name, right, kind and link, unless the task declares it."""
    damage(home)
    assert not changed("Other/**", "Notes/*.md").passed
    assert changed("Notes/**", "link", "pipe", "odd*", "a.txt").passed


def test_a_huge_file_is_known_by_its_size(changed: Changed, home: Path):
    """It is not hashed, and one more byte is still a difference."""
    with (home / "huge").open("wb") as file:
        file.truncate(HASHED + 1)
    assert not changed().passed
    assert changed("huge").passed


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("Notes/**", "Notes", True),
        ("Notes/**", "Notes/a/b", True),
        ("Notes/**", "Notes2", False),
        ("Notes/*", "Notes/a/b", False),
        ("Notes/*.txt", "Notes/a.txt", True),
        ("Notes/a.txt", "Notes/aXtxt", False),
        ("**/a", "a", True),
        ("**/a", "x/y/a", True),
        ("**/a", "x/ba", False),
        ("x/**/a", "x/a", True),
        ("x/**/a", "x/y/z/a", True),
        ("**", "x/y", True),
        ("a?c", "a/c", False),
        ("*", "x/y", False),
    ],
)
def test_patterns_are_of_whole_paths(pattern: str, path: str, fits: bool):
    """A star stays within one name, two are any number of folders."""
    assert (files._path_pattern(pattern).fullmatch(path) is not None) is fits


@pytest.mark.parametrize("cut", [0, 5, 30, -10])
def test_a_listing_cut_short_is_a_plain_fail(home: Path, tmp_path: Path, cut: int):
    """As is one that was not taken, whichever it is."""
    whole = listing(home, tmp_path, "start")
    data = whole.bytes()
    part = dataclasses.replace(make(tmp_path, "end", "present", data[:cut]), kind="command")
    failed = dataclasses.replace(whole, name="failed", exit=124)
    for one, other in ((whole, part), (part, whole), (whole, failed), (failed, whole)):
        assert not files.only_changed(pair(tmp_path, one, other), may_change=["**"]).passed


def test_the_number_of_listings_is_the_tasks(tmp_path: Path, home: Path):
    """One alone compares nothing."""
    with pytest.raises(GradingError, match="start, end"):
        files.only_changed(pair(tmp_path, listing(home, tmp_path)), may_change=[])


def test_an_entry_is_what_is_declared_of_it(home: Path, tmp_path: Path):
    """Kind, rights, owner, and where a link leads, not what lies there."""
    (home / "Notes" / "a.txt").chmod(0o640)
    owner = (home / "Notes").owner()
    item = listing(home, tmp_path)
    note = {"path": "Notes/a.txt", "mode": "0640", "user": owner}
    assert files.entry(item, **note).passed
    assert not files.entry(item, **{**note, "mode": "644"}).passed
    assert not files.entry(item, **{**note, "user": "nobody"}).passed
    assert not files.entry(item, **{**note, "kind": "dir"}).passed
    assert not files.entry(item, path="Notes/a").passed
    assert files.entry(item, path="link", kind="link", target="Notes/a.txt").passed
    assert not files.entry(item, path="link", kind="link", target="Notes/a").passed
    assert not files.entry(item, path="link").passed


def test_a_tree_by_hashes_is_the_same_tree(home: Path, tmp_path: Path):
    """A listing says as much of a tree as its contents would."""
    wanted = {"a.txt": "one\n", "b\n\t* c": b"two"}
    item = listing(home, tmp_path)
    assert files.tree_equals(item, root="Notes", expected=wanted).passed
    assert not files.tree_equals(item, root="Notes", expected={**wanted, "a.txt": "one"}).passed
    assert not files.tree_equals(item, root="Notes", expected={"a.txt": "one\n"}).passed
    assert not files.tree_equals(item, root=".", expected=wanted).passed
    assert not files.tree_equals(item, root="Note", expected=wanted).passed
