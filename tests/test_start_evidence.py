"""An attempt brings what was there at the start, however its machine came to be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cua_gym.actions import Key, Submit, Type
from cua_gym.episode import Episode
from cua_gym.errors import TaskError
from cua_gym.grading.items import Evidence
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine
from cua_gym.record.layout import RunFolder
from cua_gym.task import Task, find_task
from tests.run.toy import make_suite, on_toy_computer

ASKED = """
[[evidence]]
name = "before"
file = "/home/user/note.txt"
at = "start"

[[evidence]]
name = "listed"
tree = "/home/user"
at = "start"
"""
SETUP = '\n[[setup]]\nfile = { to = "/home/user/note.txt", content = "from the setup" }\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The toy task's."""
    make_suite(tmp_path / "suite")
    return tmp_path / "suite/tasks/type-word"


def task_of(folder: Path, more: str) -> Task:
    """The toy task with more in its declaration."""
    path = folder / "task.toml"
    path.write_text(path.read_text() + more)
    return on_toy_computer(find_task(folder))


def attempt(task: Task, folder: Path, start: Callable[..., Machine]) -> Evidence:
    """Type over the note, and what was collected then."""
    episode = Episode(
        task.variation(0),
        RunFolder.create(folder, "r", task.name, "caller"),
        rule=Settle(0.02, 0.01, 0.1),
        start=start,
    )
    try:
        episode.prepare()
        for action in (Type("later"), Key("ctrl+s"), Submit()):
            episode.act(action)
        assert episode.evaluate().kind == "scored"
    finally:
        episode.close()
    return Evidence(episode.folder.evidence)


class Store:
    """Keeps states as a kind of computer with a cache does: the setup runs once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = 0

    def start(self, spec: MachineSpec, *, prepare: Any, **_: Any) -> Machine:
        """A machine in the start state."""

        class Keeping(FakeMachine):
            kept = self.folder

        machine = Keeping(spec)
        if self.made:
            machine.shell.write("/home/user/note.txt", b"from the state")
        else:
            self._keep(prepare(machine))
        self.made += 1
        return machine

    def _keep(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def test_where_the_setup_runs_each_time(folder: Path, tmp_path: Path):
    """It is taken after the setup."""
    evidence = attempt(task_of(folder, SETUP + ASKED), tmp_path, start_machine)
    assert evidence["before"].bytes() == b"from the setup"
    assert b"note.txt" in evidence["listed"].bytes()
    assert evidence["note"].bytes() == b"later"


def test_a_restored_start_state_brings_what_was_taken_when_it_was_made(
    folder: Path, tmp_path: Path
):
    """The machine is not asked again."""
    task = task_of(folder, SETUP + ASKED)
    store = Store(tmp_path / "kept")
    for _ in range(2):
        evidence = attempt(task, tmp_path, store.start)
        assert evidence["before"].bytes() == b"from the setup"
    assert store.made == 2


def test_a_task_without_setup_is_asked_at_reset(folder: Path, tmp_path: Path):
    """There is no state of its own that it could lie with."""

    def ready(spec: MachineSpec, **_: Any) -> Machine:
        machine = FakeMachine(spec)
        machine.shell.write("/home/user/note.txt", b"of the image")
        return machine

    evidence = attempt(task_of(folder, ASKED), tmp_path, ready)
    assert evidence["before"].bytes() == b"of the image"


def test_a_start_that_cannot_be_looked_at_is_a_failed_setup(folder: Path, tmp_path: Path):
    """Before anybody acts: nobody's zero."""
    task = task_of(folder, '\n[[evidence]]\nname = "x"\nat = "start"\ncommand = "nope-nope"\n')
    runs = RunFolder.create(tmp_path, "r", task.name, "caller")
    episode = Episode(task.variation(0), runs)
    with pytest.raises(TaskError, match="at the start: evidence x"):
        episode.prepare()
    assert episode.outcome is not None
    assert (episode.outcome.reason, episode.outcome.phase) == ("setup", "setup")
