"""Promises of the vector of environments, on the computer in memory."""

# ruff: noqa: F811 - fixtures
from __future__ import annotations

import json
import pickle
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from cua_gym import actions as a
from cua_gym.errors import CuaGymError, ImageError, MachineLost, TaskError
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.vector import DesktopVectorEnv
from tests.run.toy import make_suite, on_toy_computer
from tests.vector_toys import QUICK, STILL, Make, Starts, make, task, until  # noqa: F401 - fixtures


def solving(env: DesktopVectorEnv, slot: int) -> list[a.Action]:
    """The actions that solve the toy task in a slot, up to the end."""
    word = env.envs[slot].episode.variation.params["word"]
    return [a.Type(word), a.Key("ctrl+s"), a.Submit()]


def only(env: DesktopVectorEnv, slot: int, action: a.Action) -> list[a.Action]:
    """This in one slot, nothing in the others."""
    return [action if i == slot else STILL for i in range(env.num_envs)]


def test_batches_have_the_shapes_that_the_spaces_say(make: Make):
    """Pictures and pointers are stacked; infos have an array and a mask for each key."""
    env = make()
    observations, infos = env.reset(seed=5)
    assert env.observation_space.contains(observations)
    assert observations["screenshot"].shape == (3, 480, 640, 3)
    assert [i["seed"] for i in map(described, env.envs)] == [5, 6, 7]
    assert len(set(infos["instruction"])) == 3
    assert infos["steps_left"].tolist() == [5, 5, 5]
    observations, rewards, terminations, truncations, infos = env.step([a.Move(9, 7), STILL, STILL])
    assert env.observation_space.contains(observations)
    assert observations["cursor"][0].tolist() == [9, 7]
    assert rewards.dtype == np.float64
    assert rewards.tolist() == [0, 0, 0]
    assert not terminations.any()
    assert not truncations.any()
    assert env.action_space.contains(tuple(env.action_space.sample()))


def described(env: Any) -> dict[str, Any]:
    """What the record says of an environment's episode."""
    return json.loads((env.episode.folder.path / "episode.json").read_text())


def test_each_slot_has_its_own_end(make: Make):
    """One is solved, one gives up, one goes on; verdicts are whole dictionaries."""
    env = make()
    env.reset(seed=[1, 2, None])
    for action in solving(env, 0)[:-1]:
        env.step(only(env, 0, action))
    _, rewards, terminations, truncations, infos = env.step([a.Submit(), a.GiveUp("no"), STILL])
    assert rewards.tolist() == [1, 0, 0]
    assert terminations.tolist() == [True, True, False]
    assert not truncations.any()
    assert infos["_outcome"].tolist() == [True, True, False]
    assert infos["outcome"][0]["success"]
    assert infos["outcome"][1]["score"] == 0
    assert infos["outcome"][2] is None


def test_without_autoreset_the_mask_says_who_begins_anew(make: Make):
    """The others stay as they are; who ended and was not reset is named, and nothing is done."""
    env = make()
    assert env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    env.reset(seed=1)
    env.step(only(env, 2, a.Type("x")))
    *_, terminations, truncations, _ = env.step(only(env, 1, a.Submit()))
    steps = env.envs[0].episode.steps
    with pytest.raises(RuntimeError, match=r"slots \[1\].*reset_mask"):
        env.step([STILL] * 3)
    assert env.envs[0].episode.steps == steps
    before = [e.episode for e in env.envs]
    _, infos = env.reset(options={"reset_mask": terminations | truncations})
    assert [e.episode is old for e, old in zip(env.envs, before, strict=True)] == [
        True, False, True,
    ]  # fmt: skip
    assert infos["_instruction"].tolist() == [False, True, False]
    env.step([STILL] * 3)


def test_next_step_resets_at_the_step_after(make: Make):
    """The end is seen whole; the next action is not done, and pays nothing."""
    env = make(autoreset_mode="NextStep")
    env.reset(seed=1)
    *_, terminations, _, infos = env.step(only(env, 1, a.Submit()))
    assert terminations.tolist() == [False, True, False]
    assert infos["outcome"][1] is not None
    _, rewards, terminations, _, infos = env.step(only(env, 1, a.Type("lost")))
    assert not terminations.any()
    assert rewards[1] == 0
    assert infos["steps_left"].tolist() == [3, 5, 3]
    assert "outcome" not in infos


def test_same_step_keeps_the_end_apart(make: Make):
    """The picture and info of the end beside those of the beginning, also with one batch."""
    env = make(autoreset_mode="SameStep", copy=False)
    first, _ = env.reset(seed=1)
    blank = first["screenshot"][1].copy()
    env.step(only(env, 1, a.Move(11, 13)))
    env.step(only(env, 1, a.Type("word")))
    observations, _, terminations, _, infos = env.step(only(env, 1, a.Submit()))
    assert terminations.tolist() == [False, True, False]
    assert infos["_final_obs"].tolist() == [False, True, False]
    assert infos["final_obs"][1]["cursor"].tolist() == [11, 13]
    assert infos["final_info"]["outcome"][1]["score"] == 0
    assert infos["final_info"]["_outcome"].tolist() == [False, True, False]
    assert infos["steps_left"].tolist() == [2, 5, 2]
    assert (observations["screenshot"][1] == blank).all()
    last = infos["final_obs"][1]["screenshot"].copy()
    env.step([STILL] * 3)
    assert (infos["final_obs"][1]["screenshot"] == last).all()
    infos["final_obs"][1]["screenshot"][:] = 0  # whoever gets it may do with it what he likes


def test_arrays_are_fresh_unless_one_batch_is_asked_for(make: Make):
    """What a replay buffer keeps is not overwritten."""
    env = make(2)
    first, _ = env.reset(seed=1)
    kept = first["cursor"].copy()
    second, *_ = env.step([a.Move(1, 2), a.Move(3, 4)])
    assert not np.shares_memory(first["screenshot"], second["screenshot"])
    assert (first["cursor"] == kept).all()
    again = make(2, copy=False)
    first, _ = again.reset(seed=1)
    second, *_ = again.step([a.Move(1, 2), a.Move(3, 4)])
    assert np.shares_memory(first["screenshot"], second["screenshot"])
    with pytest.raises(ValueError, match="read-only"):
        second["screenshot"][:] = 0


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_lost_machine_is_its_slots_affair(make: Make, mode: AutoresetMode):
    """It truncates, says why, and comes back at the next reset; the others go on."""
    env = make(autoreset_mode=mode)
    env.reset(seed=1)
    env.envs[1].machine.fault = MachineLost("the process is gone")  # type: ignore[attr-defined]
    _, _, terminations, truncations, infos = env.step([a.Type("a")] * 3)
    assert truncations.tolist() == [False, True, False]
    assert not terminations.any()
    end = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert "gone" in end["error"][1]
    assert end["_error"].tolist() == [False, True, False]
    assert end["outcome"][1]["kind"] == "unscored"
    if mode is AutoresetMode.DISABLED:
        env.reset(options={"reset_mask": truncations})
    elif mode is AutoresetMode.NEXT_STEP:
        env.step([STILL] * 3)
    _, _, terminations, truncations, infos = env.step([STILL] * 3)
    assert not (terminations | truncations).any()
    assert "error" not in infos


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_slot_that_gets_no_machine_is_truncated(make: Make, mode: AutoresetMode):
    """A reset has no way to say so but its info; the next step has."""
    env = make(start=Starts(broken={2}), autoreset_mode=mode, warm=0)
    observations, infos = env.reset(seed=1)
    (lost,) = np.flatnonzero(infos["_error"])
    assert "no room" in infos["error"][lost]
    assert not observations["screenshot"][lost].any()
    _, rewards, _, truncations, infos = env.step([STILL] * 3)
    assert truncations.tolist() == [i == lost for i in range(3)]
    assert not rewards.any()
    end = infos["final_info"] if mode is AutoresetMode.SAME_STEP else infos
    assert "no room" in end["error"][lost]
    if mode is AutoresetMode.DISABLED:
        env.reset(options={"reset_mask": truncations})
    elif mode is AutoresetMode.NEXT_STEP:
        env.step([STILL] * 3)
    *_, truncations, _ = env.step([STILL] * 3)
    assert not truncations.any()


@pytest.mark.parametrize("kind", [TaskError, ImageError])
def test_what_would_be_the_same_at_each_attempt_is_raised(make: Make, kind: type[CuaGymError]):
    """A setup that does not work, an image that is not built; it says in which slot."""

    def start(spec: MachineSpec, **_: Any) -> Machine:
        raise kind("the setup does not work")

    env = make(start=start)
    with pytest.raises(kind, match="setup") as caught:
        env.reset()
    assert "slot 0" in caught.value.__notes__[0]


def test_slots_work_side_by_side(make: Make):
    """Resets, and steps beside a reset, wait for each other only at the end."""
    together = threading.Barrier(3, timeout=20)

    def start(spec: MachineSpec, *, prepare: Any, **_: Any) -> Machine:
        together.wait()  # breaks unless all three are here
        machine = FakeMachine(spec)
        prepare(machine)
        return machine

    env = make(start=start, warm=0)
    _, infos = env.reset()
    assert "error" not in infos


def test_different_tasks_in_the_slots(tmp_path: Path):
    """Each has its instruction and its tools; sizes of screens must be one."""
    suite = make_suite(tmp_path / "suite")
    first = on_toy_computer(suite.task("type-word"))
    folder = tmp_path / "suite/tasks/second"
    subprocess.run(["cp", "-r", tmp_path / "suite/tasks/type-word", folder], check=True)
    text = (folder / "task.toml").read_text()
    text = text.replace('"type-word"', '"second"').replace("Type {word}", "Write {word}")
    (folder / "task.toml").write_text(text.replace('"gui"', '"both"'))
    second = on_toy_computer(suite.task("second"))
    env = DesktopVectorEnv(2, [first, second], runs=tmp_path / "runs", settle=QUICK)
    _, infos = env.reset(seed=1)
    assert [text.split()[0] for text in infos["instruction"]] == ["Type", "Write"]
    *_, infos = env.step([a.Shell("true"), a.Shell("true")])
    assert infos["_action_error"].tolist() == [True, False]
    env.close()
    (folder / "task.toml").write_text(text.replace("[640, 480]", "[800, 600]"))
    other = on_toy_computer(suite.task("second"))
    with pytest.raises(ValueError, match="several sizes"):
        DesktopVectorEnv(2, [first, other])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda env: env.step([STILL]), "1 actions for 3"),
        (lambda env: env.reset(seed=[1, 2]), "2 seeds for 3"),
        (lambda env: env.reset(options={"reset_mask": [True] * 3}), "numpy array of bool"),
        (lambda env: env.reset(options={"reset_mask": np.ones(3)}), "numpy array of bool"),
        (lambda env: env.reset(options={"reset_mask": np.zeros(3, bool)}), "one of them true"),
        (lambda env: env.reset(options={"reset_mask": np.ones(2, bool)}), "3 values"),
        (lambda env: env.reset(options={"variations": 1}), "variation"),
        (lambda env: env.set_attr("render_mode", ["a"]), "1 values for 3"),
    ],
)
def test_what_cannot_be_is_refused(make: Make, call: Callable[[Any], Any], message: str):
    """With numbers, and before anything is done in any slot."""
    env = make()
    env.reset(seed=1)
    steps = [e.episode.steps for e in env.envs]
    with pytest.raises((ValueError, TypeError), match=message):
        call(env)
    if "variations" not in message:
        assert [e.episode.steps for e in env.envs] == steps


def test_before_the_first_reset_and_after_the_end(make: Make):
    """It says what to do, in each mode, and does not hang."""
    for mode in AutoresetMode:
        env = make(autoreset_mode=mode)
        with pytest.raises(RuntimeError, match="reset"):
            env.step([STILL] * 3)
        env.reset()
        env.close()
        env.close()
        with pytest.raises(gym.error.ClosedEnvironmentError):
            env.step([STILL] * 3)


def test_calls_and_attributes(make: Make):
    """As the vectors of Gymnasium have them."""
    env = make(render_mode="rgb_array")
    env.reset(seed=1)
    assert [outcome.kind for outcome in env.call("evaluate")] == ["scored"] * 3
    assert [episode.done for episode in env.get_attr("episode")] == [True] * 3
    env.set_attr("mark", [1, 2, 3])
    assert env.call("mark") == (1, 2, 3)
    frames = env.render()
    assert frames is not None
    assert [frame.shape for frame in frames] == [(480, 640, 3)] * 3


def test_gymnasiums_vector_wrappers(make: Make):
    """Statistics of episodes, and infos as a list."""
    env = DictInfoToList(RecordEpisodeStatistics(make(autoreset_mode="SameStep")))
    env.reset(seed=1)
    *_, infos = env.step((a.Submit(), STILL, STILL))
    assert infos[0]["episode"]["l"] == 1
    assert infos[0]["final_info"]["outcome"]["score"] == 0
    assert "final_info" not in infos[1]


def test_its_spec_can_be_sent_elsewhere(make: Make):
    """It holds what makes the vector, and no living thing."""
    env = make()
    spec = pickle.loads(pickle.dumps(env.spec))  # noqa: S301 - our own
    again = gym.make_vec(spec)
    assert again.num_envs == 3
    again.close()


@pytest.mark.parametrize("size", [(320, 240), (1, 1), (700, 500)], ids=str)
def test_another_resolution_is_its_slots_affair(make: Make, size: tuple[int, int]):
    """An agent may change it: the picture is cut or black is added, and ``info`` says so."""
    env = make(max_steps=9, warm=0)
    before, _ = env.reset(seed=1)
    machine = env.envs[1].machine
    assert isinstance(machine, FakeMachine)
    machine.size = size
    observations, *_, truncations, infos = env.step([STILL] * 3)
    assert not truncations.any()
    assert observations in env.observation_space
    assert (observations["screenshot"][0] == before["screenshot"][0]).all()
    width, height = size
    assert not observations["screenshot"][1, height:].any()
    assert not observations["screenshot"][1, :, width:].any()
    assert infos["_screen"].tolist() == [False, True, False]
    assert infos["screen"][1] == size


def test_seeds_of_any_integers_and_nothing_else(make: Make):
    """Of numpy's too; a wrong one in a list resets nothing."""
    env = make(2)
    _, named = env.reset(seed=[3, 4])
    for seeds in (np.arange(3, 5), [3, np.int64(4)], np.int64(3)):
        _, infos = env.reset(seed=seeds)
        assert (infos["instruction"] == named["instruction"]).all()
    folders = [one.episode.folder for one in env.envs]
    for wrong in ([1, -1], [1, 0.5], -1):
        with pytest.raises((ValueError, TypeError)):
            env.reset(seed=wrong)
    assert [one.episode.folder for one in env.envs] == folders


def test_an_episode_that_was_ended_elsewhere_is_over(make: Make):
    """Nothing is done in the others, and it comes back as others do."""
    env = make(2)
    env.reset(seed=1)
    env.envs[1].evaluate()
    with pytest.raises(RuntimeError, match=r"\[1\]"):
        env.step([STILL] * 2)
    assert env.envs[0].episode.steps == 0
    env.reset(options={"reset_mask": np.array([False, True])})
    env.step([STILL] * 2)
    again = make(2, autoreset_mode="NextStep")
    again.reset(seed=1)
    again.envs[1].evaluate()
    *_, infos = again.step([STILL] * 2)
    assert infos["steps_left"].tolist() == [4, 5]


def test_a_reset_that_failed_leaves_its_slot_over(make: Make):
    """Whoever goes on without it is told, before anything is done."""
    starts = Starts()
    env = make(2, warm=0, start=starts)
    env.reset(seed=1)

    def broken(*_: Any, **__: Any) -> Machine:
        raise TaskError("planted")

    env.envs[1]._start = broken
    with pytest.raises(TaskError, match="planted"):
        env.reset(options={"reset_mask": np.array([False, True])})
    with pytest.raises(RuntimeError, match=r"\[1\]"):
        env.step([STILL] * 2)
    assert env.envs[0].episode.steps == 0


def test_what_the_host_refuses_is_its_slots_affair(make: Make):
    """A start that fails by an OSError gives no machine, as other faults of a start."""

    def refused(spec: MachineSpec, *, prepare: Any, **_: Any) -> Machine:
        raise OSError(24, "Too many open files")

    env = make(2, warm=0)
    env.reset(seed=1)
    env.envs[1]._start = refused
    _, infos = env.reset(options={"reset_mask": np.array([False, True])})
    assert "Too many open files" in infos["error"][1]
    *_, truncations, _ = env.step([STILL] * 2)
    assert truncations.tolist() == [False, True]
