"""A verdict that was reached is never lost, whatever could not be kept; and none is made up."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cua_gym
from cua_gym import actions as a
from cua_gym.env import DesktopEnv
from cua_gym.episode import Episode
from cua_gym.errors import MachineLost, OutOfSpace
from cua_gym.grading.outcome import Outcome
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.record.layout import RunFolder
from cua_gym.record.recorder import Recorder
from cua_gym.run.local import AgentChoice, Plan, run_local
from tests.run import agents
from tests.run.toy import make_suite, on_toy_computer

ROOT = Path(__file__).parents[1]
QUICK = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)


@pytest.fixture
def make_env(tmp_path: Path) -> Iterator[Callable[..., DesktopEnv]]:
    task = on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))
    made: list[DesktopEnv] = []

    def make(**options: Any) -> DesktopEnv:
        made.append(cua_gym.make(task, runs=tmp_path / "runs", settle=QUICK, **options))
        made[-1].reset(seed=0)
        return made[-1]

    yield make
    for env in made:
        env.close()


def solve(env: DesktopEnv) -> tuple[float, dict[str, Any]]:
    """Do the toy task to its end; the last step's reward and info."""
    env.step(a.Type(env.episode.variation.params["word"]))
    env.step(a.Key("ctrl+s"))
    _, reward, terminated, _, info = env.step(a.Submit())
    assert terminated
    return reward, info


def result(env: DesktopEnv) -> dict[str, Any]:
    """What ``result.json`` says."""
    said: dict[str, Any] = json.loads(env.episode.folder.result.read_text())
    return said


def full(*_: object, **__: object) -> None:
    raise OutOfSpace("planted: no room")


def test_a_final_state_is_told_in_the_result(make_env: Callable[..., DesktopEnv]) -> None:
    """Each attempt's state has a name of its own."""
    names = []
    for _ in range(2):
        env = make_env(keep_final_state=True)
        assert solve(env)[0] == 1.0
        assert env.episode.final_state is not None
        names.append(result(env)["final_state"]["key"])
        assert names[-1] == env.episode.final_state.key
        assert env.episode.losses == []
    assert names[0] != names[1]


def test_a_final_state_that_cannot_be_saved_leaves_the_verdict(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome was on disk before; what is lost is told, typed, everywhere."""
    env = make_env(keep_final_state=True)
    before: list[Any] = []

    def broken(key: str) -> None:
        before.append(result(env)["score"])
        raise MachineLost("planted: killed while saving")

    monkeypatch.setattr(env.machine, "snapshot", broken)
    reward, info = solve(env)
    assert (reward, before) == (1.0, [1.0])
    assert info["outcome"]["success"] is True
    assert "error" not in info
    loss = {
        "what": "final_state",
        "error": "MachineLost",
        "message": "planted: killed while saving",
    }
    assert info["losses"] == result(env)["losses"] == [loss]
    assert "lost: final_state" in env.episode.folder.log.read_text()


def test_a_record_that_cannot_be_finished_leaves_the_verdict(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures lost after the grading cost neither reward nor outcome, and the machine is ended."""
    env = make_env()
    machine = env.machine
    assert isinstance(machine, FakeMachine)
    monkeypatch.setattr(Recorder, "finish", full)
    reward, info = solve(env)
    assert reward == 1.0
    assert [loss["what"] for loss in info["losses"]] == ["record"]
    assert result(env)["losses"] == info["losses"]
    assert machine.closed
    assert env.evaluate().score == 1.0


def test_an_unrecorded_step_is_unscored_and_the_last_one_is_judged(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent stopped by our disk is not graded; one that was done is."""
    env = make_env()
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "step", full)
        _, reward, terminated, truncated, info = env.step(a.Move(1, 1))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["outcome"]["kind"], info["outcome"]["phase"]) == ("unscored", "act")
    assert "planted" in info["error"]
    env = make_env()
    env.step(a.Type(env.episode.variation.params["word"]))
    env.step(a.Key("ctrl+s"))
    monkeypatch.setattr(Recorder, "step", full)
    _, reward, terminated, truncated, info = env.step(a.Submit())
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert [loss["what"] for loss in info["losses"]] == ["record"]


def test_a_result_that_cannot_be_written_is_returned(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever called has the verdict, and knows that the folder has not."""
    env = make_env()
    monkeypatch.setattr(RunFolder, "write_result", full)
    reward, info = solve(env)
    assert reward == 1.0
    assert [loss["what"] for loss in info["losses"]] == ["result"]


def test_a_run_shows_what_was_lost_and_stops_at_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row has score and loss; the next attempt is not made."""
    task = on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))
    monkeypatch.setattr(Recorder, "finish", full)
    monkeypatch.setattr("cua_gym.run.local._need_space", full)
    plan = Plan(
        [task], [AgentChoice("worker", agents.Worker)], tmp_path, "r", (0,), 2, {"settle": QUICK}
    )
    running = run_local(plan)
    row = next(running)
    assert (row.outcome.score, row.losses) == (1.0, ("record: planted: no room",))
    assert row.to_dict()["losses"] == ["record: planted: no room"]
    with pytest.raises(OutOfSpace):
        next(running)


FILLED = """
import os, sys
from pathlib import Path
import cua_gym
from cua_gym import actions as a
from cua_gym.errors import OutOfSpace
from cua_gym.machine.settle import Settle
from tests.run.toy import make_suite, on_toy_computer

disk, moment = Path(sys.argv[1]), sys.argv[2]
task = on_toy_computer(make_suite(Path(sys.argv[3])).task("type-word"))

def fill():
    try:
        with (disk / "filler").open("ab", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
    except OSError:
        pass

def fill_wholly():
    fill()
    for number in range(100_000):  # names too
        try:
            (disk / f"f{number}").touch()
        except OSError:
            return

env = cua_gym.make(task, runs=disk / "runs", settle=Settle(0.02, 0.01, 0.5))
try:
    if moment == "before":
        fill_wholly()
    env.reset(seed=0)
    for number in range(3):
        if moment == f"step {number}":
            fill()
        word = env.episode.variation.params["word"]
        action = (a.Type(word), a.Key("ctrl+s"), a.Submit())[number]
        _, reward, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break
except OutOfSpace as error:
    print("raised", error)
else:
    outcome = info["outcome"]
    print(outcome["kind"], outcome["phase"], outcome["score"], reward)
    print(outcome["cause"])
env.close()
print("closed")
"""


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("before", ["raised no room in "]),
        # A line that still fits is kept; then the lack is told by a picture or by the evidence.
        ("step 0", [r"unscored (act|collect) None 0\.0", "OutOfSpace: no room (for|in) "]),
        ("step 1", [r"unscored (act|collect) None 0\.0", "OutOfSpace: no room (for|in) "]),
        # The work was done, but what would show it has no room.
        ("step 2", ["unscored collect None 0.0", "OutOfSpace: no room in "]),
    ],
)
def test_a_really_full_disk(tmp_path: Path, moment: str, said: list[str]) -> None:
    """At every moment of an attempt: typed, at once, never a score that was not reached."""
    disk = tmp_path / "disk"
    disk.mkdir()
    # The pages of a tmpfs are as large as the record's lines and pictures are small.
    mount = f"mount -t tmpfs -o size=1m,nr_inodes=200 none {disk}"
    start = f"{mount} && exec {sys.executable} - {disk} '{moment}' {tmp_path / 'suite'}"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*command, mount], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces here, so no small disk to fill")
    done = subprocess.run(
        [*command, start], input=FILLED, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == "closed"
    assert len(lines) == len(said), lines
    assert all(map(re.match, said, lines)), lines


@pytest.mark.parametrize("moment", ["act", "submit", "judged"])
def test_a_removed_run_folder_is_typed(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Someone tidies up while it runs: unscored if it still acts, else told beside the verdict."""
    threads = set(threading.enumerate())
    env = make_env(max_steps=100)
    folder = env.episode.folder.path
    machine = env.machine
    assert isinstance(machine, FakeMachine)
    env.step(a.Type(env.episode.variation.params["word"]))
    env.step(a.Key("ctrl+s"))
    if moment == "judged":
        judge = Episode._judge

        def and_then_it_goes(episode: Episode) -> Outcome:
            outcome = judge(episode)
            folder.rename(folder.with_name("removed"))  # at once, as no rmtree is
            return outcome

        monkeypatch.setattr(Episode, "_judge", and_then_it_goes)
    else:
        folder.rename(folder.with_name("removed"))
    steps = 0
    truncated = False
    while moment == "act" and not truncated:  # the pictures are written behind the steps
        _, _, _, truncated, info = env.step(a.Move(steps % 9, 1))
        steps += 1
        assert steps < 20
    if moment == "act":
        assert (info["outcome"]["kind"], info["outcome"]["phase"]) == ("unscored", "act")
        assert "RecordLost: the folder" in info["error"]
    else:
        _, reward, _, _, info = env.step(a.Submit())
        assert (reward, info["outcome"]["score"]) == (1.0, 1.0)
    assert {loss["error"] for loss in info["losses"]} == {"RecordLost"}
    assert folder.exists() is (moment == "submit")  # made anew for the evidence
    assert machine.closed
    assert set(threading.enumerate()) <= threads
