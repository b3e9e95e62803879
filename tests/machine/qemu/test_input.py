"""Pointer and keys as QEMU gets them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import ActionError, MachineBusy, MachineLost, UnknownKey
from cua_gym.machine.base import Button
from cua_gym.machine.one_driver import OneDriver
from cua_gym.machine.qemu.input import QemuInput, _axis
from cua_gym.machine.qemu.screen import LiveScreen


class Recorder:
    """Stands for QMP and for the guest's daemon; keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.locked = 0
        self.lost = False

    def execute(self, command: str, arguments: Mapping[str, Any]) -> None:
        if self.lost:
            raise MachineLost("a cut wire")
        for event in arguments["events"]:
            data = event["data"]
            match event["type"]:
                case "abs":
                    self.said.append(f"{data['axis']}={data['value']}")
                case "btn":
                    self.said.append(f"{data['button']} {'down' if data['down'] else 'up'}")
                case "key":
                    self.said.append(f"{data['key']['data']} {'down' if data['down'] else 'up'}")

    def call(self, op: str, timeout_s: float = 5.0, **arguments: Any) -> dict[str, Any]:
        self.said.append(f"{op} {arguments}" if arguments else op)
        return {"locked": self.locked}


@pytest.fixture
def wire() -> Recorder:
    """What was said."""
    return Recorder()


@pytest.fixture
def hands(wire: Recorder) -> QemuInput:
    """An input on a 1280x800 screen."""

    def blame() -> None:
        raise MachineLost("the cause")

    screen = LiveScreen((1280, 800))
    return QemuInput(wire, wire, screen, OneDriver(), blame)  # type: ignore[arg-type]


@given(st.integers(1, 8192), st.data())
def test_every_pixel_is_its_own_place(size: int, data: st.DataObject) -> None:
    """The guest's arithmetic, value * (size - 1) / 32767, gives the pixel back."""
    pixel = data.draw(st.integers(0, size - 1))
    value = _axis("x", pixel, size)["data"]["value"]
    assert 0 <= value <= 32767
    assert round(value * (size - 1) / 32767) == pixel


def test_buttons_change_by_what_is_asked(hands: QemuInput, wire: Recorder) -> None:
    """Only differences are sent, with the position, as one event."""
    hands.pointer(0, 0, Button.LEFT)
    hands.pointer(1279, 799, Button.LEFT | Button.WHEEL_DOWN)
    hands.pointer(1279, 799)
    assert wire.said == [
        "x=0", "y=0", "left down",
        "x=32767", "y=32767", "wheel-down down",
        "x=32767", "y=32767", "left up", "wheel-down up",
    ]  # fmt: skip
    assert hands.position == (1279, 799)


def test_a_sideways_notch_goes_through_the_guests_daemon(hands: QemuInput, wire: Recorder) -> None:
    """One call when the bit goes down, none when it goes up."""
    hands.pointer(5, 5, Button.WHEEL_RIGHT)
    hands.pointer(5, 5)
    hands.pointer(5, 5, Button.WHEEL_LEFT)
    assert [s for s in wire.said if "scroll" in s] == ["scroll {'dx': 1}", "scroll {'dx': -1}"]


def test_a_point_off_the_screen_moves_nothing(hands: QemuInput, wire: Recorder) -> None:
    """It is the agent's error."""
    with pytest.raises(ActionError, match="x is 0 to 1279"):
        hands.pointer(1280, 0)
    with pytest.raises(UnknownKey):
        hands.key("entre", True)
    assert wire.said == []


def test_letting_go_lifts_all_in_reverse(hands: QemuInput, wire: Recorder) -> None:
    """Keys, buttons, and Caps Lock if it was touched and is on."""
    hands.key("ctrl", True)
    hands.key("Shift", True)
    hands.key("caps_lock", True)
    hands.key("caps_lock", False)
    hands.pointer(7, 7, Button.LEFT)
    wire.said.clear()
    wire.locked = 2
    hands.release_all()
    assert [s for s in wire.said if "=" not in s] == [
        "shift up", "ctrl up", "left up", "keymap", "caps_lock down", "caps_lock up",
    ]  # fmt: skip
    wire.said.clear()
    hands.release_all()
    assert wire.said == []


def test_a_second_driver_is_refused(hands: QemuInput) -> None:
    """Events of two threads are never mixed; the same thread may nest."""
    driver = OneDriver()
    caught: list[BaseException] = []

    def second() -> None:
        try:
            with driver.hold("a key"):
                pass
        except MachineBusy as error:
            caught.append(error)

    with driver.hold("typing"), driver.hold("a key"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(caught) == 1
    assert "another thread drives" in str(caught[0])
    with driver.hold("a key"):
        pass


def test_a_cut_wire_is_blamed_on_its_cause(hands: QemuInput, wire: Recorder) -> None:
    """The error says why, where that is known."""
    wire.lost = True
    with pytest.raises(MachineLost, match="the cause"):
        hands.key("a", True)
