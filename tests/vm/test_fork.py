"""Branches of a running desktop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cua_gym
from cua_gym import actions as a
from cua_gym.cache import cache_root
from cua_gym.env import DesktopEnv
from cua_gym.machine.qemu.states import StateStore
from cua_gym.record.replay import Replay
from tests.vm.conftest import rest, until

pytestmark = pytest.mark.vm


def still(env: DesktopEnv) -> np.ndarray:
    """The screen when what was typed has come and nothing follows: busy neighbours slow it down."""
    for _ in range(3):
        rest(env.machine)
    return env.machine.screen.grab().rgb


@pytest.mark.timeout(900)
def test_a_running_desktop_in_copies(tmp_path: Path):
    """Screen, clipboard, files and processes are the same; names and numbers are not."""
    env = cua_gym.make("write-many-scripts", runs=tmp_path)
    env.reset(seed=1)
    env.step(a.Type("the same beginning, "))
    env.machine.shell.run(
        "echo kept > ~/note; printf copied | xclip -selection clipboard; sleep 1000 &"
    )
    shown = still(env)
    children = env.fork(2)
    try:
        folder = str(env.episode.folder.path)
        states = StateStore(cache_root() / "states", 1 << 62).list()
        assert not [info.key for _, info, *_ in states if folder in info.key]
        for child in children:
            assert np.array_equal(child.machine.screen.grab().rgb, shown)
            said = child.machine.shell.run(
                "cat ~/note; xclip -selection clipboard -o; pgrep -c -x sleep"
            ).text
            assert said.replace("\n", "") == "keptcopied1"
        everybody = [env, *children]
        ids = {one.machine.shell.run("cat /etc/machine-id").text for one in everybody}
        numbers = {one.machine.shell.run("od -An -tx1 -N8 /dev/urandom").text for one in everybody}
        assert len(ids) == len(numbers) == 3
        for number, one in enumerate(everybody):
            one.step(a.Type(f"ending {number}"))
        pictures = [still(one) for one in everybody]
        assert not np.array_equal(pictures[0], pictures[1])
        assert not np.array_equal(pictures[1], pictures[2])
        # Files of one are not there for the others.
        children[0].machine.shell.run("rm ~/note")
        assert children[1].machine.shell.run("cat ~/note").text == "kept\n"
        assert [one.evaluate().kind for one in everybody] == ["scored"] * 3
        replay = Replay(children[1].episode.folder)
        assert [step.index for step in replay.steps()] == [0, 1, 2]
        assert replay.changed_frames() == []
    finally:
        for one in (env, *children):
            one.close()


@pytest.mark.timeout(900)
def test_back_and_forth(tmp_path: Path):
    """A moment can be come back to, more than once; what was done since is undone."""
    env = cua_gym.make("write-many-scripts", runs=tmp_path)
    env.reset(seed=1)
    env.step(a.Type("root of the tree"))
    before = still(env)
    moment = env.save()
    for text in (" left", " right"):
        *_, info = env.step(a.Type(text))
        assert "action_error" not in info
        until(lambda: not np.array_equal(env.machine.screen.grab().rgb, before), "the text")
        observation, info = env.restore(moment)
        assert "error" not in info
        assert np.array_equal(observation["screenshot"], before)
    assert env.episode.steps == 1
    env.machine.discard(moment.state)
    assert env.evaluate().kind == "scored"
    env.close()
