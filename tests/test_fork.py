"""Branches of an episode, on the computer in memory: copies at a step, and ways back to one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cua_gym
from cua_gym import actions as a
from cua_gym.env import DesktopEnv
from cua_gym.errors import GradingError, MachineError, OutOfSpace, StateMismatch
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.machine.start import start_machine
from cua_gym.record.replay import Replay
from cua_gym.steps import EpisodeOver
from cua_gym.task import Task
from tests.run.toy import make_suite, on_toy_computer

QUICK = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
Make = Callable[..., DesktopEnv]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))


@pytest.fixture
def make(task: Task, tmp_path: Path) -> Iterator[Make]:
    made: list[DesktopEnv] = []

    def make(**options: Any) -> DesktopEnv:
        env = cua_gym.make(task, runs=tmp_path / "runs", settle=QUICK, **options)
        made.append(env)
        return env

    yield make
    for env in made:
        env.close()


def half_way(env: DesktopEnv) -> str:
    """Type the first half of the word; the other half."""
    env.reset(seed=3)
    word: str = env.episode.variation.params["word"]
    env.step(a.Type(word[: len(word) // 2]))
    return word[len(word) // 2 :]


def test_children_go_on_each_in_its_own_way(make: Make):
    """One finishes the word, one spoils its end, one gives up; the parent notices nothing."""
    env = make()
    rest = half_way(env)
    right, wrong, third = env.fork(3)
    assert len({id(child.machine) for child in (env, right, wrong, third)}) == 4
    right.step(a.Type(rest))
    wrong.step(a.Type("x"))
    for child in (right, wrong):
        child.step(a.Key("ctrl+s"))
    rewards = [child.step(a.Submit())[1] for child in (right, wrong)]
    assert rewards == [1.0, 0.5]
    assert third.step(a.GiveUp("no"))[2]
    assert not env.episode.done
    env.step(a.Type(rest))
    env.step(a.Key("ctrl+s"))
    assert env.step(a.Submit())[1] == 1.0
    for child in (right, wrong, third):
        child.close()


def test_a_child_is_a_whole_episode(make: Make):
    """Limits count on from the parent's steps; the record begins with them and says whence."""
    env = make()
    half_way(env)
    env.step(a.Move(40, 50))
    (child,) = env.fork(1)
    _, _, _, _, info = child.step(a.Move(60, 70))
    assert info["steps_left"] == 5 - 3
    assert info["seconds_left"] < 60
    child.step(a.Submit())
    replay = Replay(child.episode.folder)
    steps = list(replay.steps())
    assert [step.index for step in steps] == [0, 1, 2, 3, 4]
    assert [step.action["type"] for step in steps if step.action] == [
        "type", "move", "move", "submit",
    ]  # fmt: skip
    elapsed = [step.elapsed_s for step in steps]
    assert elapsed == sorted(elapsed)
    own = Replay(env.episode.folder)
    for mine, theirs in zip(own.steps(), steps, strict=False):
        assert (mine.pixels() == theirs.pixels()).all()
    assert replay.episode["parent"] == {"attempt": own.folder.path.name, "step": 2}
    assert replay.changed_frames() == []
    assert replay.folder.video.stat().st_size > 0
    assert replay.result is not None
    assert replay.result["steps"] == 4
    assert "parent" not in own.episode


def test_a_child_of_what_is_not_filmed_is_not_filmed(make: Make):
    """Its record has the parent's lines all the same."""
    env = make(film_every=0)
    half_way(env)
    (child,) = env.fork(1)
    child.step(a.Move(60, 70))
    replay = Replay(child.episode.folder)
    assert [step.index for step in replay.steps()] == [0, 1, 2]
    child.close()
    assert list(replay.folder.frames.iterdir()) == []
    assert not replay.folder.video.exists()


def test_a_child_records_what_it_shows(make: Make):
    """Also where its first picture is not its parent's last one."""
    env = make(max_steps=9)
    half_way(env)
    env.step(a.Move(300, 300))
    (child,) = env.fork(1)
    machine = child.machine
    assert isinstance(machine, FakeMachine)
    observation, *_ = child.step(a.Wait(0))
    child.close()
    *_, last = Replay(child.episode.folder).steps()
    assert (last.pixels() == observation["screenshot"]).all()


def test_a_fork_that_cannot_be_leaves_no_state(make: Make, monkeypatch: pytest.MonkeyPatch):
    """Neither for a wrong number nor where there is no room for the records."""
    env = make()
    half_way(env)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least one"):
            env.fork(wrong)
    with pytest.raises(TypeError):
        env.fork(1.5)  # type: ignore[arg-type]
    discarded: list[Any] = []
    machine = env.machine
    monkeypatch.setattr(machine, "discard", discarded.append)

    def full(_: Any) -> None:
        raise OutOfSpace("planted")

    monkeypatch.setattr(type(env.episode.folder), "sibling", full)
    with pytest.raises(OutOfSpace):
        env.fork(2)
    assert len(discarded) == 1


def test_the_picture_is_the_same_at_first(make: Make):
    """What the children show is what the parent showed."""
    env = make(render_mode="rgb_array")
    half_way(env)
    children = env.fork(2)
    for child in children:
        assert np.array_equal(child.machine.screen.grab().rgb, env.machine.screen.grab().rgb)
        assert np.array_equal(child.render(), env.render())
        child.close()


def test_children_of_children_and_resets(make: Make):
    """A child can be forked, and be reset to an episode of its own."""
    env = make()
    rest = half_way(env)
    (child,) = env.fork(1)
    child.step(a.Type(rest))
    (grandchild,) = child.fork(1)
    grandchild.step(a.Key("ctrl+s"))
    assert grandchild.step(a.Submit())[1] == 1.0
    assert [s.index for s in Replay(grandchild.episode.folder).steps()] == [0, 1, 2, 3, 4]
    child.reset(seed=5)
    assert child.episode.steps == 0
    assert Replay(child.episode.folder).episode["seed"] == 5
    assert not env.episode.done
    for one in (child, grandchild):
        one.close()


def test_back_to_a_moment(make: Make):
    """Machine, steps and time are as they were; the record tells of it."""
    env = make()
    rest = half_way(env)
    moment = env.save()
    env.step(a.Type("spoilt"))
    env.step(a.Key("ctrl+s"))
    assert env.episode.steps == 3
    observation, info = env.restore(moment)
    assert info["restored"] == 1
    assert info["steps_left"] == 4
    assert env.observation_space.contains(observation)
    env.step(a.Type(rest))
    env.step(a.Key("ctrl+s"))
    assert env.step(a.Submit())[1] == 1.0
    lines = [json.loads(text) for text in env.episode.folder.traj.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(8))
    assert [line["info"].get("restored") for line in lines] == [None] * 4 + [1] + [None] * 3


def test_progress_is_paid_from_where_it_came_back(make: Make):
    """What was earned since the moment is earned again."""
    env = make(reward="progress")
    rest = half_way(env)
    moment = env.save()
    for _ in range(2):
        env.step(a.Type(rest))
        assert env.step(a.Key("ctrl+s"))[1] == 1.0
        env.restore(moment)


def test_a_moment_of_another_episode_or_of_none(make: Make):
    """It says what to do instead."""
    env, other = make(), make()
    half_way(env)
    moment = env.save()
    half_way(other)
    with pytest.raises(ValueError, match="fork"):
        other.restore(moment)
    env.step(a.Submit())
    for late in (env.save, lambda: env.restore(moment), lambda: env.fork(2)):
        with pytest.raises(EpisodeOver):
            late()
    with pytest.raises(RuntimeError, match="reset"):
        make().fork(1)


def test_a_discarded_state_is_gone(make: Make):
    """To go back to it is a typed error, and unscored: the machine is not what it should be."""
    env = make()
    half_way(env)
    moment = env.save()
    env.machine.discard(moment.state)
    *_, info = env.episode, env.restore(moment)[1]
    assert "StateMismatch" in info["error"]
    with pytest.raises(StateMismatch):
        start_machine(env.task.spec, state=moment.state)


def test_a_copy_that_does_not_start_takes_the_others_with_it(make: Make):
    """The parent goes on; nothing of the failed fork stays."""
    made: list[FakeMachine] = []
    numbers = itertools.count()

    def start(spec: MachineSpec, *, prepare: Any = None, state: Any = None, **_: Any) -> Machine:
        if next(numbers) == 3:
            raise MachineError("the host has no room")
        made.append(machine := FakeMachine(spec))
        if state is not None:
            machine.restore(state)
        else:
            prepare(machine)
        return machine

    env = make(start=start)
    half_way(env)
    with pytest.raises(MachineError, match="no room"):
        env.fork(3)
    assert [machine.closed for machine in made] == [False, True, True]
    _, _, _, truncated, info = env.step(a.Move(1, 1))
    assert not truncated
    assert "error" not in info


def test_what_cannot_save_programs_is_not_saved(make: Make, monkeypatch: pytest.MonkeyPatch):
    """Saving and forking are refused, and a final state is a loss, not a wrong desktop."""
    monkeypatch.setattr(FakeMachine, "saves_programs", False)
    env = make(keep_final_state=True)
    half_way(env)
    with pytest.raises(MachineError, match="saves files, not what runs"):
        env.save()
    with pytest.raises(MachineError, match="backend 'qemu'"):
        env.fork(2)
    assert env.evaluate().score is not None
    assert [loss.what for loss in env.episode.losses] == ["final_state"]


def test_a_way_back_that_fails_ends_the_episode(make: Make):
    """With an outcome, and the machine given back, as a step that fails."""
    env = make()
    half_way(env)
    moment = env.save()
    machine = env.machine
    machine.discard(moment.state)
    _, info = env.restore(moment)
    assert info["error"]
    assert info["outcome"]["kind"] == "unscored"
    assert isinstance(machine, FakeMachine)
    assert machine.closed


def test_progress_that_cannot_be_told_is_said(make: Make, monkeypatch: pytest.MonkeyPatch):
    """At the start and after a way back, as after a step."""

    def broken(*_: Any) -> None:
        raise GradingError("half a file")

    env = make(reward="progress")
    half_way(env)
    moment = env.save()
    monkeypatch.setattr("cua_gym.episode.collect", broken)
    assert env.restore(moment)[1]["progress_error"] == "half a file"
    assert env.reset(seed=1)[1]["progress_error"] == "half a file"
    assert not env.episode.done
