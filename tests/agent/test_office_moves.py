"""What an oracle sees of the screen, and moves in LibreOffice that wait for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.office_moves import Box, fill_cells, page_of, pressed
from cua_gym.agent.oracle import Desk
from cua_gym.machine.base import MachineSpec, Rgb
from cua_gym.machine.desktop import Window
from cua_gym.machine.fake import BUTTON_BOX, FakeMachine

WINDOW = Window(1, "a.xlsx", "calc", 1, 0, 24, 1280, 739, True, False, "normal")
TEXT = (10, 200, 100, 20)
BUTTON = (BUTTON_BOX[0], BUTTON_BOX[1], 50, 20)


@pytest.fixture
def machine() -> Iterator[FakeMachine]:
    """A toy desktop."""
    with FakeMachine(MachineSpec(backend="fake")) as machine:
        yield machine


def test_a_box_is_looked_at_and_nothing_beside_it(machine: FakeMachine):
    """What is typed changes the text area, not the button."""
    desk = Desk(machine)
    before = desk.look()
    assert not desk.changed(before, TEXT, timeout_s=0.01)
    machine.text("a")
    assert desk.changed(before, TEXT, timeout_s=0.01)
    assert not desk.changed(before, BUTTON, timeout_s=0.01)


def test_a_change_is_waited_for(machine: FakeMachine):
    """One beside the box does not end the wait."""
    desk = Desk(machine)
    before = desk.look()
    within = threading.Timer(0.1, machine.text, ("a",))

    def point() -> None:
        machine.pointer(500, 500)
        within.start()

    beside = threading.Timer(0.05, point)
    beside.start()
    assert desk.changed(before, TEXT)
    assert machine.position == (500, 500)
    beside.join()
    within.join()


def test_a_key_is_pressed_and_its_effect_seen(machine: FakeMachine):
    """Before it is let go on."""
    move = pressed(Desk(machine), "ctrl+1", TEXT)
    assert next(move) == Key("ctrl+1")
    machine.text("a")
    with pytest.raises(StopIteration):
        move.send(None)


class Calc(Desk):
    """A slow Calc: the frame of its Name Box is blue a few looks after the click, and so on."""

    def __init__(self, machine: FakeMachine, looks: int) -> None:
        super().__init__(machine)
        self.boxes: list[Box] = []
        self._frames = [False] * looks + [True] * (1 + looks) + [False]
        self.looked = 0

    def look(self) -> Rgb:
        picture = np.full((800, 1280, 3), 240, np.uint8)
        if self.looked < len(self._frames) and self._frames[self.looked]:
            picture[WINDOW.y + 110 : WINDOW.y + 140, 5] = (53, 132, 228)
        self.looked += 1
        return picture

    def changed(self, before: Rgb, box: Box, timeout_s: float = 60.0) -> bool:
        self.boxes.append(box)
        return True


@pytest.mark.parametrize(("cells", "last"), [("B2:B9", "alt+enter"), ("Notes.B2", "enter")])
@pytest.mark.parametrize("looks", [0, 3])
def test_cells_are_filled_through_the_name_box(
    machine: FakeMachine, cells: str, last: str, looks: int
):
    """It is seen to get the keyboard and to lose it before the formula is typed."""
    desk = Calc(machine, looks)
    moves = fill_cells(desk, WINDOW, cells, "=A2*2")
    assert next(moves) == Click(52, 149)
    assert next(moves) == Key("ctrl+a")
    assert desk.looked == looks + 1
    assert next(moves) == Type(cells)
    assert next(moves) == Key("enter")
    assert next(moves) == Type("=A2*2")
    assert desk.looked == 2 * looks + 2
    assert next(moves) == Key(last)
    assert list(moves) == []
    assert desk.boxes == [page_of(WINDOW)]
