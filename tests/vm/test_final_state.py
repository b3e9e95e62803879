"""What an agent left can be opened later."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cua_gym
from cua_gym import Submit, Type
from cua_gym.machine.start import start_machine
from cua_gym.record.replay import Replay
from tests.vm.conftest import rest

pytestmark = pytest.mark.vm


def test_a_kept_machine_is_the_one_that_was_left(tmp_path: Path) -> None:
    """A machine restored from the record shows the last frame, and its programs go on."""
    env = cua_gym.make("write-many-scripts", runs=tmp_path, keep_final_state=True)
    env.reset(seed=0)
    env.step(Type("left by the agent"))
    _, reward, terminated, _, info = env.step(Submit())
    assert (reward, terminated) == (0.0, True)
    assert "losses" not in info, info["losses"]
    folder = env.episode.folder
    last = list(Replay(folder).steps())[-1]
    result = json.loads(folder.result.read_text())
    assert (result["kind"], result["losses"]) == ("scored", [])
    state = Replay(folder).final_state
    assert state is not None
    with start_machine(state.spec) as machine:
        machine.restore(state)
        changed = (machine.screen.grab().rgb != last.pixels()).any(axis=2).sum()
        assert changed <= 32 * 32, "more than the pointer differs"
        before = machine.screen.grab().rgb
        machine.input.text(", and by whoever opened it")
        rest(machine)
        assert not np.array_equal(before, machine.screen.grab().rgb)
        machine.close()
    assert state.folder is not None
    assert (state.folder / "state.json").exists()
