"""Promises of the environment and the episode, on the computer in memory."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import cua_gym
from cua_gym import actions as a
from cua_gym.env import DesktopEnv
from cua_gym.errors import GradingError, MachineError, MachineLost, TaskError
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine
from cua_gym.record.lines import LineWriter
from cua_gym.record.replay import Replay
from cua_gym.task import Task
from tests.run.toy import make_suite, on_toy_computer

QUICK = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))


@pytest.fixture
def make_env(task: Task, tmp_path: Path) -> Iterator[Callable[..., DesktopEnv]]:
    made: list[DesktopEnv] = []

    def make(**options: Any) -> DesktopEnv:
        env = cua_gym.make(task, runs=tmp_path / "runs", settle=QUICK, **options)
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


def solve(env: DesktopEnv) -> None:
    """Do the toy task, without submitting."""
    env.step(a.Type(env.episode.variation.params["word"]))
    env.step(a.Key("ctrl+s"))


def test_the_registered_env_passes_gymnasiums_checker(task: Task, tmp_path: Path) -> None:
    """`gymnasium.make` gives an env that `check_env` accepts, and it pickles by its spec."""
    env = gym.make("cua_gym/Desktop-v0", task=task, runs=tmp_path, settle=QUICK)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()
    assert pickle.dumps(gym.make("cua_gym/Desktop-v0", task=task).spec)


def test_nothing_starts_before_reset(task: Task) -> None:
    """Making an env allocates no machine and no folder."""
    env = cua_gym.make(task)
    with pytest.raises(RuntimeError, match="reset"):
        _ = env.machine
    with pytest.raises(RuntimeError, match="reset"):
        env.step(a.Wait(0))
    env.close()


@pytest.mark.parametrize(
    "options",
    [{"max_steps": 0}, {"max_steps": 1.5}, {"max_seconds": 0}, {"max_seconds": float("nan")}],
)
def test_impossible_limits_are_refused_at_once(
    make_env: Callable[..., DesktopEnv], options: dict[str, Any]
) -> None:
    """Not by an episode that ends at its first step."""
    with pytest.raises((ValueError, TypeError)):
        make_env(**options)


@pytest.mark.parametrize("options", [{"variation": -1}, {"variation": 1.9}, {"variaton": 1}])
def test_impossible_reset_options_are_refused(
    make_env: Callable[..., DesktopEnv], options: dict[str, Any]
) -> None:
    """Nothing is started, nothing is rounded."""
    with pytest.raises((ValueError, TypeError)):
        make_env().reset(options=options)


def test_submit_scores_and_pays_the_score(make_env: Callable[..., DesktopEnv]) -> None:
    """The last step's reward is the score; info and result.json have the outcome."""
    env = make_env()
    _, info = env.reset(seed=3)
    assert "Ctrl+S" in info["instruction"]
    solve(env)
    _, reward, terminated, truncated, info = env.step(a.Submit())
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["outcome"]["success"] is True
    result = json.loads(env.episode.folder.result.read_text())
    assert (result["kind"], result["score"], result["seed"]) == ("scored", 1.0, 3)
    assert env.evaluate().score == 1.0


@pytest.mark.parametrize("action", [a.Submit(), a.GiveUp("too hard")])
def test_doing_nothing_scores_zero(make_env: Callable[..., DesktopEnv], action: a.Action) -> None:
    """Submitting or giving up at once is a scored zero, whatever the agent claims."""
    env = make_env()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated) == (0.0, True)
    assert (info["outcome"]["kind"], info["outcome"]["success"]) == ("scored", False)


def test_give_up_after_solving_still_scores_zero(make_env: Callable[..., DesktopEnv]) -> None:
    """On a feasible task giving up is never a success."""
    env = make_env()
    env.reset(seed=0)
    solve(env)
    assert env.step(a.GiveUp("I lost heart"))[1] == 0.0


def test_evaluate_any_time_and_then_only_reset(make_env: Callable[..., DesktopEnv]) -> None:
    """`evaluate` ends the episode; a step after it is an error, a reset is not."""
    env = make_env()
    env.reset(seed=0)
    solve(env)
    assert env.evaluate().success
    assert env.evaluate().success
    with pytest.raises(RuntimeError, match=r"reset\(\)"):
        env.step(a.Wait(0))
    env.reset(seed=0)
    assert env.episode.steps == 0


def test_reset_clears_the_step_counter(make_env: Callable[..., DesktopEnv]) -> None:
    """Steps, limits and rewards start afresh with every episode."""
    env = make_env(max_steps=4)
    env.reset(seed=0)
    for _ in range(3):
        assert not env.step(a.Move(1, 1))[3]
    env.reset(seed=0)
    _, _, _, truncated, info = env.step(a.Move(2, 2))
    assert not truncated
    assert info["steps_left"] == 3


def test_step_limit_truncates_and_grades(make_env: Callable[..., DesktopEnv]) -> None:
    """Work done at the limit counts."""
    env = make_env(max_steps=2)
    env.reset(seed=0)
    env.step(a.Type(env.episode.variation.params["word"]))
    _, reward, terminated, truncated, info = env.step(a.Key("ctrl+s"))
    assert (reward, terminated, truncated) == (1.0, False, True)
    assert info["limit"] == "steps"


def test_time_limit_truncates(make_env: Callable[..., DesktopEnv]) -> None:
    """The deadline ends the episode and info has told the time left."""
    env = make_env(max_seconds=2.0)
    _, info = env.reset(seed=0)
    assert 0 < info["seconds_left"] <= 2.0
    _, _, terminated, truncated, info = env.step(a.Wait(5))
    assert (terminated, truncated, info["limit"]) == (False, True, "seconds")


def test_impossible_actions_change_nothing_and_go_on(make_env: Callable[..., DesktopEnv]) -> None:
    """The agent's mistakes come back as text; the episode goes on."""
    env = make_env()
    env.reset(seed=0)
    machine = env.machine
    assert isinstance(machine, FakeMachine)
    for action, said in [
        (a.Click(9999, 1), "off the"),
        (a.Key("nokey"), "no key is called"),
        (a.Shell("ls"), "Shell is not allowed"),
        ("click", "no action"),
    ]:
        machine.events.clear()
        _, reward, terminated, truncated, info = env.step(action)  # type: ignore[arg-type]
        assert said in info["action_error"]
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert machine.events == []


def test_seed_chooses_the_variation(make_env: Callable[..., DesktopEnv]) -> None:
    """The same seed gives the same task again, another seed another one."""
    env = make_env()
    words = [env.reset(seed=seed)[1]["instruction"] for seed in (1, 1, 2)]
    assert words[0] == words[1] != words[2]
    env.reset(seed=5)
    unseeded = [env.reset()[1]["instruction"] for _ in range(2)]
    assert unseeded[0] != unseeded[1]
    assert env.reset(options={"variation": 1})[1]["instruction"] == words[0]


def test_observations_are_fresh_and_in_the_space(make_env: Callable[..., DesktopEnv]) -> None:
    """Arrays belong to the caller; the frame shows the effect of the action."""
    env = make_env(render_mode="rgb_array")
    first, _ = env.reset(seed=0)
    second, *_ = env.step(a.Click(150, 120))
    assert first in env.observation_space
    assert second in env.observation_space
    assert not np.shares_memory(first["screenshot"], second["screenshot"])
    assert tuple(first["screenshot"][110, 110]) == (200, 0, 0)
    assert tuple(second["screenshot"][110, 110]) == (0, 160, 0)
    assert tuple(second["cursor"]) == (150, 120)
    assert np.array_equal(env.render(), second["screenshot"])


def test_keys_do_not_stay_down_after_evaluate(make_env: Callable[..., DesktopEnv]) -> None:
    """The freeze lets go of what KeyDown and MouseDown held."""
    env = make_env()
    env.reset(seed=0)
    env.step(a.KeyDown("shift"))
    env.step(a.MouseDown())
    machine = env.machine
    assert isinstance(machine, FakeMachine)
    env.evaluate()
    assert machine.held == (frozenset(), 0)


def test_progress_pays_differences(make_env: Callable[..., DesktopEnv]) -> None:
    """Rewards of an episode sum to its score."""
    env = make_env(reward="progress")
    env.reset(seed=0)
    word = env.episode.variation.params["word"]
    rewards = [
        env.step(action)[1]
        for action in (a.Type(word[:3]), a.Key("ctrl+s"), a.Type(word[3:]), a.Key("ctrl+s"))
    ]
    assert rewards == [0.0, 0.5, 0.0, 0.5]
    assert env.step(a.Submit())[1] == 0.0


def test_a_failed_look_at_progress_leaves_the_machine_running(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence that cannot be taken in the middle thaws the machine, and the episode goes on."""
    env = make_env(reward="progress")
    env.reset(seed=0)
    thawed: list[bool] = []
    monkeypatch.setattr(env.machine, "thaw", lambda: thawed.append(True))

    def broken(*_: object) -> None:
        raise GradingError("planted: half a file")

    with monkeypatch.context() as patch:
        patch.setattr("cua_gym.episode.collect", broken)
        _, reward, terminated, truncated, info = env.step(a.Move(1, 1))
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert "planted" in info["progress_error"]
    assert thawed == [True]


def test_a_machine_lost_while_looking_at_progress_truncates(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the episode unscored, as in any step, instead of raising."""
    env = make_env(reward="progress")
    env.reset(seed=0)

    def gone() -> None:
        raise MachineLost("planted: gone at the freeze")

    monkeypatch.setattr(env.machine, "freeze", gone)
    _, reward, terminated, truncated, info = env.step(a.Move(1, 1))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["outcome"]["kind"] == "unscored"
    assert "planted" in info["error"]


def test_the_record_has_every_step(make_env: Callable[..., DesktopEnv]) -> None:
    """Frames are steps + 1, invalid actions among them, and the folder is complete."""
    env = make_env()
    env.reset(seed=0)
    solve(env)
    env.step(a.Click(9999, 1))
    env.step(a.Submit("done"))
    folder = env.episode.folder
    env.close()
    lines = list(Replay(folder).steps())
    assert [line.index for line in lines] == [0, 1, 2, 3, 4]
    assert len(list(folder.frames.glob("*.png"))) == 5
    for path in (folder.episode, folder.video, folder.result, folder.evidence):
        assert path.exists()
    submission = json.loads(folder.result.read_text())["submission"]
    assert submission == {"kind": "submit", "answer": "done", "reason": None}


def test_every_so_many_episodes_are_filmed(make_env: Callable[..., DesktopEnv]) -> None:
    """Of the others lines, evidence and outcome are recorded, and no picture."""
    env = make_env(film_every=2)
    filmed = []
    for seed in range(3):
        env.reset(seed=seed)
        solve(env)
        assert env.step(a.Submit())[1] == 1.0
        folder = env.episode.folder
        replay = Replay(folder)
        steps = list(replay.steps())
        assert [step.index for step in steps] == [0, 1, 2, 3]
        assert replay.result is not None
        assert replay.changed_frames() == []
        filmed.append(folder.video.exists())
        assert len(list(folder.frames.iterdir())) == (4 if filmed[-1] else 0)
        if not filmed[-1]:
            assert {step.frame for step in steps} == {None}
            with pytest.raises(FileNotFoundError, match="not filmed"):
                steps[0].pixels()
    assert filmed == [True, False, True]
    never = make_env(film_every=0)
    never.reset(seed=0)
    assert never.evaluate().score == 0.0
    assert not never.episode.folder.video.exists()
    late = make_env(film_every=2, start=Failing("boot"))
    with pytest.raises(MachineError):
        late.reset()
    late._start = start_machine
    late.reset(seed=1)
    assert late.episode.folder.video.exists()  # what never began is not counted
    with pytest.raises(ValueError, match="film_every"):
        make_env(film_every=-1)


def test_a_screenshot_that_is_not_copied_cannot_be_written(
    make_env: Callable[..., DesktopEnv],
) -> None:
    """What is recorded and shown later stays what it was."""
    observation, _ = make_env(copy=False).reset(seed=0)
    with pytest.raises(ValueError, match="read-only"):
        observation["screenshot"][0, 0] = 0


class Failing:
    """Starts toy computers that fail at a given moment."""

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def __call__(self, spec: MachineSpec, **options: Any) -> FakeMachine:
        if self.phase == "boot":
            raise MachineError("planted: no boot")
        machine = FakeMachine(spec)
        if self.phase == "setup":
            with machine:  # as every starter of machines does
                options["prepare"](machine)
                raise TaskError("planted: a setup step failed")
        if self.phase == "collect":
            machine.freeze = self._broken  # type: ignore[method-assign]
        return machine

    def _broken(self) -> None:
        raise MachineLost("planted: gone at the freeze")


@pytest.mark.parametrize(
    ("phase", "reason", "error"), [("boot", "machine", MachineError), ("setup", "setup", TaskError)]
)
def test_a_fault_before_acting_is_unscored(
    make_env: Callable[..., DesktopEnv], phase: str, reason: str, error: type[Exception]
) -> None:
    """A reset that fails raises, and the outcome says phase and cause, never 0."""
    env = make_env(start=Failing(phase))
    with pytest.raises(error, match="planted"):
        env.reset(seed=0)
    outcome = env.evaluate()
    assert (outcome.kind, outcome.score, outcome.phase) == ("unscored", None, phase)
    assert outcome.reason == reason
    assert "planted" in str(outcome.cause)
    assert json.loads(env.episode.folder.result.read_text())["kind"] == "unscored"


def test_what_the_host_refuses_is_unscored(
    make_env: Callable[..., DesktopEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken disk under the record, too many open files at a start."""
    env = make_env()
    env.reset(seed=0)

    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(LineWriter, "append", broken)
        _, reward, _, truncated, info = env.step(a.Wait(0))
    assert truncated
    assert reward == 0.0
    assert info["outcome"]["kind"] == "unscored"
    assert "Input/output error" in info["error"]
    unready = make_env(start=broken)
    with pytest.raises(MachineError, match="Input/output error"):
        unready.reset()
    assert unready.episode.outcome is not None
    assert unready.episode.outcome.kind == "unscored"


def test_a_lost_machine_truncates_and_is_unscored(make_env: Callable[..., DesktopEnv]) -> None:
    """A fault in a step ends the episode with the last good frame and an error."""
    env = make_env()
    first, _ = env.reset(seed=0)
    machine = env.machine
    assert isinstance(machine, FakeMachine)
    machine.fault = MachineLost("planted: QEMU was killed")
    observation, reward, terminated, truncated, info = env.step(a.Click(150, 120))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "planted" in info["error"]
    assert info["outcome"]["phase"] == "act"
    assert info["outcome"]["score"] is None
    assert np.array_equal(observation["screenshot"], first["screenshot"])
    env.reset(seed=0)


def test_a_fault_while_collecting_is_unscored(make_env: Callable[..., DesktopEnv]) -> None:
    """Work that cannot be looked at is not a zero."""
    env = make_env(start=Failing("collect"))
    env.reset(seed=0)
    solve(env)
    _, reward, _, truncated, info = env.step(a.Submit())
    assert (reward, truncated) == (0.0, True)
    assert (info["outcome"]["kind"], info["outcome"]["phase"]) == ("unscored", "collect")
    assert "planted" in info["error"]


def test_a_broken_grader_is_unscored(
    make_env: Callable[..., DesktopEnv], task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grader that fails is the grader's fault."""

    def broken(*_: object) -> None:
        raise GradingError("planted: the check raised")

    env = make_env()
    env.reset(seed=0)
    monkeypatch.setattr("cua_gym.episode.grade", broken)
    outcome = env.evaluate()
    assert (outcome.kind, outcome.reason, outcome.phase) == ("unscored", "grader", "grade")
