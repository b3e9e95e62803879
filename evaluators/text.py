"""Text: equal by declared rules, a pattern over all of it, lines, facts that it states."""

from __future__ import annotations

import codecs
import itertools
import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Literal

from cua_gym.grading.check import Fails, GradingError, Item, Verdict, check, verdict

from .bounds import within

Newline = Literal["any", "exact"]
Whitespace = Literal["exact", "trim", "collapse"]
Case = Literal["exact", "fold"]
Form = Literal["exact", "NFC", "NFKC"]
Encoding = Annotated[str, codecs.lookup]
Pattern = Annotated[str, re.compile]
"""As `Encoding`: when a task is loaded the function is called with its argument, to find faults."""


def normal(
    text: str,
    *,
    newline: Newline = "any",
    final_newline: Newline = "any",
    whitespace: Whitespace = "exact",
    case: Case = "exact",
    form: Form = "exact",
) -> str:
    """The text with everything removed that the declared rules call no difference.

    Args:
        newline: ``any``: CR LF, CR and LF are one; or ``exact``.
        final_newline: ``any``: one newline at the very end, there or not; or ``exact``.
        whitespace: ``exact``; ``trim``: none at the ends of the text and of its lines; or
            ``collapse``: any run of it is one space.
        case: ``exact`` or ``fold``.
        form: Unicode: ``exact``, ``NFC`` (how an accent is composed) or ``NFKC`` (also width).

    Raises:
        GradingError: a rule that does not exist.
        Fails: more accents on one letter than any writing has.
    """
    _known("newline", newline, ("any", "exact"))
    _known("final_newline", final_newline, ("any", "exact"))
    _known("whitespace", whitespace, ("exact", "trim", "collapse"))
    _known("case", case, ("exact", "fold"))
    _known("form", form, ("exact", "NFC", "NFKC"))
    if newline == "any":
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if final_newline == "any":
        text = text.removesuffix("\n")
    if whitespace == "trim":
        text = "\n".join(line.strip() for line in text.strip().split("\n"))
    elif whitespace == "collapse":
        text = " ".join(text.split())
    if form != "exact":
        _few_marks(text)
        text = unicodedata.normalize(form, text)
    return text.casefold() if case == "fold" else text


MAX_MARKS = 100
_MARKED = re.compile(rf"[\u0300-\U0010ffff]{{{MAX_MARKS + 1},}}")


def _few_marks(text: str) -> None:
    """Refuse long runs of combining marks: sorting them takes a minute for each 160 KB."""
    for part in _MARKED.finditer(text):
        for mark, run in itertools.groupby(part[0], lambda c: unicodedata.combining(c) > 0):
            if mark and sum(1 for _ in run) > MAX_MARKS:
                raise Fails(f"over {MAX_MARKS} combining marks on one letter", seen=text)


def _known(rule: str, value: str, values: tuple[str, ...]) -> None:
    if value not in values:
        raise GradingError(f"{rule} is one of {', '.join(values)}, not {value!r}")


def first_difference(seen: str, wanted: str) -> str:
    """Where two texts part, for a message."""
    for number, (a, b) in enumerate(zip(seen, wanted, strict=False)):
        if a != b:
            line = wanted.count("\n", 0, number) + 1
            return f"they differ from character {number} (line {line}): {a!r} instead of {b!r}"
    if len(seen) == len(wanted):
        return "they are equal"
    return f"they are equal up to character {min(len(seen), len(wanted))}, where one ends"


@check
def equals(
    item: Item,
    *,
    expected: str,
    variants: Sequence[str] = (),
    newline: Newline = "any",
    final_newline: Newline = "any",
    whitespace: Whitespace = "exact",
    case: Case = "exact",
    form: Form = "exact",
    encoding: Encoding = "utf-8-sig",
) -> Verdict:
    """All of the text is ``expected``, or one of ``variants``, by the declared rules (`normal`).

    By default only the kind of newline and one newline at the end are no difference. It refuses
    text around the expected one, other spellings that are not declared, and another encoding.
    """
    text = item.text(encoding)

    def rule(value: str) -> str:
        return normal(
            value,
            newline=newline,
            final_newline=final_newline,
            whitespace=whitespace,
            case=case,
            form=form,
        )

    if any(rule(text) == rule(one) for one in (expected, *variants)):
        return verdict(True, "the text is as wanted", seen=text, wanted=expected)
    message = first_difference(rule(text), rule(expected))
    return verdict(False, message, seen=text, wanted=expected)


def whole_match(pattern: str, text: str) -> bool:
    """Whether all of an agent's text matches.

    Raises:
        Fails: it makes the pattern try for seconds.
    """
    with within(f"{text!r:.80} against {pattern!r:.80}"):
        return re.fullmatch(pattern, text) is not None


@check
def matches(item: Item, *, pattern: Pattern, encoding: Encoding = "utf-8-sig") -> Verdict:
    """All of the text, without one newline at its end, matches a regular expression.

    It refuses a match of just a part, and a text that this pattern cannot be tried on in seconds.
    """
    text = normal(item.text(encoding))
    found = whole_match(pattern, text)
    return verdict(found, "the whole text against the pattern", seen=text, wanted=pattern)


@check
def lines(
    item: Item,
    *,
    expected: list[str],
    order: bool = True,
    blank: Literal["exact", "ignore"] = "exact",
    whitespace: Whitespace = "exact",
    case: Case = "exact",
    encoding: Encoding = "utf-8-sig",
) -> Verdict:
    """The lines are the expected ones, each as often; ``order`` may be declared to be free.

    ``blank = "ignore"`` leaves empty lines out. It refuses a missing and a further line.
    """
    _known("blank", blank, ("exact", "ignore"))
    text = normal(item.text(encoding), whitespace=whitespace, case=case)
    seen = text.split("\n") if text else []
    wanted = [normal(line, whitespace=whitespace, case=case) for line in expected]
    if blank == "ignore":
        seen = [line for line in seen if line.strip()]
        wanted = [line for line in wanted if line.strip()]
    if not order:
        seen, wanted = sorted(seen), sorted(wanted)
    if seen == wanted:
        return verdict(True, f"all {len(wanted)} lines", seen=text, wanted="\n".join(expected))
    extra = sorted(set(seen) - set(wanted))[:5]
    missing = sorted(set(wanted) - set(seen))[:5]
    message = f"missing {missing}, further {extra}" if extra or missing else "order or number"
    return verdict(False, message, seen=text, wanted="\n".join(expected))


_GROUPING = "[ '’\u00a0\u2009\u202f]"
_CUT_BEFORE = re.compile(
    # Right before a number of its own there is no digit with a mark, no sign that belongs to it
    # (a hyphen after a letter is none) and no decimal mark without digits.
    r"(\w|\d[.,:]|(^|[^\w])[-+\u2212]|\d[-+\u2212]|(^|[\s(])\.)\Z"
)
_CUT_AFTER = re.compile(r"\w|[.,:]\d")
_GROUP_BEFORE = re.compile(rf"(?<!\d)\d{{1,3}}{_GROUPING}\Z")
_GROUP_AFTER = re.compile(rf"{_GROUPING}\d{{3}}(?!\d)")


def mentioned(text: str, fact: str) -> bool:
    """Whether a text has a value as a word or number of its own, case aside.

    ``170`` is not in ``1170``, ``170.5``, ``1,170``, ``1 170``, ``-170`` or ``000170``; ``ship``
    not in ``shipped``.
    """
    text, fact = normal(text, case="fold", form="NFC"), normal(fact, case="fold", form="NFC")
    if not fact.strip():
        raise GradingError("an empty fact is in every text; name one")
    return any(
        # What these look at fits into a few characters; more would be copied for each place.
        _begins(text[max(0, found.start() - 8) : found.start()], fact)
        and _ends(text[found.end() : found.end() + 8], fact)
        for found in re.finditer(re.escape(fact), text)
    )


def _begins(near: str, fact: str) -> bool:
    if not fact[0].isdigit():
        return re.search(r"\w\Z", near) is None
    grouped = re.match(r"\d{3}(?!\d)", fact) and _GROUP_BEFORE.search(near)
    return not grouped and _CUT_BEFORE.search(near) is None


def _ends(after: str, fact: str) -> bool:
    if not fact[-1].isdigit():
        return re.match(r"\w", after) is None
    grouped = re.search(r"(?<![\d.,])\d{1,3}\Z", fact) and _GROUP_AFTER.match(after)
    return not grouped and _CUT_AFTER.match(after) is None


@check
def states(
    item: Item,
    *,
    facts: list[list[str]],
    forbidden: Sequence[str] = (),
    encoding: Encoding = "utf-8-sig",
) -> Verdict:
    """A sentence in free words states every fact, each by one of its declared variants.

    A fact is a word or number of its own (`mentioned`). The value is the share of facts stated.
    It refuses, wholly, a text with any of ``forbidden``.
    """
    return stated(item.text(encoding), facts, forbidden)


def stated(text: str, facts: Sequence[Sequence[str]], forbidden: Sequence[str]) -> Verdict:
    """The share of the facts that a text states, each by one of its variants (`mentioned`).

    Raises:
        GradingError: no facts, or an empty one.
        Fails: it states what is forbidden.
    """
    if not facts:
        raise GradingError("facts is empty; name at least one")
    with within("the text"):
        for word in forbidden:
            if mentioned(text, word):
                raise Fails(f"it states {word!r}, which is wrong", seen=text, wanted=repr(facts))
        missing = [fact for fact in facts if not any(mentioned(text, one) for one in fact)]
    value = (len(facts) - len(missing)) / len(facts)
    message = f"not stated: {missing}" if missing else "all facts are stated"
    return Verdict(value, message, seen=text, wanted=repr(facts))
