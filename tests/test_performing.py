"""One action on a machine: refused, stale, stopped, or done and waited for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

import pytest

from cua_gym import actions as a
from cua_gym.clock import SystemClock
from cua_gym.errors import ActionError, MachineError, MachineLost, MachineTimeout
from cua_gym.machine.base import Completed, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.performing import SHELL_TEXT_LIMIT, Performer
from cua_gym.spaces import ActionSpace
from cua_gym.turns import Stop

RULE = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)


@pytest.fixture
def toy() -> Iterator[FakeMachine]:
    """A toy computer."""
    with FakeMachine(MachineSpec(backend="fake", screen=(640, 480))) as machine:
        yield machine


@pytest.fixture
def hand(toy: FakeMachine) -> Performer:
    """Performs on it."""
    return Performer(toy, ActionSpace((640, 480), "both"), RULE, SystemClock())


def test_an_action_is_done_and_its_frame_is_after_it(toy: FakeMachine, hand: Performer) -> None:
    """The frame that comes with it shows what it did."""
    settled, extra = hand.do(a.Type("x"), 60, None, toy.serial)
    assert (settled.frame.serial, toy.typed, extra) == (toy.serial, "x", {})


def test_an_action_for_a_frame_that_is_no_more(toy: FakeMachine, hand: Performer) -> None:
    """Nothing is done; the frame of now comes with the refusal."""
    seen = toy.serial
    toy.text("y")
    settled, extra = hand.do(a.Type("x"), 60, None, seen)
    assert "stale" in extra["action_error"]
    assert (settled.frame.serial, toy.typed) == (toy.serial, "y")


def test_what_the_policy_does_not_allow(toy: FakeMachine) -> None:
    """No action of the other kind is done."""
    hand = Performer(toy, ActionSpace((640, 480), "gui"), RULE, SystemClock())
    assert "action_error" in hand.do(a.Shell("true"), 60, None, None)[1]


def test_a_wait_ends_when_it_is_asked_to(hand: Performer) -> None:
    """And says so."""
    stop = Stop()
    threading.Timer(0.05, stop.ask).start()
    assert hand.do(a.Wait(60), 600, stop, None)[1] == {"stopped": True}


def test_a_wait_ends_with_the_time_that_is_left(hand: Performer) -> None:
    """An episode's end is not slept through."""
    assert hand.do(a.Wait(60), 0.01, Stop(), None)[1] == {}


def test_a_long_output_says_what_is_left_out(hand: Performer) -> None:
    """It is cut, never silently."""
    told = hand.do(a.Shell("head -c 70000 /dev/zero | tr '\\0' x"), 60, None, None)[1]["shell"]
    assert told["stdout"].startswith("x" * SHELL_TEXT_LIMIT + "\n[4464 more bytes")


@pytest.mark.parametrize("error", [ActionError("no"), PermissionError(13, "no")])
def test_what_is_the_agents_own_fault(hand: Performer, error: Exception) -> None:
    """It is told, without a wait for the screen."""

    def work(machine: object) -> dict[str, object]:
        raise error

    settled, extra = hand.use(work, RULE)
    assert settled is None
    assert "no" in extra["action_error"]


def test_what_is_not_is_raised(toy: FakeMachine, hand: Performer) -> None:
    """A lost machine is no action's fault."""

    def work(machine: object) -> dict[str, object]:
        toy.fault = MachineLost("gone")
        raise toy.fault

    with pytest.raises(MachineLost):
        hand.use(work, None)


def test_work_that_looks_waits_for_nothing(hand: Performer) -> None:
    """Without a rule there is no frame to wait for; with one there is."""
    assert hand.use(lambda machine: {"a": 1}, None) == (None, {"a": 1})
    settled, _ = hand.use(lambda machine: {}, RULE)
    assert settled is not None
    assert settled.settled


LATE, DONE, FAILED = (
    Completed(*end) for end in ((137, b"", b"", True), (0, b"", b""), (1, b"", b""))
)
SLOW, GONE = MachineTimeout("no answer"), MachineLost("no shell")


def probed(
    toy: FakeMachine, monkeypatch: pytest.MonkeyPatch, *ends: Completed | MachineError
) -> tuple[Mapping[str, object] | MachineError, int]:
    """What a fault becomes when root's probes end like this, and how many are left."""
    left = list(ends)

    def run(*command: object, **options: object) -> Completed:
        end = left.pop(0)
        if isinstance(end, MachineError):
            raise end
        return end

    def work(machine: object) -> dict[str, object]:
        raise MachineError("no file server")

    monkeypatch.setattr(toy.shell, "run", run)
    hand = Performer(toy, ActionSpace((640, 480), "both"), RULE, SystemClock())
    try:
        return hand.use(work, None)[1], len(left)
    except MachineError as error:
        return error, len(left)


@pytest.mark.parametrize("ends", [[DONE], [LATE, DONE], [SLOW, DONE]])
def test_a_loaded_machine_is_asked_again(
    toy: FakeMachine, monkeypatch: pytest.MonkeyPatch, ends: list[Completed | MachineError]
) -> None:
    """One probe that is late does not end an episode; the fault is the agent's to read."""
    told = {"action_error": "MachineError: no file server"}
    assert probed(toy, monkeypatch, *ends) == (told, 0)


@pytest.mark.parametrize(
    ("ends", "left"),
    [([LATE] * 3, 1), ([SLOW] * 3, 1), ([GONE, DONE], 1), ([FAILED, DONE], 1), ([LATE, GONE], 0)],
)
def test_a_machine_that_is_not_well(
    toy: FakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    ends: list[Completed | MachineError],
    left: int,
) -> None:
    """Late twice, lost, or unable to run anything: the first fault is raised."""
    fault, unasked = probed(toy, monkeypatch, *ends)
    assert (str(fault), unasked) == ("no file server", left)


def test_a_machine_lost_between_probes(toy: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is not asked again."""
    fault = MachineLost("gone")
    checks = iter([None, fault])

    def check() -> None:
        if (lost := next(checks)) is not None:
            raise lost

    monkeypatch.setattr(toy, "check", check)
    assert probed(toy, monkeypatch, LATE, DONE) == (fault, 1)
