"""The smaller commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cua_gym.cli import doctor, main
from cua_gym.cli.doctor import Finding
from cua_gym.cli.progress import Progress, printable
from cua_gym.task import Suite

ROOT = Path(__file__).parents[2]


def call(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `cua-gym`."""
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_help_names_every_command() -> None:
    """`--help` lists the commands, each with a line, and each has help of its own."""
    code, out, _ = call("--help")
    assert code == 0
    for name in ("run", "task", "image", "grade", "doctor", "clean"):
        assert f"\n  {name}" in out
        assert call(name, "--help")[0] == 0


def test_as_a_program() -> None:
    """An unknown task ends a real process with code 2 and a message, no traceback."""
    command = [sys.executable, "-m", "cua_gym.cli", "run", "no-such-task"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: no task 'no-such-task'")
    assert done.stdout == ""


def test_task_list(suite: Suite) -> None:
    """The list for programs has one object with name, area, tool policy and backend."""
    code, out, _ = call("task", "list", "--json")
    assert code == 0
    assert json.loads(out) == {
        "tasks": [{"name": "type-word", "area": "editor", "tool_policy": "gui", "backend": "any"}]
    }
    assert "Type a word" in call("task", "list")[1]
    assert call("task", "list", "--suite", str(suite.path))[0] == 0


@pytest.mark.usefixtures("suite")
def test_task_list_stats() -> None:
    """How many tasks have which area, level, tools, length, and verdict of the gates."""
    code, out, _ = call("task", "list", "--stats", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["tasks"] == 1
    assert told["area"] == {"editor": 1}
    assert told["expected_steps"]["1 to 4"] == 1
    assert sum(told["expected_steps"].values()) == 1
    assert told["gates"] == {"missing": 1}
    assert "  editor " in call("task", "list", "--stats")[1]


@pytest.mark.usefixtures("suite")
def test_task_show() -> None:
    """A task is shown with one seed's instruction and the names of its checkpoints."""
    code, out, _ = call("task", "show", "type-word", "--seed", "3", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["params"]["word"] in told["instruction"]
    assert told["checkpoints"] == [
        {"id": "word-saved", "weight": 0.5}, {"id": "begun", "weight": 0.5},
    ]  # fmt: skip
    assert "Type toy" in call("task", "show", "type-word")[1]


def test_task_new(tmp_path: Path) -> None:
    """A new task is written once; a bad name or an existing folder is refused with code 2."""
    into = ["--into", str(tmp_path / "tasks")]
    code, out, _ = call("task", "new", "rename-it", *into)
    assert code == 0
    assert "rename-it" in out
    assert (tmp_path / "tasks/rename-it/task.toml").exists()
    assert call("task", "new", "rename-it", *into)[0] == 2
    assert call("task", "new", "Bad Name", *into)[0] == 2


@pytest.mark.usefixtures("suite")
def test_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is graded again from its folder, at any level, with the codes of a run."""
    monkeypatch.syspath_prepend(str(ROOT))
    made = call("run", "type-word", "--agent", "tests.run.agents:HalfWorker", "--json")
    folder = Path(json.loads(made[1])["outcomes"][0]["folder"])
    for level in (folder, folder.parents[2], Path("runs")):
        code, out, _ = call("grade", str(level), "--json")
        assert code == 1
        assert [row["score"] for row in json.loads(out)["outcomes"]] == [0.5]
    assert "word-saved" in call("grade", str(folder))[1]


def test_grade_tells_what_changed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoint by checkpoint, with the reason, and the new outcome beside the old one."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = ["HalfWorker", "Worker"]
    agents = [word for name in names for word in ("--agent", f"tests.run.agents:{name}")]
    made = call("run", "type-word", *agents, "--json")
    half, whole = (Path(o["folder"]) for o in json.loads(made[1])["outcomes"])
    assert "2 attempts, 0 verdicts changed, 0 unscored" in call("grade", "runs", str(half))[1]
    checks = suite.path / "tasks/type-word/hidden/checkpoints.toml"
    text = checks.read_text().replace('"toy.begins"', '"toy.says"')
    checks.write_text(text.replace('id = "word-saved"', 'id = "saved"'))
    _, out, _ = call("grade", str(half), str(whole))
    assert "HalfWorker  seed 0  scored 0.5 -> scored 0.0" in out
    assert "    begun: 1 -> 0\n        was: its beginning\n        now: the note\n" in out
    assert "    saved: new, 0 (weight 0.5): the note\n" in out
    assert "    word-saved: gone, was 0 (weight 0.5): the note\n" in out
    assert "    why: its checks have changed: " in out
    assert "2 attempts, 2 verdicts changed, 0 unscored\n" in out
    assert not list(half.glob("result-*.json"))
    code, out, _ = call("grade", "runs", "--save", "--json")
    told = json.loads(out)
    assert code == 1
    assert told["summary"] == {"attempts": 2, "changed": 2, "unscored": 0, "saved": 2}
    first = told["outcomes"][0]
    assert (first["score"], first["before"]["score"], first["compared_with"]) == (
        0.0, 0.5, "result.json",
    )  # fmt: skip
    assert {c["id"]: c["kind"] for c in first["checkpoints"]} == {
        "begun": "verdict", "saved": "added", "word-saved": "removed",
    }  # fmt: skip
    assert json.loads((half / "result.json").read_text())["score"] == 0.5
    assert json.loads(Path(first["saved"]).read_text())["score"] == 0.0


def test_grade_of_nothing(tmp_path: Path) -> None:
    """A folder without attempts, or no folder, is a usage error."""
    assert call("grade", str(tmp_path))[0] == 2
    assert call("grade")[0] == 2
    assert call("grade", str(tmp_path / "nope"))[0] == 2


def test_doctor_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every question is answered, and a "no" comes with what to do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "_qemu", lambda: iter(()))  # starts a guest
    code, out, _ = call("doctor", "--json")
    told = json.loads(out)
    assert {f["name"] for f in told["findings"]} >= {
        "image tools", "bwrap", "PyAV", "ffmpeg", "libvirt", "memory", "disk", "cache", "images",
    }  # fmt: skip
    assert all(f["ok"] or f["remedy"] for f in told["findings"])
    images = next(f for f in told["findings"] if f["name"] == "images")
    assert (images["ok"], images["remedy"]) == (False, "make image")
    assert code == 1


@pytest.mark.parametrize(("needed", "code", "word"), [(True, 1, "NO"), (False, 0, "no")])
def test_doctor_needs(monkeypatch: pytest.MonkeyPatch, needed: bool, code: int, word: str) -> None:
    """Only what the main job needs makes the machine not ready."""
    lacking = Finding("thing", False, needed, "not here", "get it")
    monkeypatch.setattr(doctor, "findings", lambda: iter([lacking]))
    got, out, _ = call("doctor")
    assert got == code
    assert f"{word}  thing: not here\n      -> get it" in out


def test_clean_on_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaning an empty cache is no error, twice."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert call("clean")[0] == 0
    assert call("clean", "--all")[0] == 0


def test_clean_of_attempts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They took hours, so they go only with all."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    attempt = tmp_path / "cua-gym/gates/abc/attempt.json"
    attempt.parent.mkdir(parents=True)
    attempt.write_text("{}")
    call("clean")
    assert attempt.is_file()
    call("clean", "--all")
    assert not attempt.exists()


def test_progress_tells_steps_once_a_second(capsys: pytest.CaptureFixture[str]) -> None:
    """Steps within a second of the last line are not told; phases always are."""
    now = iter([0.0, 0.1, 0.2, 1.5, 1.5, 1.6, 1.6])
    progress = Progress(lambda: next(now))
    progress.phase("boot")
    progress.step(1, 9, "Click")
    progress.step(2, 9, "Type")
    progress.phase("grade\x1b[2J")
    assert capsys.readouterr().err.splitlines() == [
        "boot", "  step 2/9: Type", "grade\N{REPLACEMENT CHARACTER}[2J",
    ]  # fmt: skip


def test_printable_keeps_text() -> None:
    """Any language and new lines stay; escapes and carriage returns do not."""
    assert (
        printable("你好 é\nb\r\x07")
        == "你好 é\nb\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    )
