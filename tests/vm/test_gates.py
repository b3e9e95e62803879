"""The gates on real machines: each day another tenth of the bundled tasks, and every changed one.

All gates on all seeds are `cua-gym task check --all`, whose verdicts lie beside the tasks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.gates.attempts import AttemptStore
from cua_gym.gates.check import Subject, Terms, check_all
from cua_gym.gates.play import Player
from cua_gym.gates.record import standing
from cua_gym.task import bundled_suite
from tests.vm.conftest import todays

pytestmark = pytest.mark.vm

GATES = ("lint", "consistency", "no-op", "give-up", "oracle", "mutants")
"""Those that tell most for a machine's time."""


@pytest.mark.timeout(1800)  # two seeds of a task of 40 steps
@pytest.mark.parametrize("name", bundled_suite().names())
def test_gates(name: str, tmp_path: Path) -> None:
    """Two seeds, the oracle once each: solved; doing nothing is worth nothing; mutants as told."""
    task = bundled_suite().task(name)
    stands = standing(task)
    if stands.kind in ("passed", "partly") and name not in todays(bundled_suite().names()):
        pytest.skip("another day's")
    player = Player(AttemptStore(tmp_path / "attempts"), 1, print)
    (done,) = check_all([Subject(name, lambda: task)], player, Terms(GATES, seeds=2, tries=1))
    assert {gate: judged.detail for gate, judged in done.gates.items() if not judged.passed} == {}
    # Of infeasible ones too: no bundled task is a gift to an agent that always gives up.
    assert done.gates["give-up"].detail == "giving up scores 0"
