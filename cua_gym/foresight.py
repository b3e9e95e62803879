"""What an environment's next reset will want, so that its machine can be made ready before."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable

import numpy as np

from cua_gym.machine.pool import Place, Wish
from cua_gym.setup_steps import set_up
from cua_gym.task import Task, Variation

__all__ = ["Foresight", "draw"]


def draw(generator: np.random.Generator) -> int:
    """The variation of a reset that names none."""
    return int(generator.integers(2**31))


class Foresight:
    """Expects at each reset what the next one will want.

    A reset that names no variation draws one, and the draw can be looked up. That is what is
    expected after such a reset, and after one that only set the seed for those to come. Who names
    the variation again and again means to name the next one, too: if it was the same one, that is
    expected, else nothing.

    Attributes:
        place: starts machines, the expected one among them.
    """

    def __init__(self, task: Task, place: Place) -> None:
        self.place = place
        self._task = task
        self._named: int | None = None
        self._number: int | None = None
        self._variation: Callable[[], Variation]

    def variation(self, number: int) -> Variation:
        """The task's variation of this number; if another one was expected, that is let go.

        Raises:
            TaskError: the task's own code failed.
        """
        if number == self._number:
            return self._variation()
        self.forget()
        return self._task.variation(number)

    def look_ahead(self, named: int | None, generator: np.random.Generator) -> None:
        """Have the next machine made ready.

        Args:
            named: what the reset just done was given.
            generator: draws for the next one, if that is given nothing; not used up.
        """
        before, self._named = self._named, named
        self.forget()
        if named is None or before is None:
            self._number = draw(copy.deepcopy(generator))
        elif named == before:
            self._number = named
        else:
            return
        # Made where the machine is: a variation may take seconds, too.
        variation = functools.cache(functools.partial(self._task.variation, self._number))
        self._variation = variation
        self.place.expect(lambda: _wish(variation()))

    def forget(self, *, wait: bool = False) -> None:
        """Nothing is expected; with ``wait``, no machine stays that was."""
        self._number = None
        self.place.forget(wait=wait)


def _wish(variation: Variation) -> Wish:
    task = variation.task
    return Wish(
        task.spec,
        variation.start_key,
        (task.images,),
        lambda machine: set_up(machine, variation).files(),
    )
