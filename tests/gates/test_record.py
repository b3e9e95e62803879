"""What is written beside a task, and what it says of the task later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cua_gym.errors import TaskError
from cua_gym.gates.content import attempt_hash, content_hash, evaluator_files
from cua_gym.gates.names import GATES, SEEDS
from cua_gym.gates.record import RECORD, Judgement, record, standing
from cua_gym.task import Task

from .sound import SOUND, load, make_task

ALL = tuple(range(SEEDS))
GREEN = {gate: Judgement(True, "well", ALL) for gate in GATES}


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """The sound task."""
    return make_task(tmp_path, SOUND)


def write(task: Task, judgements: dict[str, Judgement], date: str = "2026-01-01") -> str:
    """Record verdicts on the task as it is; the file."""
    record(task, content_hash(task), judgements, date)
    path = task.folder / RECORD
    return path.read_text() if path.exists() else ""


class TestRecord:
    """The file."""

    def test_is_no_part_of_the_task(self, tmp_path: Path, task: Task) -> None:
        """Its hash stays, and so do the verdicts."""
        write(task, GREEN)
        assert load(tmp_path).hash == task.hash
        assert standing(load(tmp_path)).kind == "passed"

    def test_changes_only_with_a_verdict(self, task: Task) -> None:
        """The same verdicts on another day leave the file as it is; others are dated anew."""
        first = write(task, GREEN)
        assert write(task, GREEN, "2026-02-02") == first
        second = write(task, {"oracle": Judgement(False, "bad", ALL)}, "2026-03-03")
        entries = json.loads(second)["gates"]
        assert {e["date"] for g, e in entries.items() if g != "oracle"} == {"2026-01-01"}
        assert entries["oracle"]["date"] == "2026-03-03"
        assert list(entries) == list(GATES)

    def test_what_could_not_be_judged_is_not_recorded(self, task: Task) -> None:
        """A fault of ours takes no verdict back, and gives none."""
        assert write(task, {"oracle": Judgement.unjudged("lost")}) == ""
        first = write(task, GREEN)
        untried = Judgement.untried("no start")
        assert write(task, {"oracle": Judgement.unjudged("lost"), "leaks": untried}) == first

    def test_fewer_seeds_say_less(self, task: Task) -> None:
        """They do not replace what passed on more, unless they failed."""
        first = write(task, GREEN)
        assert write(task, {"oracle": Judgement(True, "well", (0,))}) == first
        write(task, {"oracle": Judgement(False, "bad", (0,))})
        assert standing(task).kind == "failed"

    def test_names_no_folder_of_the_host(self, task: Task) -> None:
        """Where somebody keeps a task is nobody's business."""
        text = write(task, {"lint": Judgement(False, f"{task.folder}/oracle.py:3: bad")})
        assert json.loads(text)["gates"]["lint"]["detail"] == "oracle.py:3: bad"

    def test_a_folder_that_cannot_be_written(self, task: Task) -> None:
        """It is said."""
        (task.folder / RECORD).mkdir()
        with pytest.raises(TaskError, match="cannot be written"):
            write(task, GREEN)


class TestStanding:
    """What it says of the task as it is now."""

    def test_missing(self, task: Task) -> None:
        """Never tried, not all tried, a file that is not ours."""
        assert standing(task).kind == "missing"
        write(task, {"lint": GREEN["lint"]})
        assert "consistency" in standing(task).message
        for text in ("{", "[]", '{"gates": 3}', '{"gates": {"lint": {}}}'):
            (task.folder / RECORD).write_text(text)
            assert standing(task).kind == "missing"

    def test_partly(self, task: Task) -> None:
        """The oracle on too few seeds is not all of it."""
        write(task, GREEN | {"oracle": Judgement(True, "well", (0, 1))})
        assert standing(task).kind == "partly"
        assert standing(task).message == "its oracle was tried on 2 of 5 seeds"

    def test_failed(self, task: Task) -> None:
        """A gate that failed is named."""
        write(task, GREEN | {"leaks": Judgement(False, "bad")})
        assert (standing(task).kind, standing(task).message) == ("failed", "it failed leaks")

    @pytest.mark.parametrize("name", ["task.toml", "oracle.py", "hidden/answers.py"])
    def test_stale(self, tmp_path: Path, task: Task, name: str) -> None:
        """Any change of the task makes its verdicts old."""
        write(task, GREEN)
        with (task.folder / name).open("a") as file:
            file.write("\n# changed\n")
        assert standing(load(tmp_path)).kind == "stale"


class TestContent:
    """What verdicts and attempts depend on."""

    def test_evaluators(self, task: Task) -> None:
        """The modules that the checks use, and what those import; no others."""
        names = {path.name for path in evaluator_files(task)}
        assert {"text.py", "files.py", "bounds.py"} <= names
        assert "spreadsheets.py" not in names

    @pytest.mark.parametrize(
        ("name", "null", "oracle"),
        [
            ("hidden/checkpoints.toml", False, False),
            ("hidden/answers.py", False, False),
            ("oracle.py", False, True),
        ],
    )
    def test_a_grader_changes_no_attempt(
        self, tmp_path: Path, task: Task, name: str, null: bool, oracle: bool
    ) -> None:
        """Nothing hidden decides what is done; the oracle decides what it does."""

        def hashes(task: Task) -> tuple[str, str]:
            variation = task.variation(0)
            return attempt_hash(variation, "null", {}), attempt_hash(variation, "oracle", {})

        before = hashes(task)
        with (task.folder / name).open("a") as file:
            file.write("\n# changed\n")
        after = hashes(load(tmp_path))
        assert (before[0] != after[0], before[1] != after[1]) == (null, oracle)

    def test_an_oracle_that_uses_the_desk(self, tmp_path: Path, task: Task) -> None:
        """A change of its code counts, though `cua_gym.agent` has a file of the same name."""
        path = task.folder / "oracle.py"
        path.write_text(f"{path.read_text()}\nfrom cua_gym.agent.oracle import Desk\n")
        before = attempt_hash(load(tmp_path).variation(0), "oracle", {})
        path.write_text(f"{path.read_text()}\n# changed\n")
        assert attempt_hash(load(tmp_path).variation(0), "oracle", {}) != before

    @pytest.mark.parametrize(
        ("old", "new"),
        [("steps = 10", "steps = 11"), ("prices.csv\" from", "p.csv\" from"),
         ('name = "note"\n', 'name = "note"\nlimit_bytes = 99\n')],
    )  # fmt: skip
    def test_an_attempt_depends_on_what_it_is_given(
        self, tmp_path: Path, task: Task, old: str, new: str
    ) -> None:
        """Limits, setup and evidence."""
        before = attempt_hash(task.variation(0), "null", {})
        path = task.folder / "task.toml"
        text = path.read_text().replace('", from', '" from')
        path.write_text(text.replace(old, new).replace('" from', '", from'))
        assert attempt_hash(load(tmp_path).variation(0), "null", {}) != before
        assert attempt_hash(task.variation(1), "null", {}) != before
