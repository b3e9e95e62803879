"""Who drives: one at a time, in order, and a person before all."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from cua_gym.errors import MachineBusy
from cua_gym.turns import By, Stop, Turns


class Drivers:
    """Callers that each want a turn, in threads of their own."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.done: list[str] = []
        self._threads: list[threading.Thread] = []

    def want(self, name: str, by: By = "agent", stop: Stop | None = None) -> None:
        """Another one, that waits before this returns."""
        waiting = len(self.turns._waiting)

        def drive() -> None:
            try:
                with self.turns.turn(by, 30, stop):
                    self.done.append(name)
            except MachineBusy:
                self.done.append(f"{name} not")

        thread = threading.Thread(target=drive)
        thread.start()
        self._threads.append(thread)
        while len(self.turns._waiting) == waiting and thread.is_alive():
            pass

    def all(self) -> list[str]:
        """Who had a turn, in the order of the turns."""
        for thread in self._threads:
            thread.join(30)
        return self.done


@pytest.fixture
def turns() -> Turns:
    """Nobody drives."""
    return Turns()


def test_first_come_first_served(turns: Turns) -> None:
    """In the order of coming, whoever they are, each alone."""
    drivers = Drivers(turns)
    with turns.turn("agent", 1):
        for name, by in (("a", "agent"), ("b", "human"), ("c", "agent"), ("d", "agent")):
            drivers.want(name, by)  # type: ignore[arg-type]
        assert not drivers.done
    assert drivers.all() == ["a", "b", "c", "d"]


def test_whoever_waits_too_long_did_nothing(turns: Turns) -> None:
    """It is told that another call runs, and its place is free."""
    with (
        turns.turn("agent", 1),
        pytest.raises(MachineBusy, match="another call still runs"),
        turns.turn("agent", 0.01),
    ):
        raise AssertionError("two drive")
    with turns.turn("agent", 0):
        pass


def test_a_person_who_took_over_is_served_alone(turns: Turns) -> None:
    """Agents wait, in their order, until it is given back; a person goes past them."""
    drivers = Drivers(turns)
    turns.take_over()
    assert turns.held
    drivers.want("first")
    drivers.want("second")
    with turns.turn("human", 1):
        assert not drivers.done
    with pytest.raises(MachineBusy, match="a person has taken"), turns.turn("agent", 0.01):
        raise AssertionError("an agent drove")
    turns.give_back()
    assert drivers.all() == ["first", "second"]


def test_who_only_looks_need_not_wait_for_a_person(turns: Turns) -> None:
    """While a person holds the machine an agent may look, and does not act."""
    turns.take_over()
    with turns.turn("agent", 1.0, looks=True):
        pass
    with pytest.raises(MachineBusy, match="a person"), turns.turn("agent", 0.05):
        pytest.fail("an agent acted while a person held the machine")


def test_a_call_under_way_comes_to_its_end(turns: Turns) -> None:
    """Taking over does not interrupt, and a person waits for it."""
    with turns.turn("agent", 1):
        turns.take_over()
        with pytest.raises(MachineBusy), turns.turn("human", 0.01):
            raise AssertionError("two drive")
    with turns.turn("human", 0):
        pass


def test_who_is_asked_to_stop_no_longer_waits(turns: Turns) -> None:
    """At once, without a turn, and those behind it are served."""
    drivers = Drivers(turns)
    stop = Stop()
    with turns.turn("agent", 1):
        drivers.want("stopped", stop=stop)
        drivers.want("other")
        stop.ask()
        while "stopped not" not in drivers.done:
            pass
    assert drivers.all() == ["stopped not", "other"]


def test_a_fault_gives_the_turn_back(turns: Turns) -> None:
    """Whatever happens in it."""
    with pytest.raises(KeyError), turns.turn("agent", 0):
        raise KeyError
    with turns.turn("agent", 0):
        pass


@pytest.mark.parametrize("before", [True, False])
def test_what_was_to_be_called_is_called_once(before: bool) -> None:
    """Whether it was said before the wish or after it."""
    stop, called = Stop(), []
    say: list[Callable[[], None]] = [lambda: stop.then(lambda: called.append(1)), stop.ask]
    for step in say if before else reversed(say):
        step()
    stop.ask()
    assert (called, stop.asked, stop.wait(60)) == ([1], True, True)


def test_after_the_end_of_a_call_nothing_is_called() -> None:
    """A wish that comes late touches nobody's next call."""
    stop, called = Stop(), []
    stop.then(lambda: called.append(1))
    stop.over()
    stop.ask()
    assert not called
    assert not Stop().wait(0)
