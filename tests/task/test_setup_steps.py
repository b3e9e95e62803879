"""Setup: every step succeeds, or the setup fails with what the step printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.errors import MachineLost, TaskError
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.setup_steps import run_setup
from cua_gym.task import Variation, load_task, new_task

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine() -> Iterator[FakeMachine]:
    with FakeMachine(MachineSpec(backend="fake")) as machine:
        yield machine


def variation(tmp_path: Path, setup: str) -> Variation:
    """The template task with another setup."""
    (tmp_path / "evaluators").symlink_to(ROOT / "evaluators")
    folder = new_task(tmp_path / "tasks", "word-task")
    path = folder / "task.toml"
    old = '[[setup]]\nopen = ["mousepad"]\nwindow = "Mousepad"\n'
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, setup))
    (folder / "inputs" / "a.bin").write_bytes(b"\0\xff")
    return load_task(folder).variation(0)


def test_files_and_commands_are_carried_out_in_order(tmp_path: Path, machine: FakeMachine):
    """Placeholders filled, bytes exact, each step told."""
    attempt = variation(
        tmp_path,
        """
[[setup]]
file = { to = "/home/user/{word}.txt", content = "say {word} {{}}\\n" }
[[setup]]
file = { to = "/home/user/a.bin", from = "inputs/a.bin" }
[[setup]]
run = "exit 0"
until = "true"
""",
    )
    told: list[str] = []
    run_setup(machine, attempt, told.append)
    word = attempt.params["word"]
    assert machine.shell.read(f"/home/user/{word}.txt") == f"say {word} {{}}\n".encode()
    assert machine.shell.read("/home/user/a.bin") == b"\0\xff"
    assert [t.split(":")[0] for t in told] == [f"setup step {n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ('run = "echo no such thing >&2; exit 3"', r"step 1 exited with 3.*\n.*no such thing"),
        ('run = "sleep 60"\ntimeout_s = 0.3', "ran over 0.3 s"),
        ('run = "true"\nuntil = "false"\ntimeout_s = 0.5', "until ran over 0.5 s"),
    ],
)
def test_a_failed_step_ends_the_setup(
    tmp_path: Path, machine: FakeMachine, step: str, message: str
):
    """Fail closed, with the output."""
    attempt = variation(tmp_path, f"[[setup]]\n{step}\n")
    with pytest.raises(TaskError, match=message):
        run_setup(machine, attempt)


def test_a_lost_machine_is_not_the_tasks_fault(tmp_path: Path, machine: FakeMachine):
    """It stays a machine error."""
    attempt = variation(tmp_path, '[[setup]]\nrun = "true"\n')
    machine.fault = MachineLost("gone")

    def gone(*_: object, **__: object) -> object:
        raise MachineLost("gone")

    machine.shell.run = gone  # type: ignore[method-assign]
    with pytest.raises(MachineLost):
        run_setup(machine, attempt)
