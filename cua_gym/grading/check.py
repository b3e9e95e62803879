"""What a check is: a pure function from evidence to a verdict.

::

    @check
    def equals(item: Item, *, expected: str) -> Verdict:
        '''What it accepts and what it refuses.'''
        text = item.text()
        return verdict(text == expected, "the text", seen=text, wanted=expected)

The first parameter says what the check looks at: `Item` is the one evidence that the checkpoint
names, `Evidence` is all that it names. The rest are keyword arguments, filled from the
checkpoint's ``args``. A check may raise `Fails` at any depth: the agent's work is wrong. Any other
exception is the grader's fault, and the episode is then unscored.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, SupportsFloat, get_type_hints

from cua_gym.errors import GradingError
from cua_gym.grading.items import Evidence, Fails, Item

__all__ = [
    "Check",
    "Evidence",
    "Fails",
    "GradingError",
    "Item",
    "Verdict",
    "argument_faults",
    "check",
    "verdict",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found.

    Attributes:
        value: 0 to 1; 1 is passed, less is part of the way.
        message: what was looked at and found, in a few words.
        seen: the value found.
        wanted: the value asked for.
    """

    value: float
    message: str = ""
    seen: Any = None
    wanted: Any = None

    def __post_init__(self) -> None:
        # NaN compares false with everything, so it is refused here too.
        if not isinstance(self.value, SupportsFloat) or not 0.0 <= float(self.value) <= 1.0:
            raise GradingError(f"a verdict's value is from 0 to 1, not {self.value!r}")
        if not isinstance(self.message, str):
            raise GradingError(f"a verdict's message is text, not {self.message!r:.80}")
        # numpy's means are no JSON.
        object.__setattr__(self, "value", float(self.value))

    @property
    def passed(self) -> bool:
        """Whether the check holds wholly; a part is not a pass."""
        return self.value == 1.0


Check = Callable[..., Verdict]


def verdict(passed: bool, message: str = "", *, seen: Any = None, wanted: Any = None) -> Verdict:
    """A verdict of yes or no."""
    return Verdict(1.0 if passed else 0.0, message, seen, wanted)


def check(function: Check) -> Check:
    """Mark a function as a check and turn `Fails` into a verdict of 0.

    Raises:
        TypeError: its signature or its docstring is not that of a check.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    parameters = list(inspect.signature(function).parameters.values())
    subject = get_type_hints(function).get(parameters[0].name) if parameters else None
    if subject not in (Item, Evidence):
        raise TypeError(f"{name}: the first parameter of a check is an Item or an Evidence")
    if any(p.kind is not p.KEYWORD_ONLY for p in parameters[1:]):
        raise TypeError(f"{name}: parameters after the first are keyword-only; put a * before them")
    if not function.__doc__:
        raise TypeError(f"{name}: a check's docstring says what it accepts and what it refuses")

    @functools.wraps(function)
    def run(evidence: Item | Evidence, **arguments: Any) -> Verdict:
        try:
            result = function(evidence, **arguments)
        except Fails as failure:
            return Verdict(0.0, str(failure), failure.seen, failure.wanted)
        if not isinstance(result, Verdict):
            raise GradingError(f"{name} returned {result!r:.80}, not a Verdict")
        return result

    run.is_check = True  # type: ignore[attr-defined]
    run.subject = subject  # type: ignore[attr-defined]
    return run


def argument_faults(function: Check, subject: type, names: set[str]) -> list[str]:
    """What is wrong with calling this check with these arguments; empty when nothing is.

    Args:
        subject: `Item` when the checkpoint names one evidence, `Evidence` when it lists some.
        names: the names of its ``args``.
    """
    faults = []
    wanted = function.subject  # type: ignore[attr-defined]
    if wanted is not subject:
        form = "one name" if wanted is Item else "a list of names"
        faults.append(f"evidence must be {form}")
    parameters = list(inspect.signature(function).parameters.values())[1:]
    known = {p.name for p in parameters}
    needed = {p.name for p in parameters if p.default is p.empty}
    if unknown := sorted(names - known):
        faults.append(f"unknown args {', '.join(unknown)}; it takes {', '.join(sorted(known))}")
    if missing := sorted(needed - names):
        faults.append(f"args {', '.join(missing)} are missing")
    return faults
