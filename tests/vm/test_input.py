"""Pointer and keyboard against what the guest itself saw."""

from __future__ import annotations

import random
import re
import string

import pytest

from cua_gym import actions as a
from cua_gym.machine.base import Machine
from cua_gym.machine.hands import Hands
from tests.vm.conftest import open_app, rest, until

pytestmark = pytest.mark.vm

PRINTABLE = "".join(c for c in string.printable if c.isprintable())
TEXT = f"{PRINTABLE}\né ü ß ñ € 你好 😀\n\ttabbed\t\nlast"


def pointer(machine: Machine) -> tuple[int, int]:
    """Where the guest believes its pointer is."""
    said = machine.shell.run("xdotool getmouselocation --shell").text
    x, y = re.findall(r"^[XY]=(\d+)$", said, re.MULTILINE)
    return int(x), int(y)


def lands_on_the_exact_pixel(machine: Machine, hands: Hands, seed: int) -> None:
    """At the corners and at 20 random points."""
    width, height = machine.screen.size
    rng = random.Random(seed)
    points = [(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)]
    points += [(rng.randrange(width), rng.randrange(height)) for _ in range(20)]
    for x, y in points:
        hands.perform(a.Move(x, y))
        until(lambda x=x, y=y: pointer(machine) == (x, y), f"the pointer at ({x}, {y})", 5)  # type: ignore[misc]


def test_the_pointer_lands_on_the_exact_pixel(shared: Machine, hands: Hands) -> None:
    """At the corners and at 20 random points."""
    lands_on_the_exact_pixel(shared, hands, seed=7)


def test_a_double_click_opens(shared: Machine, hands: Hands) -> None:
    """Two clicks of one action are a double click to the desktop: Home opens its folder."""

    def opened() -> bool:
        return "Thunar" in shared.shell.run("wmctrl -l").text

    hands.perform(a.Click(70, 258, count=2))
    try:
        until(opened, "the file manager", 40)
    except pytest.fail.Exception:
        # A host that stands still for half a second in between makes two single clicks of it.
        hands.perform(a.Click(70, 258, count=2))
        # A cold start of it took 105 s on a host with ten times the work it can do.
        until(opened, "the file manager", 180)
    shared.shell.run("wmctrl -c Thunar")
    until(lambda: "Thunar" not in shared.shell.run("wmctrl -l").text, "it closed again", 30)


@pytest.fixture(scope="module")
def xev(shared: Machine) -> Machine:
    """A window that writes down button and key events."""
    open_app(
        shared,
        "sh -c 'exec xev -geometry 400x300+200+200 -event button -event keyboard >/tmp/xev.log'",
        "Event Tester",
    )
    return shared


def events(machine: Machine, pattern: str) -> int:
    """How many events match."""
    return len(re.findall(pattern, machine.shell.read("/tmp/xev.log").decode(), re.DOTALL))


@pytest.mark.parametrize(("dx", "dy", "button"), [(0, 5, 5), (0, -3, 4), (2, 0, 7), (-4, 0, 6)])
def test_scroll_counts_notches(xev: Machine, hands: Hands, dx: int, dy: int, button: int) -> None:
    """Each notch is one event of the documented button: 4 up, 5 down, 6 left, 7 right."""
    pattern = rf"ButtonPress event[^\n]*\n[^\n]*\n[^\n]*button {button},"
    before = events(xev, pattern)
    hands.perform(a.Scroll(400, 400, dx, dy))
    wanted = before + abs(dx or dy)
    until(lambda: events(xev, pattern) == wanted, f"{wanted} notches", 10)


def test_right_shift_presses_only_itself(xev: Machine, hands: Hands) -> None:
    """A right modifier does not bring its left twin."""
    hands.perform(a.Click(400, 400))
    before = events(xev, r"KeyPress event.*?Shift_L")
    hands.perform(a.Key("shift_r"))
    until(lambda: events(xev, r"keysym 0x[0-9a-f]+, Shift_R") >= 2, "Shift_R", 10)
    assert events(xev, r"KeyPress event.*?Shift_L") == before


def test_many_chords_all_arrive(xev: Machine, hands: Hands) -> None:
    """Two hundred chords are two hundred chords."""
    hands.perform(a.Click(400, 400))
    # The window manager may still be about to pass the click's release on: 0x108 instead of 0x8.
    pattern = r"KeyPress event[^\n]*\n[^\n]*\n[^\n]*state 0x1?0?8, keycode 57 "
    before = events(xev, pattern)
    for _ in range(200):
        hands.perform(a.Key("alt+n"))
    until(lambda: events(xev, pattern) == before + 200, "200 x alt+n", 20)


@pytest.fixture(scope="module")
def editor(shared: Machine) -> Machine:
    """Mousepad on an empty file, in front of everything."""
    shared.shell.run("pkill xev; true")
    shared.shell.write("/home/user/typed.txt", b"")
    open_app(shared, "mousepad /home/user/typed.txt", "typed.txt")
    return shared


@pytest.mark.parametrize("round_", range(20))
def test_typed_text_is_byte_identical(editor: Machine, hands: Hands, round_: int) -> None:
    """Printable ASCII, other scripts, emoji, tabs and newlines, saved to the byte."""
    text = f"{round_} {TEXT}"
    hands.perform(a.Key("ctrl+a"))
    hands.perform(a.Key("delete"))
    hands.perform(a.Type(text))
    rest(editor)
    hands.perform(a.Key("ctrl+s"))
    wanted = text.encode()
    until(
        lambda: editor.shell.read("/home/user/typed.txt") in (wanted, wanted + b"\n"),
        f"the file holds {wanted!r}",
        15,
    )


@pytest.mark.parametrize("layout", ["de", "fr", "us -variant dvorak", "us -variant intl"])
def test_other_layouts_type_the_same_text(editor: Machine, hands: Hands, layout: str) -> None:
    """The guest's layout is read, not assumed."""
    text = f"{layout}: test@x.org \\ ~ | //// 5^GgT-S%U~tG{{^ <<>> OpenBSD\n"
    hands.perform(a.Key("ctrl+a"))
    hands.perform(a.Key("delete"))
    rest(editor)
    try:
        editor.shell.run(f"setxkbmap {layout}")
        hands.perform(a.Type(text))
        rest(editor)
    finally:
        editor.shell.run("setxkbmap us")
    hands.perform(a.Key("ctrl+s"))
    until(
        lambda: editor.shell.read("/home/user/typed.txt").rstrip(b"\n") == text[:-1].encode(),
        f"the file holds {text!r}",
        30,
    )


def test_a_chord_means_the_layout_s_character(editor: Machine, hands: Hands) -> None:
    """On a French keyboard ctrl+a selects all, where its place on a US one would quit."""
    try:
        editor.shell.run("setxkbmap fr")
        hands.perform(a.Key("ctrl+a"))
        hands.perform(a.Key("delete"))
        hands.perform(a.Type("azerty"))
        hands.perform(a.Key("ctrl+a"))
        hands.perform(a.Type("wq"))
        rest(editor)
        hands.perform(a.Key("ctrl+s"))
        until(
            lambda: editor.shell.read("/home/user/typed.txt").rstrip(b"\n") == b"wq",
            "the file holds only what replaced the selection",
            30,
        )
    finally:
        editor.shell.run("setxkbmap us")


def test_fast_typing_survives_a_busy_guest(editor: Machine, hands: Hands) -> None:
    """Three hundred characters while two processes spin."""
    url = "https://example.org/?" + "&".join(f"Key_{i}=Val%{i}" for i in range(20))
    text = (url * 2)[:300]
    editor.shell.run("for i in 1 2; do setsid -f sh -c 'exec yes >/dev/null'; done")
    try:
        hands.perform(a.Key("ctrl+a"))
        hands.perform(a.Key("delete"))
        hands.perform(a.Type(text))
        hands.perform(a.Key("ctrl+s"))
        until(
            lambda: editor.shell.read("/home/user/typed.txt").rstrip(b"\n") == text.encode(),
            "the URL in the file",
            60,
        )
    finally:
        editor.shell.run("pkill yes", user="root")
