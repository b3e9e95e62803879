"""What was there at the start: taken before anybody acts, kept with the state, laid beside the end.

And listings of whole folders, which are what is mostly compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cua_gym.errors import GradingError, TaskError
from cua_gym.grading.grade import grade
from cua_gym.grading.items import Evidence
from cua_gym.grading.probes import Probe
from cua_gym.grading.start import StartEvidence

from .conftest import Bench
from .test_evidence import at

PROBES = (
    Probe("before", "file", "/home/user/note.txt", at="start"),
    Probe("globbed", "glob", "/home/user/d/*", at="start"),
    Probe("told", "command", "echo now", at="start", live=True),
    Probe("scope_start", "tree", "/home/user", at="start"),
    Probe("scope_end", "tree", "/home/user"),
    Probe("after", "file", "/home/user/note.txt"),
)


@pytest.fixture
def begun(bench: Bench) -> Bench:
    """One note and a folder, looked at by the probes of the start."""
    bench.probes = PROBES
    bench.machine.shell.write("/home/user/note.txt", b"old")
    bench.machine.shell.write("/home/user/d/one.txt", b"1")
    bench.begin()
    return bench


def test_both_moments_are_evidence(begun: Bench):
    """Each as it was then, whatever became of it."""
    begun.machine.shell.write("/home/user/note.txt", b"new")
    begun.machine.shell.remove("/home/user/d")
    begun.collect()
    evidence = Evidence(begun.evidence)
    assert (evidence["before"].bytes(), evidence["after"].bytes()) == (b"old", b"new")
    assert evidence["globbed"].files() == {"/home/user/d/one.txt": b"1"}
    assert evidence["told"].text() == "now\n"
    assert (evidence["before"].at, evidence["after"].at) == ("start", "end")
    assert b"one.txt" in evidence["scope_start"].bytes()
    assert b"one.txt" not in evidence["scope_end"].bytes()


def test_collecting_twice_keeps_the_start(begun: Bench):
    """A look at the progress takes nothing from the end."""
    begun.collect()
    begun.machine.thaw()
    begun.machine.shell.write("/home/user/note.txt", b"new")
    begun.collect()
    assert Evidence(begun.evidence)["before"].bytes() == b"old"


def test_what_was_not_there_at_the_start_is_absent(bench: Bench):
    """A value, as at the end."""
    bench.probes = (Probe("before", "file", "/home/user/note.txt", at="start"),)
    bench.begin()
    bench.machine.shell.write("/home/user/note.txt", b"made by the agent")
    bench.collect()
    assert Evidence(bench.evidence)["before"].state == "absent"


@pytest.mark.parametrize(
    ("probe", "cause"),
    [
        (Probe("x", "command", "no-such-command-here", at="start"), "cannot be run"),
        (Probe("x", "command", "sleep 30", at="start", timeout_s=0.2), "did not end"),
        (Probe("x", "file", "/home/user/note.txt", at="start", limit_bytes=1), "over 1 bytes"),
        (Probe("x", "tree", "/home/user/note.txt", at="start"), "is a file"),
    ],
)
def test_nobody_else_is_to_blame_for_the_start(bench: Bench, probe: Probe, cause: str):
    """What cannot be taken then is the task's fault: a setup that failed, not an agent's zero."""
    bench.machine.shell.write("/home/user/note.txt", b"old")
    with pytest.raises(TaskError, match=cause):
        StartEvidence.take(bench.machine, [probe])


def test_it_is_kept_as_files(begun: Bench, tmp_path: Path):
    """And comes back the same."""
    folder = tmp_path / "kept"
    for name, data in begun.start.files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert StartEvidence.load(folder) == begun.start
    assert StartEvidence.load(folder).answers(PROBES)


class Restored:
    """A machine that became a saved state, beside which something lies."""

    def __init__(self, bench: Bench, kept: Path | None) -> None:
        self.kept = kept
        self._machine = bench.machine

    def __getattr__(self, name: str) -> object:
        return getattr(self._machine, name)


def _drop(folder: Path) -> None:
    (folder / "before.txt").unlink()


def _garble(folder: Path) -> None:
    (folder / "start.json").write_text("{")


def _other_listing(folder: Path) -> None:
    head = json.loads((folder / "start.json").read_text())
    head["recipe"]["listing"] = "find . -ls"
    (folder / "start.json").write_text(json.dumps(head))


def _other_probe(folder: Path) -> None:
    head = json.loads((folder / "start.json").read_text())
    head["recipe"]["probes"][0]["source"] = "/etc/passwd"
    (folder / "start.json").write_text(json.dumps(head))


@pytest.mark.parametrize(
    ("spoil", "taken"),
    [(lambda _: None, 0), (_drop, 1), (_garble, 1), (_other_listing, 1), (_other_probe, 1)],
)
def test_a_restored_state_brings_it(
    begun: Bench, tmp_path: Path, spoil: Callable[[Path], None], taken: int
):
    """Unless it is not whole, or other probes took it: then the restored start is asked."""
    folder = tmp_path / "kept"
    for name, data in begun.start.files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    spoil(folder)
    told: list[str] = []
    found = StartEvidence.of(Restored(begun, folder), PROBES, told.append)  # type: ignore[arg-type]
    assert len(told) == taken
    assert found.answers(PROBES)
    assert found.contents["before.txt"] == b"old"


def test_a_machine_that_keeps_nothing_is_asked(begun: Bench):
    """As is one whose state was made when nobody asked for it."""
    for machine in (begun.machine, Restored(begun, None), Restored(begun, Path("/nowhere"))):
        told: list[str] = []
        found = StartEvidence.of(machine, PROBES, told.append)  # type: ignore[arg-type]
        assert (found, len(told)) == (begun.start, 1)


def test_a_task_without_it_asks_nothing(bench: Bench):
    """Nor is the machine frozen for it."""
    bench.machine.fault = GradingError("nobody should ask")
    assert StartEvidence.of(bench.machine, bench.probes).files() == {}


def test_an_end_without_its_start_is_an_error(begun: Bench):
    """Rather than evidence in which something is missing."""
    begun.start = None
    with pytest.raises(GradingError, match="evidence of the start"):
        begun.collect()


def scope(bench: Bench, *changes: str) -> None:
    """The checkpoint that a task's ``[scope]`` makes, beside one that always holds."""
    bench.point("files.absent", evidence="answer")
    bench.point("files.only_changed", weight=-0.5, negate=True, args={"may_change": list(changes)})
    point = replace(bench.points[-1], evidence=("scope_start", "scope_end"), listed=True)
    bench.points[-1] = point


@pytest.mark.parametrize(
    ("deed", "score"),
    [
        (lambda shell: None, 1.0),
        (lambda shell: shell.write("/home/user/note.txt", b"new"), 1.0),
        (lambda shell: shell.write("/home/user/.config/x", b"noise"), 1.0),
        (lambda shell: shell.write("/home/user/other.txt", b"damage"), 0.5),
        (lambda shell: shell.remove("/home/user/d/one.txt"), 0.5),
        (lambda shell: shell.write("/home/user/d/one.txt", b"2"), 0.5),
    ],
)
def test_collateral_damage_is_found(begun: Bench, deed: Callable[..., object], score: float):
    """From the two listings, in a whole grading."""
    scope(begun, "note.txt")
    deed(begun.machine.shell)
    begun.collect()
    assert grade(begun.evidence, begun.asked).score == score


def test_a_listing_that_was_prevented_is_damage(begun: Bench):
    """Nobody gets around it by making the folder a link, or so full that it is not listed."""
    scope(begun, "**")
    home = at(begun, "/home/user")
    begun.probes = (*PROBES[:4], replace(PROBES[4], limit_bytes=10))
    begun.collect()
    assert grade(begun.evidence, begun.asked).score == 0.5
    begun.probes = PROBES[:5]
    home.rename(home.with_name("gone"))
    (home.parent / "user").symlink_to("gone")
    begun.collect()
    item = Evidence(begun.evidence)["scope_end"]
    assert (item.state, "link" in item.note) == ("refused", True)
    assert grade(begun.evidence, begun.asked).score == 0.5


def test_a_listing_of_what_is_not_there(bench: Bench):
    """Absent, and of a file refused."""
    bench.machine.shell.write("/home/user/note.txt", b"x")
    bench.probes = (
        Probe("none", "tree", "/home/user/none"),
        Probe("file", "tree", "/home/user/note.txt"),
    )
    bench.collect()
    evidence = Evidence(bench.evidence)
    assert (evidence["none"].state, evidence["file"].state) == ("absent", "refused")
