"""Best of n by forks, on the computer in memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cua_gym
from cua_gym import Action, Key, Submit, Type
from cua_gym.machine.settle import Settle
from cua_gym.task import find_task
from examples.best_of_n import TASK, best_of_n, typist
from tests.run.toy import make_suite, on_toy_computer


def typing(instruction: str, done: Sequence[Action], _: Any, rng: random.Random) -> Action:
    """A word in two halves; the second may be wrong."""
    word = instruction.split()[1]
    rest = word[4:] if rng.random() < 0.5 else "x"
    return [Type(word[:4]), Type(rest), Key("ctrl+s"), Submit()][len(done)]


def test_the_best_comes_first(tmp_path: Path):
    """What came before the fork is shared; each goes on with its own draws, and is graded."""
    task = on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))
    settle = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
    env = cua_gym.make(task, runs=tmp_path / "runs", settle=settle)
    told: list[str] = []
    branches = best_of_n(env, typing, n=4, at=1, seed=3, tell=told.append)
    assert [branch.score for branch in branches] == [1.0, 0.5, 0.5, 0.5]
    assert len({branch.actions[0] for branch in branches}) == 1
    assert len({branch.record for branch in branches}) == 4
    assert "forking into 4" in told
    with pytest.raises(RuntimeError, match=r"over at step 4: .*fork before"):
        best_of_n(env, typing, n=2, at=9, seed=3)
    env.close()


def test_the_typist_knows_the_task():
    """Without slips it types the note of the bundled task, saves it and submits."""
    variation = find_task(TASK).variation(5)
    done: list[Action] = []
    while Submit() not in done:
        done.append(typist(variation.instruction, done, None, random.Random(0), slip=0.0))
    note = "".join(action.text for action in done[:4] if isinstance(action, Type))
    params = variation.params
    assert note.split("\n") == [params[k] for k in ("greeting", "sentence", "price", "sign")]
    assert Type(f"/home/user/Documents/{params['file']}") in done
