"""Moves of oracles in a browser that is not always listening."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cua_gym.actions import Click, Key, Type
from cua_gym.agent.browsing import fill_form, follow
from cua_gym.agent.oracle import Desk
from cua_gym.machine.base import MachineSpec, Rgb
from cua_gym.machine.desktop import NotShown
from cua_gym.machine.fake import FakeMachine

PLACES = {"^Shop$": (10, 20, 40, 10), "^Name": (0, 0, 20, 10), "^Town": (0, 50, 20, 10)}


class Eyes(Desk):
    """Sees these widgets; whether pages come and fields change is told, each at its turn."""

    def __init__(self, *sees: bool) -> None:
        super().__init__(FakeMachine(MachineSpec(backend="fake")))
        self._sees = list(sees)
        self.asked: list[Any] = []

    def node(self, role: str | None, name: str, **where: Any) -> dict[str, Any]:
        return {"box": list(PLACES[name])}

    def look(self) -> Rgb:
        return np.zeros((100, 100, 3), np.uint8)

    def until(self, command: str, timeout_s: float = 60.0) -> None:
        self.asked.append(command)
        if not self._sees.pop(0):
            raise NotShown(command)

    def focused(self, title: str, timeout_s: float = 180.0) -> None:
        if not self._sees and self.asked.count(self.asked[-1]) > 2:
            raise NotShown(title)

    def changed(self, before: Rgb, box: tuple[int, int, int, int], timeout_s: float = 60.0) -> bool:
        return box not in PLACES.values() or self._sees.pop(0)


def test_a_link_is_clicked_until_its_page_is_there():
    """Loading a page twice does no harm."""
    click = Click(30, 25)
    assert list(follow(Eyes(True), "Shop", "Shop - ")) == [click]
    assert list(follow(Eyes(False, True), "Shop", "Shop - ")) == [click, click]


def test_a_page_that_never_comes_is_an_error():
    """And not a step that was made in vain."""
    with pytest.raises(NotShown):
        list(follow(Eyes(False, False, False), "Shop", "Shop - "))


def test_a_form_is_filled_field_by_field():
    """It is sent once the last field shows something."""
    fields = {"Name": "Aino", "Town": "Carrow"}
    typed = [Click(10, 5), Key("ctrl+a"), Type("Aino"), Key("tab"), Type("Carrow")]
    assert list(fill_form(Eyes(True, True), fields, "Saved")) == [*typed, Key("enter")]
    again = list(fill_form(Eyes(False, True, True), fields, "Saved"))
    assert again == [*typed, *typed, Key("enter")]


def test_a_form_is_sent_once():
    """What the next page is called shows whether it was taken; sending it again is no remedy."""
    moves = fill_form(Eyes(True, False), {"Name": "Aino"}, "Saved")
    sent = [next(moves) for _ in range(4)]
    with pytest.raises(NotShown):
        next(moves)
    assert sent.count(Key("enter")) == 1
