"""Wrong values beside a right one, and the choice among too many."""

from __future__ import annotations

import itertools

import pytest

from cua_gym.gates.variants import altered, place, spread


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (
            "24",
            {
                "digit": "34",
                "appended": "247",
                "extended": "24 or so",
                "prefixed": "124",
                "cut": "2",
                "nan": "nan",
                "null": "null",
                "sign": "-24",
                "empty": "",
            },
        ),
        ("-9.50", {"digit": "-1.50", "appended": "-9.50x", "prefixed": "-19.50", "sign": "9.50"}),
        ("0", {"digit": "1", "appended": "07"}),
        ("r45f", {"digit": "r55f", "appended": "r45fx", "prefixed": "xr45f", "cut": "r45"}),
        ("2025-03-14 at 9", {"digit": "3025-03-14 at 9", "digit-2": "2025-03-14 at 1"}),
        ("5 kg", {"sign": "-5 kg"}),
        (" word ", {"appended": "wordx", "empty": ""}),
    ],
)
def test_altered(value: str, wrong: dict[str, str]) -> None:
    """Each way of being wrong gives a value that nobody would take for the right one."""
    assert wrong.items() <= dict(altered(value)).items()


def test_not_within_a_tolerance() -> None:
    """Of a decimal number no last digit is changed, cut or added; zero has no sign."""
    assert "cut" not in dict(altered("0.125"))
    assert all(abs(float(w) - 9.5) > 1 for h, w in altered("9.50") if h in ("digit", "sign"))
    assert "sign" not in dict(altered("0"))


def test_nothing_of_nothing() -> None:
    """A blank value has no wrong ones, and no wrong one is the right one."""
    assert not list(altered("  "))
    assert "nan" not in dict(altered("nan"))
    assert "null" not in dict(altered(" null"))


def test_spread() -> None:
    """A choice among many is even, in order, always the same, and not of one kind only."""
    items = [(place, kind) for place in range(900) for kind in range(9)]
    chosen = spread(items, 200)
    assert len(chosen) == 200
    assert chosen == sorted(chosen) == spread(items, 200)
    assert {kind for _, kind in chosen} == set(range(9))
    gaps = [b[0] - a[0] for a, b in itertools.pairwise(chosen)]
    assert max(gaps) <= 10
    assert spread(items[:7]) == items[:7]


def test_place() -> None:
    """What stands in a mutant's name is one word without a pattern's signs."""
    assert place("a b:c*[1]") == "a-b-c-1"
    assert len(place("x" * 500)) <= 60
