"""Moves in LibreOffice wait for what they see, with few steps, and not for ever."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
import pytest

from cua_gym.actions import Action, Key, Type, Wait
from cua_gym.agent.office_moves import WAITS_S, fill_cells, page_of, pressed
from cua_gym.machine.base import Rgb
from cua_gym.machine.desktop import Window

WINDOW = Window(1, "a.xlsx", "calc", 1, 0, 24, 1280, 739, True, False, "normal")


def screen(*points: tuple[int, int]) -> Rgb:
    """White in these points (x, y), else black."""
    picture = np.zeros((800, 1280, 3), np.uint8)
    for x, y in points:
        picture[y, x] = 255
    return picture


def play(move: Generator[Action, Any, Rgb], screens: Iterable[Rgb]) -> tuple[list[Action], Rgb]:
    """What it does while it is shown one screen after the other, the last one for ever."""
    done = [next(move)]
    shown = iter(screens)
    last = screen()
    while True:
        last = next(shown, last)
        try:
            done.append(move.send(({"screenshot": last}, {})))
        except StopIteration as end:
            return done, end.value


def test_it_goes_on_when_its_box_changes():
    """Not when something beside it does."""
    beside, within = screen((50, 50)), screen((15, 15))
    done, seen = play(pressed("esc", screen(), (10, 10, 20, 20)), [beside, beside, within])
    assert done == [Key("esc"), Wait(WAITS_S[0]), Wait(WAITS_S[1])]
    assert seen is within


def test_it_goes_on_after_a_minute():
    """The checks will tell what came of it."""
    done, _ = play(pressed("esc", screen(), (10, 10, 20, 20)), [])
    assert done == [Key("esc"), *map(Wait, WAITS_S)]
    assert sum(WAITS_S) == pytest.approx(60, abs=5)


def test_a_range_is_filled_by_alt_enter():
    """Each key is pressed only once the one before shows."""
    x, y, _, _ = page_of(WINDOW)
    box, left, filled = screen((10, 140)), screen(), screen((x, y))
    shown = [screen(), box, box, left, left, filled]
    done, seen = play(fill_cells(WINDOW, screen(), "B2:B9", "=A2*2"), shown)
    keys = [Key("ctrl+shift+t"), Wait(WAITS_S[0]), Type("B2:B9"), Key("enter"), Type("=A2*2")]
    assert done == [*keys, Key("alt+enter")]
    assert seen is filled
