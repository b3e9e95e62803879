"""What the agent said at the end: evidence like any other, and no verdict.

Use it where the task asks for an answer, with checks of the state where it asks for a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cua_gym.grading.check import Fails, Item, Verdict, check, verdict

from .data import parse_json
from .text import Case, Whitespace, normal, stated


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
    """The agent said that the task cannot be done (evidence ``submission``).

    It accepts any reason and none, so also an agent that always gives up: see `gave_up_since`.
    """
    kind = _submission(item).get("kind")
    return verdict(kind == "give_up", "how the attempt ended", seen=kind, wanted="give_up")


@check
def gave_up_since(item: Item, *, facts: list[list[str]], forbidden: Sequence[str] = ()) -> Verdict:
    """The agent said that the task cannot be done, with a reason that only a look can give.

    Its words are free; a fact is stated by one of its variants, as in ``text.states``. The value
    is the share of facts stated. It refuses another end, whatever was said then.

    Args:
        item: the evidence ``submission``.
    """
    said = _submission(item)
    if said.get("kind") != "give_up":
        raise Fails("the agent did not give up", seen=said.get("kind"), wanted="give_up")
    return stated(str(said.get("reason") or ""), facts, forbidden)


def _submission(item: Item) -> dict[str, Any]:
    data = parse_json(item.text())
    if not isinstance(data, dict):
        raise Fails("the submission is no JSON object", seen=repr(data))
    return data
