"""Which attempts are made, when, and what becomes of faults."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cua_gym.errors import MachineError, MachineLost, TaskError
from cua_gym.gates.attempts import AttemptStore
from cua_gym.gates.check import Checked, Subject, Terms, check_all
from cua_gym.gates.names import GATES
from cua_gym.gates.play import Player
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.start import start_machine

from .sound import NAME, SOUND, Edit, load, make_task, rule

JUDGED_ALONE = tuple(gate for gate in GATES if gate not in ("random",))


class Bench:
    """A suite, a store of attempts, and how many machines were started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[str] = []
        self.started = 0
        self.start: Callable[..., Machine] = start_machine

    def check(self, *gates: str, load: Callable[..., Any] | None = None, **terms: Any) -> Checked:
        """What the gates say now."""
        store = AttemptStore(self.folder / "attempts")
        player = Player(store, 2, self.told.append, self._start)
        task = load or (lambda: _load(self.folder))
        (done,) = check_all([Subject(NAME, task)], player, Terms(gates or JUDGED_ALONE, **terms))
        return done

    def edit(self, edit: Edit) -> None:
        """Write the sound task with an edit."""
        make_task(self.folder, edit)

    def _start(self, spec: MachineSpec, **options: Any) -> Machine:
        self.started += 1
        return self.start(spec, **options)


def _load(folder: Path) -> Any:
    return load(folder)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """The sound task."""
    bench = Bench(tmp_path)
    bench.edit(SOUND)
    return bench


def words(done: Checked) -> dict[str, bool | None]:
    """Gate to verdict."""
    return {gate: judged.passed for gate, judged in done.gates.items()}


class TestAttempts:
    """They are made once."""

    def test_a_changed_grader_needs_no_machine(self, bench: Bench) -> None:
        """What was done is judged anew by the new rule, in both directions."""
        assert all(words(bench.check("no-op", "oracle", seeds=1)).values())
        made = bench.started
        assert made == 3  # doing nothing, the oracle twice
        bench.edit(rule("text == 'never'"))
        done = bench.check("no-op", "oracle", seeds=1)
        assert done.gates["oracle"].passed is False
        assert "it wants" in done.gates["oracle"].detail
        bench.edit(SOUND)
        assert all(words(bench.check("no-op", "oracle", seeds=1)).values())
        assert bench.started == made

    def test_again(self, bench: Bench) -> None:
        """They are made anew when that is asked for, of the gates that are asked for."""
        bench.check("no-op", "oracle", seeds=1)
        bench.check("no-op", seeds=1, again=True)
        assert bench.started == 3 + 1

    def test_a_check_that_was_cut_short_goes_on(self, bench: Bench) -> None:
        """What was made before is there; the rest is made; Ctrl-C leaves no machine."""
        machines: list[Machine] = []

        def interrupted(spec: MachineSpec, **options: Any) -> Machine:
            if len(machines) == 2:
                raise KeyboardInterrupt
            machines.append(start_machine(spec, **options))
            return machines[-1]

        bench.start = interrupted
        with pytest.raises(KeyboardInterrupt):
            bench.check("no-op", "oracle", seeds=1)
        assert all(machine.closed for machine in machines)  # type: ignore[attr-defined]
        bench.start = start_machine
        made = bench.started
        assert all(words(bench.check("no-op", "oracle", seeds=1)).values())
        assert bench.started == made + 1
        assert not list(bench.folder.glob("attempts/.making-*"))

    def test_a_setup_is_cut_short_too(self, tmp_path: Path) -> None:
        """Whatever a machine is doing when all is to end, it ends."""
        step = '[[setup]]\nrun = "sleep 300"\n\n[[evidence]]\nname = "note"'
        make_task(tmp_path, Edit(replace={"task.toml": (('[[evidence]]\nname = "note"', step),)}))

        def tell(text: str) -> None:
            if "setup step 2" in text:
                player.stop()

        player = Player(AttemptStore(tmp_path / "attempts"), 1, tell)
        with pytest.raises(KeyboardInterrupt):
            list(check_all([Subject(NAME, lambda: load(tmp_path))], player, Terms(("no-op",))))

    def test_the_first_failure_ends_the_oracles(self, bench: Bench) -> None:
        """A task whose oracle fails on the first seed costs no other seed a machine."""
        bench.edit(Edit(replace={"oracle.py": ((":.2f}", ":.1f}x"),)}))
        done = bench.check(seeds=3)
        assert bench.started == 2
        assert "5 of 6 attempts were not made" in done.gates["oracle"].detail
        assert words(done)["mutants"] is None
        assert done.gates["mutants"].detail.startswith("not tried: ")
        assert not any(judged.fault for judged in done.gates.values())

    def test_at_most_so_many_machines(self, bench: Bench) -> None:
        """Two jobs are two machines at once, never three."""
        lock, running, most = threading.Lock(), 0, 0

        def counted(spec: MachineSpec, **options: Any) -> Machine:
            nonlocal running, most
            machine = start_machine(spec, **options)
            with lock:
                running += 1
                most = max(most, running)
            close = machine.close

            def closing() -> None:
                nonlocal running
                with lock:
                    running -= not machine.closed  # type: ignore[attr-defined]
                close()

            machine.close = closing  # type: ignore[method-assign]
            return machine

        bench.start = counted
        assert all(words(bench.check("no-op", seeds=3)).values())
        assert most == 2


class TestFaults:
    """Whose they are."""

    def test_a_lost_machine_is_no_verdict(self, bench: Bench) -> None:
        """It is tried once more; then the gates that need it could not be judged."""

        def lost(spec: MachineSpec, **options: Any) -> Machine:
            raise MachineLost("gone")

        bench.start = lost
        done = bench.check(seeds=1)
        assert bench.started == 2
        assert words(done) == dict.fromkeys(JUDGED_ALONE, None) | {"lint": True}
        assert all(judged.fault for gate, judged in done.gates.items() if gate != "lint")
        assert "gone" in done.gates["oracle"].detail

    def test_once_more_is_enough(self, bench: Bench) -> None:
        """A machine that failed once costs no verdict."""
        failed: list[bool] = []

        def flaky(spec: MachineSpec, **options: Any) -> Machine:
            if not failed:
                failed.append(True)
                raise MachineError("hiccup")
            return start_machine(spec, **options)

        bench.start = flaky
        assert all(words(bench.check("no-op", "oracle", seeds=1)).values())
        assert any("hiccup; once more" in text for text in bench.told)

    def test_a_setup_that_fails(self, bench: Bench) -> None:
        """It is the task's fault, told once, and tried again the next time."""
        step = '[[setup]]\nrun = "false"\n\n[[evidence]]\nname = "note"'
        bench.edit(Edit(replace={"task.toml": (('[[evidence]]\nname = "note"', step),)}))
        done = bench.check(seeds=1)
        failed = [gate for gate, judged in done.gates.items() if judged.passed is False]
        assert failed == ["no-op"]
        assert "setup step 2 exited with 1" in done.gates["no-op"].detail
        assert not any(judged.fault for judged in done.gates.values())
        assert bench.started == 1

    def test_an_oracle_that_raises(self, bench: Bench) -> None:
        """The oracle's own fault fails its gate."""
        raising = ("yield Key", 'raise ValueError("lost it"); yield Key')
        bench.edit(Edit(replace={"oracle.py": (raising,)}))
        done = bench.check("oracle", seeds=1)
        assert "seed 0, attempt 1: agent, act: ValueError: lost it" in done.gates["oracle"].detail

    def test_a_check_that_raises(self, bench: Bench) -> None:
        """A grader that breaks fails the gates that need its verdict."""
        bench.edit(rule("1 / 0 == len(text)"))
        done = bench.check("no-op", "oracle", seeds=1)
        assert "ZeroDivisionError" in done.gates["oracle"].detail

    def test_a_task_that_does_not_load(self, bench: Bench) -> None:
        """What is wrong with it is the gate lint's; nothing else is tried."""

        def broken() -> Any:
            raise TaskError("task.toml:3: no")

        done = bench.check(load=broken)
        assert done.gates["lint"].detail == "task.toml:3: no"
        assert done.task is None
        assert words(done) == dict.fromkeys(JUDGED_ALONE, None) | {"lint": False}

    def test_steps_far_from_the_expected(self, bench: Bench) -> None:
        """An oracle that takes far more or fewer steps than the task says is told."""
        steps = (("expected_steps = 3", "expected_steps = 15"), ("steps = 10", "steps = 40"))
        bench.edit(Edit(replace={"task.toml": steps}))
        done = bench.check("oracle", seeds=1)
        assert "takes 3 steps (median), expected_steps is 15" in done.gates["oracle"].detail


def test_an_infeasible_task(bench: Bench) -> None:
    """Its oracle gives up, which giving up at once may do too; doing nothing may not."""
    bench.edit(
        Edit(
            replace={
                "task.toml": (('backend = "any"', 'backend = "any"\nfeasible = false'),),
                "oracle.py": (
                    ('    yield Key("ctrl+s")', '    yield GiveUp("there are no prices")'),
                    ("import Action, Key", "import Action, GiveUp"),
                ),
                "hidden/checkpoints.toml": (
                    ("text.equals", "answer.gave_up"),
                    ('"note"', '"submission"'),
                    ('args = { expected = "{answer.sum}", whitespace = "trim" }', ""),
                    ('[discovered]\n"answer.sum" = "by adding the prices"', ""),
                ),
            }
        )
    )
    done = bench.check(seeds=1)
    assert {g: j.detail for g, j in done.gates.items() if not j.passed} == {}
    assert done.gates["give-up"].detail == (
        "infeasible, but giving up at once scores 1: ask for the reason"
    )
