"""What the agent said at the end: evidence like any other, and no verdict.

Use it where the task asks for an answer, with checks of the state where it asks for a change.
"""

from __future__ import annotations

from collections.abc import Sequence

from cua_gym.grading.check import Item, Verdict, check, verdict

from .data import parse_json
from .text import Case, Whitespace, normal


@check
def equals(
    item: Item,
    *,
    expected: str | int,
    variants: Sequence[str] = (),
    case: Case = "exact",
    whitespace: Whitespace = "trim",
) -> Verdict:
    """The submitted answer is the expected text, white space around it aside.

    It refuses sentences around the answer, and no answer.
    """
    text = item.text()

    def rule(value: str) -> str:
        return normal(value, case=case, whitespace=whitespace, form="NFC")

    same = any(rule(text) == rule(str(one)) for one in (expected, *variants))
    return verdict(same, "the submitted answer", seen=text, wanted=str(expected))


@check
def gave_up(item: Item) -> Verdict:
    """The agent said that the task cannot be done (evidence ``submission``)."""
    kind = parse_json(item.text()).get("kind")
    return verdict(kind == "give_up", "how the attempt ended", seen=kind, wanted="give_up")
