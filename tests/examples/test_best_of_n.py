"""Best of n by forks, on the computer in memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import cua_gym
from cua_gym import Action, Key, Shell, Submit, Type
from cua_gym.machine.settle import Settle
from cua_gym.task import find_task
from examples.best_of_n import TASK, Turn, best_of_n, hasty_reader
from tests.run.toy import make_suite, on_toy_computer


def typing(instruction: str, turns: Sequence[Turn], _: Any, rng: random.Random) -> Action:
    """A word in two halves; the second may be wrong."""
    word = instruction.split()[1]
    rest = word[4:] if rng.random() < 0.5 else "x"
    return [Type(word[:4]), Type(rest), Key("ctrl+s"), Submit()][len(turns)]


def test_the_best_comes_first(tmp_path: Path):
    """What came before the fork is shared; each goes on with its own draws, and is graded."""
    task = on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))
    settle = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
    env = cua_gym.make(task, runs=tmp_path / "runs", settle=settle)
    told: list[str] = []
    branches = best_of_n(env, typing, n=4, at=1, seed=3, tell=told.append)
    assert [branch.score for branch in branches] == [1.0, 0.5, 0.5, 0.5]
    assert len({branch.turns[0][0] for branch in branches}) == 1
    assert len({branch.record for branch in branches}) == 4
    assert "forking into 4" in told
    with pytest.raises(RuntimeError, match=r"over at step 4: .*fork before"):
        best_of_n(env, typing, n=2, at=9, seed=3)
    env.close()


@pytest.mark.parametrize(("haste", "prefix"), [(0.0, "slow"), (1.0, "failed")])
def test_the_reader_reports_what_it_found(haste: float, prefix: str):
    """The right request, or in haste the one that failed; the rest of the report stays."""
    variation = find_task(TASK).variation(5)
    params = variation.params
    lines = [f"{params[f'{kind}_ms']} {params[f'{kind}_id']} 0\n" for kind in ("slow", "failed")]
    report = variation.task.setup[1].file.content.format(**params)
    turns: list[Turn] = []
    while not turns or turns[-1][0] != Submit():
        action = hasty_reader(variation.instruction, turns, None, random.Random(0), haste)
        turns.append((action, {"shell": {"stdout": "".join(lines) + report}}))
    request, duration = params[f"{prefix}_id"], str(params[f"{prefix}_ms"])
    expected = Type(report.replace("ID", request).replace("MS", duration))
    assert [type(action) for action, _ in turns] == [Shell, Key, Type, Key, Shell, Submit]
    assert turns[2][0] == expected
