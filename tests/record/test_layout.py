"""Names of a run's files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cua_gym.record.layout import RunFolder, attempts, new_run


def test_attempts_are_numbered(tmp_path: Path) -> None:
    """Attempts of one agent at one task count up."""
    made = [RunFolder.create(tmp_path, "r", "t", "a").path for _ in range(3)]
    assert [p.relative_to(tmp_path).as_posix() for p in made] == [
        "r/t/a/001",
        "r/t/a/002",
        "r/t/a/003",
    ]


def test_no_two_get_one_folder(tmp_path: Path) -> None:
    """Many at once each get an attempt of their own."""
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: RunFolder.create(tmp_path, "r", "t", "a"), range(40)))
    assert len({m.path for m in made}) == 40


@pytest.mark.parametrize(
    "name", ["../../etc", "a/b", "mod.sub:Class", "..", "", "名前", "x" * 300, "名" * 200]
)
def test_odd_names_stay_inside(tmp_path: Path, name: str) -> None:
    """No task or agent name leads out of the run."""
    folder = RunFolder.create(tmp_path, "r", name, name)
    assert folder.path.resolve().relative_to(tmp_path.resolve()).parts[0] == "r"
    assert len(folder.path.relative_to(tmp_path).parts) == 4


def test_runs_of_one_second_differ(tmp_path: Path) -> None:
    """Two runs begun in one second have two folders."""
    now = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert [new_run(tmp_path, now) for _ in range(3)] == [
        "20250102-030405", "20250102-030405-2", "20250102-030405-3",
    ]  # fmt: skip


def test_finding_attempts(tmp_path: Path) -> None:
    """Attempts are found from above and from themselves, in order; evidence is not searched."""
    made = [RunFolder.create(tmp_path, "r", task, "a") for task in ("y", "x")]
    for folder in made:
        folder.write_episode({"task": "t"})
        (folder.evidence / "result.json").write_text("{}")
    unstarted = RunFolder.create(tmp_path, "r", "z", "a")
    unstarted.write_result({"kind": "unscored"})
    assert list(attempts(tmp_path)) == [made[1], made[0], unstarted]
    assert list(attempts(made[0].path)) == [made[0]]


def test_later_outcomes_lie_beside_the_first(tmp_path: Path) -> None:
    """In the order of their numbers; none is ever written over."""
    folder = RunFolder.create(tmp_path, "r", "t", "a")
    assert folder.results == []
    folder.write_result({"score": 0})
    for number in range(2, 12):
        assert folder.add_result({"n": number}) == folder.path / f"result-{number}.json"
    (folder.path / "result-x.json").write_text("{}")
    assert [p.name for p in folder.results] == [
        "result.json",
        *(f"result-{number}.json" for number in range(2, 12)),
    ]
