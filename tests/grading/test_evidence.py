"""Collecting: what is missing is a value, what is hostile is refused, what fails is an error."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from cua_gym.errors import GradingError, MachineLost
from cua_gym.grading.check import Fails
from cua_gym.grading.items import Evidence
from cua_gym.grading.probes import Probe
from cua_gym.machine.base import Completed

from .conftest import Bench


def at(bench: Bench, path: str) -> Path:
    """The host side of a guest path of the toy computer."""
    bench.machine.shell.write("/home/user/.here", b"")
    root = next(p for p in bench.machine._root.rglob(".here")).parents[2]
    return root / path.removeprefix("/")


def test_content_comes_back_as_it_was(bench: Bench):
    """Every byte."""
    data = bytes(range(256))
    bench.machine.shell.write("/home/user/note.txt", data)
    bench.collect()
    assert Evidence(bench.evidence)["note"].bytes() == data


def test_a_missing_file_is_a_value(bench: Bench):
    """Absent, and reading it fails the check rather than the grading."""
    bench.collect()
    item = Evidence(bench.evidence)["note"]
    assert item.state == "absent"
    with pytest.raises(Fails, match="does not exist"):
        item.bytes()


def test_a_failed_channel_is_an_error(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Never an absent file, and no half evidence stays."""
    bench.machine.shell.write("/home/user/note.txt", b"x")

    def gone(*_: object, **__: object) -> bytes:
        raise MachineLost("the channel is gone")

    monkeypatch.setattr(bench.machine.shell, "read", gone)
    with pytest.raises(MachineLost):
        bench.collect()
    assert not bench.evidence.exists()


@pytest.mark.parametrize("target", ["/etc/hostname", "note2.txt", "note.txt"])
def test_links_are_not_followed(bench: Bench, target: str):
    """A link in place of the answer is refused, whatever it points to (B176)."""
    path = at(bench, "/home/user/note.txt")
    path.symlink_to(target)
    bench.collect()
    assert Evidence(bench.evidence)["note"].state == "refused"


def test_a_linked_folder_on_the_way_is_not_followed(bench: Bench):
    """Neither for a file nor for a glob (B177)."""
    home = at(bench, "/home/user")
    (home / "real").mkdir()
    (home / "real" / "note.txt").write_bytes(b"x")
    (home / "docs").symlink_to("real")
    bench.probes = (
        Probe("note", "file", "/home/user/docs/note.txt"),
        Probe("all", "glob", "/home/user/docs/*"),
        Probe("tree", "glob", "/home/user/**"),
    )
    bench.collect()
    evidence = Evidence(bench.evidence)
    assert evidence["note"].state == "refused"
    assert evidence["all"].state == "absent"
    found = {e.guest.rsplit("/", 1)[-1]: e.kind for e in evidence["tree"].entries}
    assert found["docs"] == "link"
    assert list(evidence["tree"].files().values()).count(b"x") == 1


def test_a_pipe_is_refused(bench: Bench):
    """Reading it would never end."""
    path = at(bench, "/home/user/note.txt")
    os.mkfifo(path)
    bench.collect()
    assert Evidence(bench.evidence)["note"].state == "refused"


def test_a_huge_file_is_refused(bench: Bench):
    """By its limit, a sparse one too."""
    path = at(bench, "/home/user/note.txt")
    with path.open("wb") as file:
        file.truncate(10**12)
    bench.collect()
    item = Evidence(bench.evidence)["note"]
    assert item.state == "refused"
    assert "over" in item.note


def test_too_many_files_are_refused(bench: Bench):
    """A flood of entries ends the glob, not the collection."""
    flood = at(bench, "/home/user/flood")
    flood.mkdir()
    for number in range(2100):
        (flood / str(number)).touch()
    bench.probes = (Probe("all", "glob", "/home/user/flood/*"),)
    bench.collect()
    assert Evidence(bench.evidence)["all"].state == "refused"


def test_deeply_nested_folders_are_refused(bench: Bench):
    """One line of an agent's shell makes them by the thousand; no stack of ours grows with them."""
    home = at(bench, "/home/user")
    folder = os.open(home, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    bench.probes = (Probe("all", "glob", "/home/user/**/*.txt"),)
    bench.collect()
    item = Evidence(bench.evidence)["all"]
    assert (item.state, "deeper" in item.note) == ("refused", True)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", ["a.txt"]),
        ("**/a.txt", ["a.txt", "b/a.txt", "b/c/a.txt"]),
        ("**/**/a.txt", ["a.txt", "b/a.txt", "b/c/a.txt"]),
        ("**/*/**/a.txt", ["b/a.txt", "b/c/a.txt"]),
        ("*/**", ["b/a.txt", "b/c", "b/c/a.txt"]),
        ("b/**/a.txt", ["b/a.txt", "b/c/a.txt"]),
        ("?/c/[a-b].txt", ["b/c/a.txt"]),
        ("**/c", ["b/c"]),
    ],
)
def test_a_glob_finds_each_entry_once(bench: Bench, pattern: str, found: list[str]):
    """``**`` is any number of folders, none included."""
    for name in ("a.txt", "b/a.txt", "b/c/a.txt"):
        bench.machine.shell.write(f"/home/user/t/{name}", b"")
    bench.probes = (Probe("all", "glob", f"/home/user/t/{pattern}"),)
    bench.collect()
    entries = Evidence(bench.evidence)["all"].entries
    assert [e.guest.removeprefix("/home/user/t/") for e in entries] == found


def test_a_file_that_no_parser_survives_is_content(bench: Bench):
    """Deeper than Python's stack, it is for the checks to refuse."""
    bench.machine.shell.write("/home/user/x.json", b"[" * 100_000)
    bench.probes = (Probe("all", "file", "/home/user/x.json"),)
    bench.collect()
    assert Evidence(bench.evidence)["all"].state == "present"


def test_files_of_nothing_fail_the_check(bench: Bench):
    """Absent and refused, as for one file; asked of one file they are the author's slip."""
    bench.machine.shell.write("/home/user/a.txt", b"12")
    bench.probes = (
        Probe("none", "glob", "/home/user/*.pdf"),
        Probe("much", "glob", "/home/user/*.txt", limit_bytes=1),
        Probe("one", "file", "/home/user/a.txt"),
    )
    bench.collect()
    evidence = Evidence(bench.evidence)
    with pytest.raises(Fails, match="none: nothing matches"):
        evidence["none"].files()
    with pytest.raises(Fails, match="over 1 bytes"):
        evidence["much"].files()
    with pytest.raises(GradingError, match="is for a glob"):
        evidence["one"].files()


def test_too_much_to_look_at_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Also where little of it would match."""
    monkeypatch.setattr("cua_gym.grading.walking.MAX_VISITED", 20)
    for number in range(30):
        bench.machine.shell.write(f"/home/user/deep/{number}/x", b"")
    bench.probes = (Probe("all", "glob", "/home/user/**/*.txt"),)
    bench.collect()
    assert Evidence(bench.evidence)["all"].state == "refused"


def test_odd_names_are_names(bench: Bench):
    """Bytes that are not UTF-8, newlines and dots never become host paths."""
    home = at(bench, "/home/user/odd")
    home.mkdir()
    for name in (b"\xff.txt", b"new\nline", b"..hidden", b"-rf", "你好".encode()):
        Path(os.fsdecode(os.fsencode(home) + b"/" + name)).write_bytes(name)
    bench.probes = (Probe("all", "glob", "/home/user/odd/*"),)
    bench.collect()
    found = Evidence(bench.evidence)["all"].files()
    assert sorted(found.values()) == sorted(os.fsencode(k).rsplit(b"/", 1)[-1] for k in found)
    assert len(found) == 5
    outside = [p for p in bench.folder.iterdir() if p.name not in ("evidence", "hidden")]
    assert outside == []


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("/home/user/*", {"a.txt", "d"}),
        ("/home/user/*.txt", {"a.txt"}),
        ("/home/user/**", {"a.txt", "d", "b.txt", "e", "c.txt"}),
        ("/home/user/**/*.txt", {"a.txt", "b.txt", "c.txt"}),
        ("/home/user/**/e/*.txt", {"c.txt"}),
        ("/home/user/d/[b]*", {"b.txt"}),
        ("/home/user/none/*", set()),
    ],
)
def test_globs_match_like_a_shells(bench: Bench, pattern: str, wanted: set[str]):
    """``**`` is any number of folders."""
    for path in ("a.txt", "d/b.txt", "d/e/c.txt"):
        bench.machine.shell.write(f"/home/user/{path}", b"x")
    bench.probes = (Probe("all", "glob", pattern),)
    bench.collect()
    assert {e.guest.rsplit("/", 1)[-1] for e in Evidence(bench.evidence)["all"].entries} == wanted


def test_a_torn_file_is_read_again(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """What a freeze caught half-written is taken after one thaw."""
    bench.machine.shell.write("/home/user/note.json", b'{"a": ')
    bench.probes = (Probe("note", "file", "/home/user/note.json"),)
    thawed = []

    def thaw() -> None:
        thawed.append(1)
        bench.machine.shell.write("/home/user/note.json", b'{"a": 1}')

    monkeypatch.setattr(bench.machine, "thaw", thaw)
    bench.collect()
    assert json.loads(Evidence(bench.evidence)["note"].bytes()) == {"a": 1}
    assert thawed == [1]


def test_a_command_keeps_its_exit_status(bench: Bench):
    """A failing command is a value; one that is not there is an error."""
    bench.probes = (
        Probe("good", "command", "printf hello"),
        Probe("bad", "command", "printf x; exit 3"),
    )
    bench.collect()
    evidence = Evidence(bench.evidence)
    assert evidence["good"].text() == "hello"
    assert evidence["bad"].exit == 3
    with pytest.raises(Fails):
        evidence["bad"].text()
    bench.probes = (Probe("none", "command", "no-such-command-here"),)
    with pytest.raises(GradingError, match="cannot be run"):
        bench.collect()


def test_a_command_that_does_not_end_is_refused(bench: Bench):
    """An agent can hold it up, with a million files say; that brings it a zero, not a way out."""
    bench.probes = (Probe("slow", "command", "sleep 30", timeout_s=0.3),)
    bench.collect()
    item = Evidence(bench.evidence)["slow"]
    assert (item.state, "live = true" in item.note) == ("refused", True)
    with pytest.raises(Fails, match="did not end"):
        item.text()


def test_a_flood_of_output_is_refused(bench: Bench):
    """Of a command; it is not kept."""
    bench.probes = (Probe("flood", "command", "head -c 2000 /dev/zero", limit_bytes=1000),)
    bench.collect()
    assert Evidence(bench.evidence)["flood"].state == "refused"


@pytest.mark.parametrize("call", ["stat", "list", "read"])
@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_what_not_even_root_may_look_at_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, call: str, number: int
):
    """As in a file system that the account mounted, or where a service goes on removing files."""
    bench.machine.shell.write("/home/user/d/note.txt", b"x")
    bench.probes = (
        Probe("note", "file", "/home/user/d/note.txt"),
        Probe("all", "glob", "/home/user/d/*"),
        Probe("tree", "tree", "/home/user/d/x"),
    )

    def refuse(path: str, **_: object) -> bytes:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(bench.machine.shell, call, refuse)
    bench.collect()
    states = {item.state for item in Evidence(bench.evidence).values() if item.name != "submission"}
    assert states <= {"absent", "refused", "present"}
    wanted = "absent" if number == errno.ENOENT and call != "read" else "refused"
    assert Evidence(bench.evidence)["all"].state == wanted


def test_a_folder_too_big_to_list_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """It is known by its own size, before a million names have come over the wire."""
    monkeypatch.setattr("cua_gym.grading.walking.MAX_FOLDER", 0)
    bench.machine.shell.write("/home/user/flood/x", b"")
    bench.probes = (
        Probe("top", "glob", "/home/user/flood/*"),
        Probe("below", "glob", "/home/user/**/*"),
    )
    bench.collect()
    assert {Evidence(bench.evidence)[name].state for name in ("top", "below")} == {"refused"}


@pytest.mark.parametrize("kind", ["windows", "a11y", "clipboard"])
@pytest.mark.parametrize(
    "answer",
    ["[" * 100_000, '[{"id": 1}]', "[1]", "null", "\\xff", '"' + "x" * 5000 + '"'],
)
def test_what_the_desktop_makes_up_is_no_fault_of_ours(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str, answer: str
):
    """Its programs are the agent's, and may answer anything: nonsense is refused."""

    def run(command: object, **_: object) -> Completed:
        return Completed(0, answer.encode(), b"", False, 0)

    monkeypatch.setattr(bench.machine.shell, "run", run)
    bench.probes = (Probe("told", kind, live=True, limit_bytes=1000),)  # type: ignore[arg-type]
    bench.collect()
    item = Evidence(bench.evidence)["told"]
    assert item.state in ("refused", "present")
    assert len(answer) < 5000 or item.state == "refused"


def test_evidence_changed_afterwards_is_an_error(bench: Bench):
    """Its hashes were taken at collection."""
    bench.machine.shell.write("/home/user/note.txt", b"x")
    bench.collect()
    (bench.evidence / "note.txt").write_bytes(b"y")
    with pytest.raises(GradingError, match="changed"):
        Evidence(bench.evidence)["note"].bytes()


def test_a_manifest_cannot_point_outside(bench: Bench):
    """Even a forged one reads no other file."""
    bench.machine.shell.write("/home/user/note.txt", b"x")
    bench.collect()
    path = bench.evidence / "manifest.json"
    path.write_text(path.read_text().replace('"note.txt"', '"../../../etc/passwd"'))
    with pytest.raises(GradingError):
        Evidence(bench.evidence)


def test_the_answer_is_evidence_and_no_verdict(bench: Bench):
    """Text that looks like a result is text (B146)."""
    bench.collect({"kind": "submit", "answer": '{"score": 1, "success": true}', "reason": None})
    evidence = Evidence(bench.evidence)
    assert evidence["answer"].text().startswith('{"score"')
    assert json.loads(evidence["submission"].bytes())["kind"] == "submit"


def test_collecting_twice_replaces_the_first(bench: Bench):
    """Nothing of the earlier folder stays."""
    bench.machine.shell.write("/home/user/note.txt", b"x")
    bench.collect()
    bench.machine.shell.remove("/home/user/note.txt")
    bench.collect()
    assert Evidence(bench.evidence)["note"].state == "absent"
    assert not (bench.evidence / "note.txt").exists()
