"""Mutants of text: sound checks see all of them, weak ones are found."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cua_gym.gates import text_mutants
from cua_gym.gates.text_mutants import edits, partly

from .conftest import Judge, Make, Printed, point

START = "Incident 6152\nRequest: ID\nDuration: MS ms\nReported by: operations\n"
SOLVED = "Incident 6152\nRequest: r45f\nDuration: 26840 ms\nReported by: operations\n"


def test_sound(make: Make, judged: Judge) -> None:
    """A check of the whole text takes score from every broken one, and from no other."""
    start, solved = make("start", note=START.encode()), make("solved", note=SOLVED.encode())
    found = judged(start, solved, point("text.equals", "note", expected=SOLVED))
    assert not found.offenders
    assert {
        "reverted:note",
        "absent:note",
        "emptied:note",
        "half:note:first",
        "reverted:note:line-2",
        "altered:note:line-3:digit",
        "altered:note:line-3:sign",
        "newlines:note",
        "final-newline:note",
    } <= set(found.names)


def test_untouched_lines(make: Make, judged: Judge) -> None:
    """Lines that the task left alone are not altered."""
    start, solved = make("start", note=START.encode()), make("solved", note=SOLVED.encode())
    found = judged(start, solved, point("text.equals", "note", expected=SOLVED))
    assert not [n for n in found.names if "line-1" in n or "line-4" in n]


def weak(make: Make, judged: Judge, test: str) -> set[str]:
    """Kinds of mutants that a check with this test lets pass."""
    source = (
        "@check\n"
        "def weak(item: Item, *, expected: str) -> Verdict:\n"
        "    '''Weak.'''\n"
        "    text = item.text().strip()\n"
        f"    return verdict({test})\n"
    )
    start, solved = make("start", note=None), make("solved", note=b"170\n")
    return judged(
        start, solved, point("checks.weak", "note", expected="170"), source=source
    ).kinds()


def test_prefix(make: Make, judged: Judge) -> None:
    """A check that takes any text that begins so is caught."""
    assert weak(make, judged, "text.startswith(expected)") == {"appended", "extended"}


def test_suffix(make: Make, judged: Judge) -> None:
    """A check that takes any text that ends so is caught."""
    assert weak(make, judged, "text.endswith(expected)") == {"prefixed", "sign"}


def test_beginning(make: Make, judged: Judge) -> None:
    """A check that takes any beginning of the text is caught, an empty one too."""
    found = weak(make, judged, "expected.startswith(text)")
    assert found == {"cut", "empty", "note"}


def test_absolute(make: Make, judged: Judge) -> None:
    """A check that does not look at the sign is caught."""
    assert weak(make, judged, "text.lstrip('-') == expected") == {"sign"}


def test_empty_is_zero(make: Make, judged: Judge) -> None:
    """A check that takes nothing, null and NaN for 0 is caught."""
    source = (
        "@check\n"
        "def zero(item: Item) -> Verdict:\n"
        "    '''Weak.'''\n"
        "    text = item.text().strip()\n"
        "    return verdict(text in ('', 'nan', 'null', '0', '-0'))\n"
    )
    start, solved = make("start", note=None), make("solved", note=b"0\n")
    found = judged(start, solved, point("checks.zero", "note"), source=source)
    assert found.kinds() == {"nan", "null", "empty", "note"}
    sound = judged(start, solved, point("numbers_dates.number", "note", expected=0))
    assert not sound.offenders


def test_half_done(make: Make, judged: Judge) -> None:
    """A check that looks at one of two changes lets the other be undone, and is caught."""
    start, solved = make("start", note=START.encode()), make("solved", note=SOLVED.encode())
    found = judged(start, solved, point("text.states", "note", facts=[["r45f"]]))
    assert "half:note:first" in found.offenders
    assert "reverted:note:line-3" in found.offenders


def test_strict(make: Make, judged: Judge) -> None:
    """A check that newline style or a final newline matters to is caught, unless it says so."""
    source = (
        "@check\n"
        "def strict(item: Item, *, expected: str) -> Verdict:\n"
        "    '''Too strict.'''\n"
        "    return verdict(item.text() == expected)\n"
    )
    start, solved = make("start", note=None), make("solved", note=b"a\nb\n")
    own = judged(start, solved, point("checks.strict", "note", expected="a\nb\n"), source=source)
    assert set(own.offenders) == {"newlines:note", "final-newline:note"}
    args = {"newline": "exact", "final_newline": "exact"}
    said = judged(start, solved, point("text.equals", "note", expected="a\nb\n", **args))
    assert not said.offenders


def test_free_words(make: Make, judged: Judge) -> None:
    """Words around the facts of a sentence are not altered."""
    start = make("start", note=None)
    solved = make("solved", note=b"It was r45f, with 26840 ms.\n")
    facts = [["r45f"], ["26840"]]
    assert not judged(start, solved, point("text.states", "note", facts=facts)).offenders


def test_command(make: Make, judged: Judge) -> None:
    """What a command printed is altered; that it was printed otherwise is nobody's choice."""
    start, solved = make("start", count=Printed(b"4\n")), make("solved", count=Printed(b"7\n"))
    found = judged(start, solved, point("desktop.setting", "count", expected=7))
    assert not found.offenders
    assert "altered:count:line-1:digit" in found.names
    assert not any(mutant.keeps for mutant in found.mutants if "count" in mutant.changes)


def test_settings() -> None:
    """Of ``key = value`` the value is wrong, within its quotes."""
    lines = dict(text_mutants.wrong_lines('name = "Ada"'))
    assert lines["appended"] == 'name = "Adax"'
    assert lines["empty"] == 'name = ""'
    assert dict(text_mutants.wrong_lines("  Size=12"))["digit"] == "  Size=22"


def test_many_lines(make: Make) -> None:
    """However many lines changed, there are at most 200 variants, of every kind."""
    solved = "\n".join(f"line {n} of many" for n in range(5000))
    found = text_mutants.broken(None, solved)
    assert len(found) == 200
    assert {v.where.rpartition(":")[2] for v in found} > {"digit", "nan", "cut", "appended"}


LINES = st.lists(st.sampled_from("abcd"), max_size=12)


@given(LINES, LINES)
def test_partly(before: list[str], after: list[str]) -> None:
    """With all edits undone a list is the old one, with none the new one."""
    every = edits(before, after)
    assert partly(before, after, every, set(every)) == before
    assert partly(before, after, every, set()) == after


@given(LINES, LINES, st.randoms(use_true_random=False))
def test_partly_undone(before: list[str], after: list[str], rng: random.Random) -> None:
    """With some edits undone a list has the length that those say."""
    every = edits(before, after)
    some = {e for e in every if rng.random() < 0.5}
    grown = sum((e.before is not None) - (e.after is not None) for e in some)
    assert len(partly(before, after, every, some)) == len(after) + grown
