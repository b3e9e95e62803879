"""`cua-gym task check`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import cua_gym.task
from cua_gym.cli import main
from cua_gym.gates import play
from cua_gym.gates.names import GATES
from cua_gym.gates.record import RECORD
from cua_gym.task import Suite
from tests.gates.sound import NAME, SOUND, Edit, load, make_task


@pytest.fixture(autouse=True)
def sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sound task in the only suite there is; caches in a folder of its own."""
    make_task(tmp_path, SOUND)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cua_gym.task, "bundled_suite", lambda: Suite(tmp_path))
    monkeypatch.setattr(cua_gym.task, "find_task", _find)
    return tmp_path


def _find(name: str, suite: Suite) -> cua_gym.task.Task:
    return load(suite.path) if name == NAME else suite.task(name)


def check(*words: str) -> Result:
    """`cua-gym task check` and ``words``."""
    return CliRunner().invoke(main, ["task", "check", *words])


def test_green(sound: Path) -> None:
    """Code 0, one object with every gate, a line of progress a piece, and the record."""
    result = check("--all", "--seeds", "1", "--json")
    assert result.exit_code == 0, result.output
    (told,) = json.loads(result.stdout)["tasks"]
    assert told["name"] == NAME
    assert list(told["gates"]) == list(GATES)
    assert all(set(v) == {"passed", "detail"} and v["passed"] for v in told["gates"].values())
    assert f"{NAME}: oracle, seed 0, attempt 2" in result.stderr
    assert f"[1/1] {NAME}: lint ok" in result.stderr
    assert set(json.loads((sound / "tasks" / NAME / RECORD).read_text())["gates"]) == set(GATES)


def test_a_gate_that_failed(sound: Path) -> None:
    """Code 1; the table says which, and below it why."""
    make_task(sound, Edit(replace={"oracle.py": ((":.2f}", ":.2f}0"),)}))
    result = check(NAME, "--seeds", "1", "--gate", "lint", "--gate", "oracle")
    assert result.exit_code == 1, result.output
    head, row, *rest = result.stdout.splitlines()
    assert head.split() == ["task", "lint", "oracle"]
    assert row.split() == [NAME, "ok", "FAIL"]
    assert f"{NAME}: oracle failed" in rest
    assert any("seed 0, attempt 1: scored 0 after 3 steps" in line for line in rest)


def test_a_machine_that_failed(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 3; nothing is recorded, and the table says that it is not known."""

    def lost(*_: object, **__: object) -> None:
        raise cua_gym.MachineError("gone")

    monkeypatch.setattr(play, "start_machine", lost)
    result = check(NAME, "--seeds", "1", "--gate", "oracle")
    assert result.exit_code == 3, result.output
    assert result.stdout.splitlines()[1].split() == [NAME, "?"]
    assert f"{NAME}: oracle could not be judged" in result.stdout
    assert not (sound / "tasks" / NAME / RECORD).exists()


def test_a_task_that_does_not_load(sound: Path) -> None:
    """Code 1: the gate lint says what is wrong, and the other tasks are checked."""
    broken = sound / "tasks" / "broken"
    broken.mkdir()
    (broken / "task.toml").write_text("name = 3\n")
    result = check("--all", "--seeds", "1", "--gate", "lint", "--gate", "no-op", "--json")
    assert result.exit_code == 1, result.output
    one, two = json.loads(result.stdout)["tasks"]
    assert (one["name"], two["name"]) == ("broken", NAME)
    assert one["gates"]["lint"]["passed"] is False
    assert one["gates"]["no-op"]["passed"] is None
    assert two["gates"]["no-op"]["passed"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the tasks, or use --all"),
        ([NAME, "--all"], "name the tasks, or use --all"),
        (["note-the-sun"], f"did you mean {NAME}?"),
        (["./nowhere"], "no task"),
        ([NAME, "--gate", "luck"], "'luck' is not one of"),
        ([NAME, "--seeds", "0"], "not in the range"),
        ([NAME, "--jobs", "0"], "not in the range"),
    ],
)
def test_usage(words: list[str], message: str) -> None:
    """Code 2 and a hint."""
    result = check(*words)
    assert result.exit_code == 2, result.output
    assert message in result.output
