"""Hidden values are found wherever they are, and nothing else is taken for one."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cua_gym.gates.leaks import leaks, search
from cua_gym.gates.secrets import Secret, secrets
from cua_gym.task import Task

from .conftest import Make
from .sound import SOUND, Edit, make_task

EMPTY = 64 << 20
"""Bytes of nothing before what a test puts into a memory file."""


def saved_state(folder: Path, memory: bytes = b"", disk: bytes = b"") -> Path:
    """A state's folder as a virtual machine would leave it: the memory sparse."""
    folder.mkdir(parents=True)
    with (folder / "memory").open("wb") as file:
        file.seek(EMPTY)
        file.write(memory)
        file.truncate(2 * EMPTY)
    (folder / "device").write_bytes(b"")
    (folder / "disk.0.qcow2").write_bytes(disk)
    info = {"key": "k", "spec": {}, "hardware": {}, "base": {}, "screen": [1, 1], "cursor": [0, 0],
            "deltas": 1, "format": 1}  # fmt: skip
    (folder / "state.json").write_text(json.dumps(info))
    return folder


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """The sound task with a reference file of text and one of bytes."""
    task = make_task(
        tmp_path / "suite",
        Edit(add={"hidden/report.txt": "The reference says so, in its words.\n"}),
    )
    (task.hidden / "picture.bin").write_bytes(bytes(range(256)).replace(b"\n", b"") * 40)
    return task


def judge(task: Task, make: Make, state: Path, **others: Path) -> str:
    """The faults of seed 0, or nothing."""
    start = make("start/evidence", note=None).folder
    judged = leaks(task.variation(0), start, state, {path: set() for path in others.values()})
    return "" if judged.passed else judged.detail


def total(task: Task) -> str:
    """A hidden value."""
    return str(task.variation(0).answers["sum"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
@pytest.mark.parametrize("where", ["memory", "disk"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("answer.sum", None),
        ("hidden/report.txt", "The reference says so, in its words."),
        ("oracle.py", "yield Type(f\"{sum(params['cents']) / 100:.2f}\")"),
    ],
)
def test_a_hidden_value_is_found(
    task: Task, make: Make, tmp_path: Path, name: str, text: str | None, where: str, encoding: str
) -> None:
    """In memory and on the disk, as UTF-8 and UTF-16, of answers, hidden files and the oracle."""
    data = b"\0" * 70_000 + b"x" + (text or total(task)).encode(encoding) + b"y"
    state = saved_state(tmp_path / "state", **{where: data})
    assert judge(task, make, state).startswith(f"{name}: ")


def test_part_of_a_file_of_bytes(task: Task, make: Make, tmp_path: Path) -> None:
    """A part of a hidden file is enough."""
    part = (task.hidden / "picture.bin").read_bytes()[2000:4000]
    assert "hidden/picture.bin" in judge(task, make, saved_state(tmp_path / "s", memory=part))


def test_across_the_pieces_that_are_searched(tmp_path: Path) -> None:
    """Whatever the offset, a value is found whole."""
    secret = Secret("it", "a secret of ours", (b"a secret of ours",))
    for shift in range(0, 20, 3):
        data = b"z" * ((1 << 16) - shift) + b"a secret of ours" + b"z" * 100
        assert search(saved_state(tmp_path / f"{shift}", memory=data), [secret]) == {secret}


def test_nothing_hidden(task: Task, make: Make, tmp_path: Path) -> None:
    """What is given, and half a value, is no leak."""
    given = b"".join(task.variation(0).inputs.values()) + total(task)[:-1].encode()
    assert judge(task, make, saved_state(tmp_path / "state", memory=given)) == ""


def test_what_every_system_has_is_no_leak(task: Task, make: Make, tmp_path: Path) -> None:
    """What stands in another state too, where it is not hidden, proves nothing."""
    memory = total(task).encode()
    state, ready = (saved_state(tmp_path / name, memory=memory) for name in ("state", "ready"))
    assert judge(task, make, state) != ""
    start = make("again/evidence", note=None).folder
    variation = task.variation(0)
    assert leaks(variation, start, state, {ready: set()}).passed
    assert not leaks(variation, start, state, {ready: {total(task)}}).passed


def test_a_form_that_was_filled_in(tmp_path: Path, make: Make) -> None:
    """What it has in common with the empty one is given, however long, and proves nothing."""
    form = "In this letter there is much to be read before the sum comes, and it comes: "
    task = make_task(
        tmp_path / "suite",
        Edit(replace={"hidden/answers.py": (('"sum":', f'"form": "{form}77.31 euros", "sum":'),)}),
    )
    (task.folder / "inputs").mkdir()
    (task.folder / "inputs/form.txt").write_text(f"{form}SUM euros\n")
    start = make("start/evidence", note=None).folder
    [needles] = [
        s.needles for s in secrets(task.variation(0), start).secrets if s.name == "answer.form"
    ]
    assert needles[0] in f"{form}77.31 euros".encode()
    assert needles[0] not in form.encode()


def test_short_values_are_told(tmp_path: Path, make: Make) -> None:
    """A value of a few bytes stands anywhere by chance: it is named, not searched."""
    task = make_task(
        tmp_path / "suite", Edit(replace={"hidden/answers.py": (('"sum":', '"n": 7777, "sum":'),)})
    )
    start = make("start/evidence", note=None).folder
    found = secrets(task.variation(0), start)
    assert "answer.n" in found.short
    judged = leaks(task.variation(0), start, saved_state(tmp_path / "state"), {})
    assert "too short or too common to tell: answer.n" in judged.detail


def test_a_reference_in_an_archive_of_the_inputs(tmp_path: Path, make: Make) -> None:
    """A hidden file that is given in a package is found without any state."""
    task = make_task(tmp_path / "suite", SOUND)
    (task.hidden / "reference.txt").write_bytes(b"What it should look like.\n")
    (task.folder / "inputs").mkdir()
    packed = gzip.compress(b"# notes\nWhat it should look like.\n", mtime=0)
    (task.folder / "inputs/notes.gz").write_bytes(packed)
    start = make("start/evidence", note=None).folder
    judged = leaks(task.variation(0), start, None, {})
    assert judged.detail == "hidden/reference.txt stands whole in the input notes.gz"
