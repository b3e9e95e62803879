"""Running attempts one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cua_gym.agent.base import Agent
from cua_gym.agent.scripted import GiveUpAgent, NullAgent, RandomAgent
from cua_gym.errors import MachineLost, OutOfSpace
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.run import local
from cua_gym.run.local import AgentChoice, Plan, run_local
from cua_gym.run.row import Row
from cua_gym.task import Task
from tests.run import agents

MADE: list[FakeMachine] = []
QUICK = Settle(0.02, 0.01, 0.1)


def fake(spec: Any, **_: Any) -> FakeMachine:
    """A toy computer that the test can look at afterwards."""
    MADE.append(FakeMachine(spec))
    return MADE[-1]


def plan(task: Task, runs: Path, *makers: Callable[[], Agent], **more: Any) -> Plan:
    """A plan for these agents on the toy task."""
    choices = [AgentChoice(make.__name__, make) for make in makers]
    options = {"start": fake, "settle": QUICK} | more.pop("options", {})
    return Plan([task], choices, runs, "r", options=options, **more)


def rows_of(chosen: Plan) -> list[Row]:
    """All rows; afterwards every machine is closed."""
    MADE.clear()
    rows = list(run_local(chosen))
    assert all(machine.closed for machine in MADE)
    return rows


def test_work_is_scored_and_recorded(toy_task: Task, tmp_path: Path) -> None:
    """A worker gets 1.0, and its folder holds the whole record."""
    (row,) = rows_of(plan(toy_task, tmp_path, agents.Worker))
    assert (row.outcome.score, row.outcome.success) == (1.0, True)
    assert row.folder is not None
    names = {p.name for p in row.folder.iterdir()}
    assert names >= {
        "episode.json", "traj.jsonl", "frames", "recording.mp4", "runtime.log", "evidence",
        "result.json",
    }  # fmt: skip
    steps = list(Replay(RunFolder(row.folder)).steps())
    assert len(steps) == 4
    assert len(list((row.folder / "frames").iterdir())) == 4
    assert json.loads((row.folder / "result.json").read_text())["score"] == 1.0


@pytest.mark.parametrize("make", [NullAgent, GiveUpAgent])
def test_no_work_is_zero(toy_task: Task, tmp_path: Path, make: Callable[[], Agent]) -> None:
    """Doing nothing is scored, and scored 0."""
    (row,) = rows_of(plan(toy_task, tmp_path, make))
    assert (row.outcome.kind, row.outcome.score) == ("scored", 0.0)


def test_a_limit_ends_it(toy_task: Task, tmp_path: Path) -> None:
    """An agent that never submits is graded at the step limit."""
    (row,) = rows_of(plan(toy_task, tmp_path, agents.Dawdler))
    assert row.outcome.kind == "scored"
    assert len(list((row.folder or tmp_path).glob("frames/*"))) == 6


def test_random_is_the_same_for_a_seed(toy_task: Task, tmp_path: Path) -> None:
    """A random agent does the same again with the same seed, and other things with another."""
    rows = rows_of(plan(toy_task, tmp_path, RandomAgent, seeds=(1, 2), repeats=2))
    done = [[s.action for s in Replay(RunFolder(r.folder)).steps()] for r in rows if r.folder]
    assert done[0] == done[1]
    assert done[0] != done[2]
    assert done[0][-1] == {"type": "submit", "answer": None}


def test_order_and_folders(toy_task: Task, tmp_path: Path) -> None:
    """Agents, then seeds, then repeats; each attempt has a folder of its own."""
    chosen = plan(toy_task, tmp_path, NullAgent, GiveUpAgent, seeds=(3, 4), repeats=2)
    rows = rows_of(chosen)
    assert len(rows) == len(chosen) == 8
    assert [(r.agent, r.seed) for r in rows] == [
        (agent, seed) for agent in ("NullAgent", "GiveUpAgent") for seed in (3, 3, 4, 4)
    ]
    assert len({r.folder for r in rows}) == 8


def test_a_crashing_agent_is_unscored(toy_task: Task, tmp_path: Path) -> None:
    """An agent whose code fails has no score, the cause is kept, and the others go on."""
    crashed, worked = rows_of(plan(toy_task, tmp_path, agents.Crasher, agents.Worker))
    assert (crashed.outcome.reason, crashed.outcome.phase) == ("agent", "act")
    assert crashed.outcome.cause == "LookupError: the model is overloaded"
    assert crashed.folder is not None
    assert json.loads((crashed.folder / "result.json").read_text())["kind"] == "unscored"
    assert "in act" in (crashed.folder / "runtime.log").read_text()
    assert worked.outcome.score == 1.0


def test_an_agent_that_exits_ends_its_own_attempt(toy_task: Task, tmp_path: Path) -> None:
    """`sys.exit` in an agent is the agent's fault; it neither ends the run nor gives its code."""
    quit_, worked = rows_of(plan(toy_task, tmp_path, agents.Quitter, agents.Worker))
    assert (quit_.outcome.reason, quit_.outcome.cause) == ("agent", "SystemExit: 0")
    assert worked.outcome.score == 1.0


@pytest.mark.parametrize("fault", [MachineLost("it is gone"), ZeroDivisionError("our bug")])
def test_a_machine_that_does_not_start(toy_task: Task, tmp_path: Path, fault: Exception) -> None:
    """A fault at boot, typed or a bug, is unscored with the phase, never zero, and ends nothing."""
    attempts = 0

    def start(spec: Any, **_: Any) -> FakeMachine:
        nonlocal attempts
        attempts += 1
        if attempts == 2:
            raise fault
        return fake(spec)

    rows = rows_of(plan(toy_task, tmp_path, agents.Worker, repeats=3, options={"start": start}))
    assert [r.outcome.score for r in rows] == [1.0, None, 1.0]
    assert rows[1].outcome.reason == "machine"
    assert str(fault) in (rows[1].outcome.cause or "")
    assert (rows[1].folder or tmp_path).joinpath("result.json").exists()


def test_a_machine_lost_while_acting(toy_task: Task, tmp_path: Path) -> None:
    """A machine that dies under the agent is unscored in phase act."""

    class Saboteur(agents.Worker):
        def act(self, observation: Any, info: Any) -> Any:
            MADE[-1].fault = MachineLost("the guest is gone")
            return super().act(observation, info)

    (row,) = rows_of(plan(toy_task, tmp_path, Saboteur))
    assert (row.outcome.reason, row.outcome.phase) == ("machine", "act")


def test_an_interrupt_keeps_what_was_done(toy_task: Task, tmp_path: Path) -> None:
    """Ctrl-C comes through, the machine is closed, and earlier rows were already given."""
    MADE.clear()
    running = run_local(plan(toy_task, tmp_path, agents.Worker, agents.Interrupted))
    assert next(running).outcome.score == 1.0
    with pytest.raises(KeyboardInterrupt):
        next(running)
    assert all(machine.closed for machine in MADE)


def test_a_full_disk_ends_the_run(
    toy_task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the runs' disk is full the attempt is unscored and no further one is made."""

    def full(runs: Path) -> None:
        raise OutOfSpace(f"no room in {runs}")

    def start(spec: Any, **_: Any) -> FakeMachine:
        raise OutOfSpace("no room")

    monkeypatch.setattr(local, "_need_space", full)
    running = run_local(
        plan(toy_task, tmp_path, agents.Worker, repeats=5, options={"start": start})
    )
    assert next(running).outcome.kind == "unscored"
    with pytest.raises(OutOfSpace):
        next(running)


def test_enough_space_is_no_error(tmp_path: Path) -> None:
    """The look for space leaves nothing behind."""
    local._need_space(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_broken_variation_is_the_tasks_fault(toy_task: Task, tmp_path: Path) -> None:
    """A task that fails for one seed is unscored with reason setup and has no folder."""
    (toy_task.folder / "vary.py").write_text("def vary(rng):\n    raise OSError('x')\n")
    (row,) = rows_of(plan(replace(toy_task), tmp_path, agents.Worker))
    assert (row.outcome.reason, row.outcome.phase) == ("setup", "setup")
