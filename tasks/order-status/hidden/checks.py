"""The two words of the answer."""

from __future__ import annotations

import re

from cua_gym.grading.check import Fails, Item, Verdict, check, verdict


def _words(item: Item) -> tuple[str, str]:
    text = item.text().strip()
    match = re.fullmatch(r"(\d{1,6}\.\d\d)\s+(\d{1,9})", text)
    if match is None:
        raise Fails("no amount with two decimals and number of an order", seen=text)
    return match[1], match[2]


@check
def amount(item: Item, *, expected: float) -> Verdict:
    """The first word is this amount. Refuses an answer of another form."""
    seen = _words(item)[0]
    return verdict(seen == f"{expected:.2f}", "the amount", seen=seen, wanted=f"{expected:.2f}")


@check
def order(item: Item, *, expected: int) -> Verdict:
    """The second word is this number. Refuses an answer of another form."""
    seen = _words(item)[1]
    return verdict(seen == str(expected), "the order", seen=seen, wanted=str(expected))
