"""Promises of warm machines: the right one, fit for use, or none; and nothing stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cua_gym.errors import MachineError, MachineLost, OutOfMemory, TaskError
from cua_gym.machine import pool as pools
from cua_gym.machine.admission import VARIABLE
from cua_gym.machine.base import Machine, MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.pool import Place, WarmPool, Wish
from cua_gym.machine.start import start_machine

SPEC = MachineSpec(backend="fake", screen=(64, 48))


class Starts:
    """Makes machines by the rules of `start_machine`, and remembers them."""

    def __init__(self) -> None:
        self.keys: list[str | None] = []
        self.made: list[FakeMachine] = []

    def __call__(self, spec: MachineSpec, *, key: str | None = None, **options: Any) -> Machine:
        self.keys.append(key)
        machine = start_machine(spec, key=key, **options)
        assert isinstance(machine, FakeMachine)
        self.made.append(machine)
        return machine


class Clock:
    """Time that a test lets pass."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def starts() -> Starts:
    return Starts()


@pytest.fixture
def make(
    starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., WarmPool]]:
    """Makes pools, in a cache of its own; in the end no machine is left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[WarmPool] = []

    def make(size: int = 1, **options: Any) -> WarmPool:
        made.append(WarmPool(size, start=starts, **options))
        return made[-1]

    yield make
    for pool in made:
        pool.close()
        pool.close()
    for machine in starts.made:
        machine.close()
    assert list((tmp_path / "cache/cua-gym/run/rooms").iterdir()) == []


def wish(key: str, prepare: Callable[[Machine], Mapping[str, bytes]] | None = None) -> Wish:
    return Wish(SPEC, key, (), prepare or (lambda machine: {}))


def expect(place: Place, key: str) -> None:
    place.expect(lambda: wish(key))


def settle(pool: WarmPool) -> None:
    """Wait until what can be made is made."""
    orders = pool._orders
    with orders.changed:
        assert orders.changed.wait_for(lambda: all(o.made or not o.begun for o in orders.every), 60)


def test_the_expected_machine_is_handed_over_awake(make: Callable[..., WarmPool], starts: Starts):
    """It was made before it was asked for, rested meanwhile, and its setup ran once."""
    pool, done = make(), []
    place = pool.place()
    place.expect(lambda: wish("a", lambda machine: done.append("warm") or {}))
    settle(pool)
    (warm,) = starts.made
    assert warm.resting
    machine = place(SPEC, key="a", prepare=lambda machine: done.append("cold") or {})
    assert machine is warm
    assert not warm.resting
    assert done == ["warm"]


def test_one_in_the_making_is_waited_for(make: Callable[..., WarmPool], starts: Starts):
    """It will be there sooner than another one; whoever waits is told."""
    pool, told, go = make(), [], threading.Event()

    def prepare(machine: Machine) -> dict[str, bytes]:
        assert go.wait(60)
        return {}

    place = pool.place()
    place.expect(lambda: wish("a", prepare))

    def progress(text: str) -> None:
        told.append(text)
        go.set()

    place(SPEC, key="a", progress=progress)
    assert starts.keys == ["a"]
    assert told == ["waiting for the machine that is being made ready"]


@pytest.mark.parametrize(
    "asked", [{"key": "b"}, {"key": None}, {"key": "a", "recipes": [Path("suite")]}]
)
def test_another_machine_than_the_expected_one_is_made_anew(
    make: Callable[..., WarmPool], starts: Starts, asked: dict[str, Any]
):
    """A machine in the wrong state is closed, never given by mistake."""
    pool = make()
    place = pool.place()
    expect(place, "a")
    settle(pool)
    machine = place(SPEC, **asked)
    wrong, right = starts.made
    assert wrong.closed
    assert machine is right
    assert place(SPEC, key="a") is starts.made[2]  # it was for one start only


def test_a_saved_moment_leaves_the_expected_machine(make: Callable[..., WarmPool], starts: Starts):
    """A copy of a running machine is no reset."""
    pool = make()
    place = pool.place()
    first = place(SPEC)
    expect(place, "a")
    settle(pool)
    place(SPEC, state=first.snapshot("moment"))
    assert place(SPEC, key="a") is starts.made[1]


@pytest.mark.parametrize("when", ["dead", "dead when woken", "old", "old and restless"])
def test_one_that_is_not_fit_any_more_is_replaced(
    make: Callable[..., WarmPool],
    starts: Starts,
    when: str,
    monkeypatch: pytest.MonkeyPatch,
):
    """By a cold one, with no more than a word of it."""
    pool = make(clock=(clock := Clock()))
    if when == "old and restless":
        monkeypatch.setattr(pools, "Rests", type("Unknown", (), {}))
    place = pool.place()
    expect(place, "a")
    settle(pool)
    if when == "dead":
        starts.made[0].fault = MachineLost("killed")
    elif when == "dead when woken":
        starts.made[0].wake = lambda: (_ for _ in ()).throw(MachineLost("killed"))  # type: ignore[method-assign]
    else:
        clock.now += pools.RESTING_S + 1 if when == "old" else pools.RUNNING_S + 1
    told: list[str] = []
    machine = place(SPEC, key="a", progress=told.append)
    first, second = starts.made
    assert machine is second
    assert first.closed
    assert ("killed" if "dead" in when else "has waited") in told[0]


def test_a_setup_that_fails_is_the_fault_of_who_wants_the_machine(
    make: Callable[..., WarmPool], starts: Starts
):
    """It is raised where it is wanted, in its own phase; a fault of that once is none."""
    pool, faults = make(), [TaskError("step 1"), TaskError("step 1")]

    def prepare(machine: Machine) -> dict[str, bytes]:
        if faults:
            raise faults.pop()
        return {}

    place = pool.place()
    place.expect(lambda: wish("a", prepare))
    settle(pool)
    assert len(faults) == 1
    with pytest.raises(TaskError, match="step 1"):
        place(SPEC, key="a", prepare=prepare)
    place(SPEC, key="a", prepare=prepare)


def test_a_wish_that_cannot_be_told_harms_nobody(make: Callable[..., WarmPool], starts: Starts):
    """A task's own code may fail; the place after it is served."""
    pool = make()
    broken, sound = pool.place(), pool.place()
    broken.expect(lambda: (_ for _ in ()).throw(TaskError("vary.py")))
    expect(sound, "b")
    settle(pool)
    assert sound(SPEC, key="b") is starts.made[0]
    broken(SPEC, key="a")
    assert starts.keys == ["b", "a"]


def test_places_are_served_in_turn(make: Callable[..., WarmPool], starts: Starts):
    """One that asks at every moment gets no second machine before the others' first."""
    pool = make(1)
    hungry, patient = pool.place(), pool.place()
    expect(hungry, "h1")
    expect(patient, "p1")
    settle(pool)
    for number in (1, 2, 3):
        hungry(SPEC, key=f"h{number}")
        expect(hungry, f"h{number + 1}")
        settle(pool)
    # The second and third were started when they were wanted: the only room was the other's.
    assert starts.keys == ["h1", "p1", "h2", "h3"]
    assert patient(SPEC, key="p1") is starts.made[1]
    settle(pool)
    assert starts.keys[4:] == ["h4"]


def test_no_more_than_its_size_are_ready(make: Callable[..., WarmPool], starts: Starts):
    """Nor in the making; a place that forgets makes room."""
    pool = make(2)
    places = [pool.place() for _ in range(3)]
    for number, place in enumerate(places):
        expect(place, str(number))
    settle(pool)
    assert starts.keys == ["0", "1"]
    places[0].forget(wait=True)
    assert starts.made[0].closed
    settle(pool)
    assert starts.keys == ["0", "1", "2"]


@pytest.mark.parametrize("end", ["close", "forget"])
def test_an_end_while_a_machine_is_made(make: Callable[..., WarmPool], starts: Starts, end: str):
    """The machine is taken from under its setup, however long that would be; nothing stays."""
    pool, entered = make(), threading.Event()
    machines: list[FakeMachine] = []

    def prepare(machine: Machine) -> dict[str, bytes]:
        assert isinstance(machine, FakeMachine)
        machines.append(machine)
        entered.set()
        while not machine.closed:
            time.sleep(0.001)
        machine.check()
        return {}

    place = pool.place()
    place.expect(lambda: wish("a", prepare))
    assert entered.wait(60)
    if end == "close":
        pool.close()
    else:
        place.forget(wait=True)
    assert machines[0].closed
    assert pool._orders.every == []
    expect(place, "b")
    settle(pool)
    if end == "close":
        with pytest.raises(MachineLost, match="closed"):
            place(SPEC, key="b")
    else:
        place(SPEC, key="b")
    assert len(starts.made) == (0 if end == "close" else 1)


def test_a_machine_that_was_forgotten_before_its_setup_is_none(
    make: Callable[..., WarmPool], starts: Starts
):
    """Whoever makes it finds out, and closes it."""
    pool, entered, go = make(), threading.Event(), threading.Event()

    def ask() -> Wish:
        entered.set()
        assert go.wait(60)
        return wish("a")

    place = pool.place()
    place.expect(ask)
    assert entered.wait(60)
    place.forget()
    go.set()
    pool.close()
    assert all(machine.closed for machine in starts.made)


def test_a_pool_that_is_forgotten_ends_its_machines(starts: Starts):
    """As machines do."""
    pool = WarmPool(1, start=starts)
    place = pool.place()
    expect(place, "a")
    settle(pool)
    for thread in threading.enumerate():
        if thread.name == "cua-gym-warm":
            thread.join()
    del pool, place
    assert starts.made[0].closed


def test_warm_machines_make_room_for_wanted_ones(
    make: Callable[..., WarmPool], starts: Starts, monkeypatch: pytest.MonkeyPatch
):
    """Memory is lent to them; who wants more than there is without them is refused."""
    monkeypatch.setenv(VARIABLE, "40")
    pool = make(2)
    one, other = pool.place(), pool.place()
    one(SPEC)
    expect(one, "a")
    settle(pool)
    expect(other, "b")
    settle(pool)  # there is no memory to make this one ready
    other(SPEC, key="b")
    assert [machine.closed for machine in starts.made] == [False, True, False]
    with pytest.raises(OutOfMemory, match="run: 2"):
        one(SPEC, key="a")
    starts.made[0].close()
    one(SPEC, key="a")


@pytest.mark.parametrize("ended", [True, False])
def test_room_that_others_made_meanwhile_is_room(
    make: Callable[..., WarmPool], starts: Starts, ended: bool
):
    """Two that lack it at once are not refused for what the first of them has ended."""
    pool = make()
    lender, wanting = pool.place(), pool.place()
    expect(lender, "a")
    settle(pool)
    tries = []

    def start(spec: MachineSpec, **options: Any) -> Machine:
        tries.append(spec)
        if len(tries) == 1:
            if ended:
                lender.forget(wait=True)  # by another thread, after this one had counted
            raise OutOfMemory("planted")
        return starts(spec, **options)

    pool._start = start
    wanting(SPEC, key="b")
    assert len(tries) == 2
    assert starts.made[0].closed


def test_a_pool_of_none_is_refused():
    """Whoever wants no warm machines makes no pool."""
    with pytest.raises(ValueError, match="at least 1 machine, not 0"):
        WarmPool(0)


def test_a_machine_lost_before_it_could_rest_is_made_anew(
    make: Callable[..., WarmPool], monkeypatch: pytest.MonkeyPatch, starts: Starts
):
    """It is closed, and nobody hears of it."""

    def lost(machine: FakeMachine) -> None:
        raise MachineError("lost")

    pool = make()
    place = pool.place()
    with monkeypatch.context() as patch:
        patch.setattr(FakeMachine, "rest", lost)
        expect(place, "a")
        settle(pool)
    assert starts.made[0].closed
    assert place(SPEC, key="a") is starts.made[1]


def test_whoever_waits_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made ready while a machine is started that somebody waits for."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    goes_on, keys = threading.Event(), []

    def start(spec: MachineSpec, *, key: str | None = None, **options: Any) -> Machine:
        keys.append(key)
        if key == "wanted":
            assert goes_on.wait(20)
        return start_machine(spec, key=key, **options)

    pool = WarmPool(2, start=start)
    waiting, ready = pool.place(), pool.place()
    with closing(pool):
        taken: list[Machine] = []
        thread = threading.Thread(
            target=lambda: taken.append(waiting(SPEC, key="wanted", prepare=lambda _: {}))
        )
        thread.start()
        eventually(lambda: keys == ["wanted"])
        ready.expect(lambda: wish("next"))
        time.sleep(0.1)
        assert keys == ["wanted"]
        goes_on.set()
        thread.join(20)
        eventually(lambda: keys == ["wanted", "next"])
        for machine in taken:
            machine.close()


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
