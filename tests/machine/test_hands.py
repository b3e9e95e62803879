"""Promises of turning actions into events, on an input that only writes them down."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cua_gym import actions as a
from cua_gym.errors import ActionError, MachineLost, UnknownKey
from cua_gym.machine.base import Button, Frame, Rgb
from cua_gym.machine.hands import Hands
from cua_gym.machine.keymap import Keymap, named_keymap


class Notebook:
    """An Input that writes every event down and can fail at one."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.position = (0, 0)
        self.press_s = 0.02
        self.fail_on: tuple[object, ...] | None = None
        self.layout: Keymap | None = None

    def _note(self, *event: object) -> None:
        if event == self.fail_on:
            raise MachineLost("planted")
        self.events.append(event)

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        self._note(x, y, buttons)
        self.position = (x, y)

    def key(self, key: str, down: bool) -> None:
        self._note(key, down)

    def keymap(self) -> Keymap | None:
        return self.layout

    def text(self, text: str) -> None:
        self._note(text)

    def release_all(self) -> None:
        self._note("released")


class NoTime:
    """A clock on which nothing takes time."""

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0


class Unchanging:
    """A screen on which nothing is ever seen to happen."""

    size = (800, 600)
    serial = 0

    def wait_change(self, after: int, timeout_s: float) -> bool:
        assert timeout_s < 2
        return False

    def grab(self, out: Rgb | None = None) -> Frame:
        return Frame(np.empty((600, 800, 3), np.uint8), (0, 0), 0.0, 0)


@pytest.fixture
def paper() -> Notebook:
    return Notebook()


@pytest.fixture
def hands(paper: Notebook) -> Hands:
    return Hands(paper, Unchanging(), NoTime())


def test_double_click_is_two_presses_at_one_pixel(paper: Notebook, hands: Hands) -> None:
    """Both presses fall on the same pixel and every press is released."""
    hands.perform(a.Click(10, 20, count=2))
    assert paper.events == [
        (10, 20, Button.NONE),
        (10, 20, Button.LEFT),
        (10, 20, Button.NONE),
        (10, 20, Button.LEFT),
        (10, 20, Button.NONE),
    ]


def test_drag_moves_with_the_button_held_and_releases(paper: Notebook, hands: Hands) -> None:
    """Motion in between is dense, ends at the last point, and a click after it comes after."""
    hands.perform(a.Drag(((10, 10), (700, 500))))
    hands.perform(a.Click(50, 50))
    held = [e for e in paper.events if e[2] == Button.LEFT][:-1]
    assert held[0][:2] == (10, 10)
    assert held[-1][:2] == (700, 500)
    assert len(held) > 40
    release = paper.events.index((700, 500, Button.NONE))
    assert paper.events[release + 1] == (50, 50, Button.NONE)


@pytest.mark.parametrize("end", [(700, 500), (0, 0), (799, 599)])
def test_a_drag_keeps_moving_over_its_end(
    paper: Notebook, hands: Hands, end: tuple[int, int]
) -> None:
    """However short: each motion another place, on the screen, and the last is the exact end."""
    start = (end[0] + 20, end[1]) if end[0] < 400 else (end[0] - 20, end[1])
    hands.perform(a.Drag((start, end)))
    held = [e[:2] for e in paper.events if e[2] == Button.LEFT]
    after = held[held.index(end) :]
    assert len(after) > 6
    assert all(one != other for one, other in itertools.pairwise(after))
    assert all(abs(x - end[0]) <= 1 and y == end[1] for x, y in after)
    assert after[-1] == end
    assert paper.events[-1] == (*end, Button.NONE)


@pytest.mark.parametrize(
    ("scroll", "notch", "count"),
    [
        (a.Scroll(5, 5, dy=5), Button.WHEEL_DOWN, 5),
        (a.Scroll(5, 5, dy=-2), Button.WHEEL_UP, 2),
        (a.Scroll(5, 5, dx=3), Button.WHEEL_RIGHT, 3),
        (a.Scroll(5, 5, dx=-1), Button.WHEEL_LEFT, 1),
    ],
)
def test_scroll_counts_notches(
    paper: Notebook, hands: Hands, scroll: a.Scroll, notch: Button, count: int
) -> None:
    """One notch is one press and one release; positive is right and down."""
    hands.perform(scroll)
    assert [e[2] for e in paper.events].count(notch) == count
    assert paper.events[-1][2] == Button.NONE


def test_modifiers_are_released_in_reverse(paper: Notebook, hands: Hands) -> None:
    """ctrl+shift+s goes down in order and up in reverse."""
    hands.perform(a.Key("ctrl+shift+s"))
    assert paper.events == [
        ("ctrl", True),
        ("shift", True),
        ("s", True),
        ("s", False),
        ("shift", False),
        ("ctrl", False),
    ]


@pytest.mark.parametrize(
    ("layout", "combo", "places"),
    [
        (None, "ctrl+a", ["ctrl", "a"]),
        ("us", "ctrl+a", ["ctrl", "a"]),
        ("fr", "ctrl+a", ["ctrl", "q"]),
        ("fr", "ctrl+shift+z", ["ctrl", "shift", "w"]),
        ("fr", "ctrl+1", ["ctrl", "shift", "1"]),
        ("fr", "ctrl+shift+1", ["ctrl", "shift", "1"]),
        ("de", "ctrl+z", ["ctrl", "y"]),
        ("de", "ctrl+/", ["ctrl", "shift", "7"]),
        ("de", "ctrl+[", ["ctrl", "alt_r", "8"]),
        ("dvorak", "ctrl+c", ["ctrl", "i"]),
        ("fr", "alt+f4", ["alt", "f4"]),
        ("fr", "ctrl+enter", ["ctrl", "enter"]),
    ],
)
def test_a_chord_means_the_guest_layout_s_characters(
    paper: Notebook, hands: Hands, layout: str | None, combo: str, places: list[str]
) -> None:
    """Ctrl+A is the key that says A; names, and a machine that cannot say, go by place."""
    paper.layout = named_keymap(layout) if layout else None
    hands.perform(a.Key(combo))
    assert [e[0] for e in paper.events if e[1] is True] == places
    assert [e[0] for e in paper.events if e[1] is False] == places[::-1]


def test_a_chord_on_a_layout_without_latin_letters_goes_by_place(
    paper: Notebook, hands: Hands
) -> None:
    """Programs look such shortcuts up by place too."""
    paper.layout = Keymap({38: ("U+0444", "U+0424"), 10: ("U+0031", "U+0021")})
    hands.perform(a.Key("ctrl+a"))
    assert paper.events[1] == ("a", True)


def test_caps_lock_does_not_move_a_chord(paper: Notebook, hands: Hands) -> None:
    """Its capital is on the same key, and no Shift joins in."""
    paper.layout = Keymap({24: ("U+0041", "U+0061"), 50: ("Shift_L",)}, locked=2)
    hands.perform(a.Key("ctrl+a"))
    assert [e[0] for e in paper.events] == ["ctrl", "q", "q", "ctrl"]


def test_a_key_comes_up_where_it_went_down(paper: Notebook, hands: Hands) -> None:
    """Also when the layout changes in between."""
    paper.layout = named_keymap("fr")
    hands.perform(a.KeyDown("a"))
    paper.layout = named_keymap("us")
    hands.perform(a.KeyUp("a"))
    assert paper.events == [("q", True), ("q", False)]


def test_typing_lets_go_of_held_keys(paper: Notebook, hands: Hands) -> None:
    """Text typed while ctrl is held is text, and ctrl stays up afterwards."""
    hands.perform(a.KeyDown("ctrl"))
    hands.perform(a.Type("abc"))
    hands.perform(a.Type("d"))
    assert paper.events == [("ctrl", True), ("ctrl", False), ("abc",), ("d",)]


def test_a_held_modifier_is_not_pressed_twice(paper: Notebook, hands: Hands) -> None:
    """A chord with a key that KeyDown holds leaves it down, as asked."""
    hands.perform(a.KeyDown("shift"))
    hands.perform(a.Key("shift+a"))
    assert paper.events == [("shift", True), ("a", True), ("a", False)]


def test_mouse_down_holds_through_moves(paper: Notebook, hands: Hands) -> None:
    """MouseDown, Move, MouseUp is a drag by hand."""
    for action in (a.Move(1, 1), a.MouseDown(), a.Move(9, 9), a.MouseUp()):
        hands.perform(action)
    assert paper.events == [
        (1, 1, Button.NONE),
        (1, 1, Button.LEFT),
        (9, 9, Button.LEFT),
        (9, 9, Button.NONE),
    ]


@pytest.mark.parametrize(
    "action",
    [a.Click(800, 0), a.Move(0, 600), a.Drag(((0, 0), (900, 0))), a.Scroll(-1, 0, dy=1)],
)
def test_off_the_screen_does_nothing(paper: Notebook, hands: Hands, action: a.Action) -> None:
    """Impossible points are refused before any event."""
    with pytest.raises(ActionError, match="off the screen"):
        hands.perform(action)
    assert paper.events == []


def test_an_unknown_modifier_does_nothing(paper: Notebook, hands: Hands) -> None:
    """A click with a bad modifier neither moves nor presses."""
    with pytest.raises(UnknownKey):
        hands.perform(a.Click(1, 1, modifiers=("hyperspace",)))
    assert paper.events == []


def test_a_fault_in_a_click_still_releases_the_modifier(paper: Notebook, hands: Hands) -> None:
    """What went down comes up, whatever fails in between."""
    paper.fail_on = (1, 1, Button.LEFT)
    with pytest.raises(MachineLost):
        hands.perform(a.Click(1, 1, modifiers=("ctrl",)))
    assert paper.events[-1] == ("ctrl", False)


def test_release_lets_go_of_everything(paper: Notebook, hands: Hands) -> None:
    """After release nothing that was held is remembered."""
    hands.perform(a.KeyDown("alt"))
    hands.perform(a.MouseDown("right"))
    hands.release()
    hands.perform(a.Move(3, 3))
    assert paper.events[-2:] == [("released",), (3, 3, Button.NONE)]
