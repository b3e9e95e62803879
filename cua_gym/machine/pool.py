"""Warm machines: the next one of an environment is made ready while its present one is used.

A machine waits at rest, where its kind can rest: restored, greeted, its shell connected, its
processors stopped, so that nothing happens in it. Whoever takes it has it woken as a restore would
have, or gets a cold one: a machine of another start state, a dead one or one that waited too long
is never handed over. What the next machine should be is the environment's to say.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import MachineError, MachineLost, MachineTimeout, OutOfMemory
from cua_gym.forked import finalizer
from cua_gym.machine.base import Machine, MachineSpec, State
from cua_gym.machine.start import Prepare, start_machine

__all__ = ["Place", "Rests", "WarmPool", "Wish", "cores"]

RESTING_S = 3600.0
RUNNING_S = 60.0
"""How long a machine may wait; one that cannot rest lives on meanwhile, without its agent."""

Progress = Callable[[str], None]
Start = Callable[..., Machine]


@runtime_checkable
class Rests(Protocol):
    """A machine that can stand still; a kind of computer need not."""

    def rest(self) -> None:
        """Stop everything in it, once all its wires are ready for use."""

    def wake(self) -> None:
        """Go on as after a restore: clock right, fresh entropy and identity."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What `start_machine` is to be asked for; equal ones are served by the same machine."""

    spec: MachineSpec
    key: str | None
    recipes: tuple[Path, ...]
    prepare: Prepare | None = field(default=None, compare=False)


@dataclass(slots=True, eq=False)
class _Order:
    """One machine asked for.

    Attributes:
        ask: what is wished; asked in the thread that makes the machine, for it may take a while.
        begun, made: how far it is.
        dropped: nobody wants it any more.
        machine: there while its setup runs, and when it is ready; none if it could not be made.
        since: when it became ready, in seconds of the pool's clock.
    """

    ask: Callable[[], Wish]
    wish: Wish | None = None
    begun: bool = False
    made: bool = False
    dropped: bool = False
    machine: Machine | None = None
    since: float = 0.0


@dataclass(slots=True, eq=False)
class _Orders:
    """Every order that has, or may come to have, a machine which nobody has taken; oldest first.

    The condition guards all of it, the orders' fields too, and tells of each change.

    Attributes:
        freed: how often an order has left it without its machine being taken.
    """

    every: list[_Order] = field(default_factory=list)
    closed: bool = False
    freed: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def drop(self, orders: Sequence[_Order], *, wait: bool = False) -> None:
        """Nobody wants these any more; a machine whose setup runs is closed under its hands.

        Args:
            wait: until nothing is left of them.
        """
        with self.changed:
            for order in orders:
                order.dropped = True
            machines = [order.machine for order in orders if order.machine is not None]
        for machine in machines:
            machine.close()
        with self.changed:
            making = [order for order in orders if order.begun and not order.made]
            self.freed += sum(order in orders for order in self.every)
            self.every = [o for o in self.every if o not in orders or o in making]
            self.changed.notify_all()
            if wait:
                self.changed.wait_for(lambda: not any(order in self.every for order in making))

    def close(self) -> None:
        """Drop all, and take no more."""
        with self.changed:
            self.closed = True
            orders = list(self.every)
        self.drop(orders, wait=True)


class WarmPool:
    """Machines that are ready before they are wanted, for environments that share a host.

    Each `place` has at most one, and they are made in the order in which they were asked for, so
    a place that is used often takes nothing from the others. Their memory is only lent: when a
    machine that is wanted now does not fit beside them, they go.

    Nothing stays when the program ends, or when the pool is forgotten.

    Args:
        size: machines at once, ready or in the making.
        start: makes machines, as `start_machine` does.
        clock: tells how long they wait.

    Raises:
        ValueError: ``size`` is below 1.
    """

    def __init__(
        self, size: int, *, start: Start = start_machine, clock: Clock | None = None
    ) -> None:
        if size < 1:
            raise ValueError(f"a pool holds at least 1 machine, not {size}")
        self._size = size
        self._start = start
        self._clock = clock or SystemClock()
        # Making a machine takes a core or more, and the machines in use want theirs.
        self._makers = max(1, cores() // 2)
        self._wanted = 0  # machines that are started for those who wait for them
        self._orders = _Orders()
        self._finalizer = finalizer(self, self._orders.close)

    def place(self) -> Place:
        """A place for one environment."""
        return Place(self)

    def close(self) -> None:
        """End every machine that nobody has taken, and make no more. Idempotent."""
        self._finalizer()

    def order(self, ask: Callable[[], Wish]) -> _Order:
        """Have a machine made ready when it is its turn."""
        order = _Order(ask)
        with self._orders.changed:
            if not self._orders.closed:
                self._orders.every.append(order)
                self._go_on()
        return order

    def drop(self, order: _Order, *, wait: bool) -> None:
        """It is not wanted any more; with ``wait``, nothing is left of it afterwards."""
        self._orders.drop([order], wait=wait)
        with self._orders.changed:
            self._go_on()

    def collect(self, order: _Order, wish: Wish, progress: Progress) -> Machine | None:
        """The machine of this order, awake; None if there is none that is fit, or another was made.

        One that is in the making is waited for: it will be there sooner than a new one.
        """
        if order.begun and not order.made:
            progress("waiting for the machine that is being made ready")
        with self._orders.changed:
            if order.begun:
                self._orders.changed.wait_for(lambda: order.made or order.dropped)
            machine = order.machine
            if not order.made or order.dropped or order.wish != wish:
                machine = None
            elif machine is not None:
                self._orders.every.remove(order)
                self._go_on()
        if machine is None:
            self.drop(order, wait=False)
            return None
        try:
            self._hand_over(machine, order.since)
        except MachineError as error:
            machine.close()
            progress(f"the machine that was ready is no longer fit for use: {error}")
            return None
        return machine

    def start(self, spec: MachineSpec, **options: Any) -> Machine:
        """A machine made now, as `start_machine` does; warm ones make room for it.

        Raises:
            MachineLost: the pool is closed; a reset under way then must not go on.
        """
        with self._orders.changed:
            self._wanted += 1
        try:
            while True:
                if self._orders.closed:
                    raise MachineLost("this pool of machines is closed, and gives none any more")
                freed = self._orders.freed
                try:
                    return self._start(spec, **options)
                except OutOfMemory:
                    lent = list(self._orders.every)
                    # Whoever else lacked room may have ended them just now: then there is some.
                    if not lent and self._orders.freed == freed:
                        raise
                    self._orders.drop(lent, wait=True)
        finally:
            with self._orders.changed:
                self._wanted -= 1
                self._go_on()

    def _hand_over(self, machine: Machine, since: float) -> None:
        rests = isinstance(machine, Rests)
        waited_s = self._clock.monotonic() - since
        if waited_s > (RESTING_S if rests else RUNNING_S):
            raise MachineTimeout(f"it has waited for {waited_s:.0f} s")
        machine.check()
        if isinstance(machine, Rests):
            machine.wake()
        machine.screen.grab()

    def _go_on(self) -> None:
        """Begin what may begin now; called with the lock held.

        Nothing while a machine is started that somebody waits for: it wants the processors.
        """
        if self._wanted:
            return
        for order in self._orders.every:
            begun = [o for o in self._orders.every if o.begun]
            if len(begun) >= self._size or sum(not o.made for o in begun) >= self._makers:
                return
            if not order.begun and not order.dropped:
                order.begun = True
                threading.Thread(
                    target=self._make, args=(order,), name="cua-gym-warm", daemon=True
                ).start()

    def _make(self, order: _Order) -> None:
        machine = None
        try:
            wish = order.wish = order.ask()
            machine = self._start(
                wish.spec, key=wish.key, prepare=self._watched(order, wish), recipes=wish.recipes
            )
            if isinstance(machine, Rests):
                machine.rest()
        except Exception:
            # Whoever wants this machine starts one himself then: he meets the fault and raises it
            # in its place, or it was this machine's alone.
            if machine is not None:
                machine.close()
            machine = None
        changed = self._orders.changed
        with changed:
            if machine is not None and not order.dropped:
                order.machine, order.since = machine, self._clock.monotonic()
                self._told_made(order)
                return
        if machine is not None:
            machine.close()
        with changed:
            order.machine = None
            self._orders.every.remove(order)
            self._orders.freed += 1
            self._told_made(order)

    def _told_made(self, order: _Order) -> None:
        """Nobody sees that it is made before the next one is begun; called with the lock held."""
        order.made = True
        self._go_on()
        self._orders.changed.notify_all()

    def _watched(self, order: _Order, wish: Wish) -> Prepare | None:
        """The wish's setup, on a machine that can be taken from it: a setup may take minutes."""
        prepare = wish.prepare
        if prepare is None:
            return None

        def watched(machine: Machine) -> Mapping[str, bytes] | None:
            with self._orders.changed:
                if order.dropped:
                    raise MachineLost("nobody wants this machine any more")
                order.machine = machine
            return prepare(machine)

        return watched


class Place:
    """One environment's place in a pool. Called as `start_machine` is, it gives what is ready."""

    def __init__(self, pool: WarmPool) -> None:
        self._pool = pool
        self._order: _Order | None = None

    def expect(self, ask: Callable[[], Wish]) -> None:
        """The machine that will be wanted next, instead of what was expected before.

        Args:
            ask: called in another thread. What it raises, or the machine's start or setup, is
                left to whoever wants the machine: he starts one himself.
        """
        self.forget()
        self._order = self._pool.order(ask)

    def forget(self, *, wait: bool = False) -> None:
        """What was expected will not be wanted; with ``wait``, nothing of it stays."""
        order = self._order
        if order is not None:
            self._pool.drop(order, wait=wait)
            self._order = None

    def __call__(
        self,
        spec: MachineSpec,
        *,
        key: str | None = None,
        prepare: Prepare | None = None,
        state: State | None = None,
        recipes: Sequence[Path] = (),
        progress: Progress = lambda _: None,
    ) -> Machine:
        """A running machine, as `start_machine` says: the one expected, else a new one."""
        order = self._order  # whoever closes the environment may do so in another thread
        if state is None and order is not None:
            machine = self._pool.collect(order, Wish(spec, key, tuple(recipes)), progress)
            self._order = None
            if machine is not None:
                return machine
        return self._pool.start(
            spec, key=key, prepare=prepare, state=state, recipes=recipes, progress=progress
        )


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0))
