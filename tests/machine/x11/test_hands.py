"""Pointer and keyboard of a light desktop against what its programs saw, and when it settles."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cua_gym import actions as a
from cua_gym.clock import SystemClock
from cua_gym.machine import desktop
from cua_gym.machine.hands import Hands
from cua_gym.machine.settle import settle
from cua_gym.machine.x11.machine import X11Machine
from cua_gym.machine.x11.screen import X11Screen
from tests.machine.x11.conftest import until

pytestmark = [pytest.mark.x11, pytest.mark.slow]

PRINTABLE = "".join(c for c in string.printable if c.isprintable())
TEXT = f"{PRINTABLE}\né ü ß ñ € 你好 😀\n\ttabbed\t\nlast"


@pytest.fixture(scope="module")
def hands(shared: X11Machine) -> Hands:
    """Hands on the shared desktop."""
    return Hands(shared.input, shared.screen, SystemClock())


@pytest.fixture(scope="module")
def editor(shared: X11Machine) -> Iterator[X11Machine]:
    """An editor on an empty file, with the keyboard."""
    shared.shell.write("/home/user/typed.txt", b"")
    shared.shell.run("setsid -f mousepad /home/user/typed.txt >/dev/null 2>&1 </dev/null")
    desktop.wait_window(shared.shell, "typed.txt", 60, active=True)
    yield shared
    shared.shell.run("pkill mousepad")
    assert desktop.wait_gone(shared.shell, "typed.txt")


def saved(machine: X11Machine, hands: Hands, text: str) -> None:
    """Type in the place of all and save; the file must hold it to the byte."""
    hands.perform(a.Key("ctrl+a"))
    hands.perform(a.Key("delete"))
    hands.perform(a.Type(text))
    hands.perform(a.Key("ctrl+s"))
    wanted = text.encode()

    def there() -> bool:
        return machine.shell.read("/home/user/typed.txt") in (wanted, wanted + b"\n")

    until(there, f"the file holds {wanted!r}")


def test_text_is_byte_identical(editor: X11Machine, hands: Hands) -> None:
    """Printable ASCII, other scripts, emoji, tabs and newlines, twice."""
    for round_ in range(2):
        saved(editor, hands, f"{round_} {TEXT}")


def test_another_layout_is_seen_at_once(editor: X11Machine, hands: Hands) -> None:
    """A chord and a text mean the layout's characters, also after it has changed."""
    try:
        editor.shell.run("setxkbmap fr")
        saved(editor, hands, "azerty: 5^G @ \\ ~ | <<>>")
    finally:
        editor.shell.run("setxkbmap us")
    saved(editor, hands, "qwerty again")


def test_caps_lock_and_held_keys_are_let_go(editor: X11Machine, hands: Hands) -> None:
    """Whoever turned it on, or holds a key: a program inside, or we."""
    editor.shell.run("xdotool key Caps_Lock keydown shift mousedown 1")
    locked = "xset q | grep -c 'Caps Lock:[ ]*on'"
    assert editor.shell.run(locked).text == "1\n"
    hands.release()
    assert editor.shell.run(locked).text == "0\n"
    saved(editor, hands, "lower and UPPER")


def test_every_wheel_notch_and_button_is_seen(shared: X11Machine, hands: Hands) -> None:
    """As the documented button: 4 up, 5 down, 6 left, 7 right; the middle one is 2."""
    shared.shell.run(
        "setsid -f sh -c 'exec xev -geometry 400x300+200+200 -event button >/tmp/xev.log' "
        ">/dev/null 2>&1 </dev/null"
    )
    desktop.wait_window(shared.shell, "Event Tester", 60)
    hands.perform(a.Scroll(400, 400, 2, 5))
    hands.perform(a.Click(400, 400, button="middle"))
    hands.perform(a.Scroll(400, 400, -4, -3))
    pattern = r"ButtonPress event[^\n]*\n[^\n]*\n[^\n]*button (\d)"
    wanted = {"2": 1, "5": 5, "4": 3, "7": 2, "6": 4}

    def seen() -> dict[str, int]:
        found = re.findall(pattern, shared.shell.read("/tmp/xev.log").decode())
        return {number: found.count(number) for number in found}

    until(lambda: seen() == wanted, f"{wanted}, but {seen()}")
    shared.shell.run("pkill xev")
    assert desktop.wait_gone(shared.shell, "Event Tester")


def test_the_pointer_is_on_the_exact_pixel(shared: X11Machine) -> None:
    """At the corners too, and the frame shows it there, cut at the edge."""
    width, height = shared.screen.size
    for x, y in ((0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1), (613, 407)):
        shared.input.pointer(x, y)
        said = shared.shell.run("xdotool getmouselocation --shell").text
        assert re.findall(r"^[XY]=(\d+)$", said, re.MULTILINE) == [str(x), str(y)]
        assert shared.screen.grab().cursor == (x, y)


def test_a_frame_equals_what_the_server_shows(editor: X11Machine) -> None:
    """Only changed rows are fetched, and yet the whole is what a fresh look gives."""
    hands = Hands(editor.input, editor.screen, SystemClock())
    for number in range(12):
        hands.perform(a.Click(100 + 20 * number, 100 + 10 * number))
        hands.perform(a.Key("x"))
        rule = editor.settle
        settle(editor.screen, editor.screen.serial, rule, SystemClock())
    until(lambda: not editor.screen.wait_change(editor.screen.serial, 0.3), "a still screen")
    kept = editor.screen.grab().rgb
    editor.screen._draw(0, editor.screen.size[1])  # all of it is stale now
    assert np.array_equal(editor.screen.grab().rgb, kept)


def test_a_click_is_not_settled_by_its_own_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving alone is a change at once; with a button, a program's answer is waited for first."""
    monkeypatch.setattr("cua_gym.machine.x11.screen.REACTION_S", 3600.0)
    screen = X11Screen((40, 30))
    screen._eye = object()  # type: ignore[assignment]  # never looked with
    screen.moved((3, 4))
    assert screen.wait_change(0, 60.0)
    serial = screen.serial
    screen.moved((5, 6))
    screen.acted()
    waiter = ThreadPoolExecutor(1)
    waiting = waiter.submit(screen.wait_change, serial, 60.0)
    with pytest.raises(TimeoutError):
        waiting.result(0.2)
    screen._draw(0, 1)
    assert waiting.result(60)
    waiter.shutdown()


def test_the_desktop_is_read_as_on_a_whole_computer(editor: X11Machine) -> None:
    """Windows, accessibility tree and clipboard, by the house's own functions."""
    assert "Mousepad" in {window.app for window in desktop.windows(editor.shell)}
    found = desktop.find(editor.shell, "text", "", app="mousepad")
    assert found["box"][2] > 100
    desktop.set_clipboard(editor.shell, "naïve 你好")
    assert desktop.clipboard(editor.shell) == "naïve 你好"


def test_a_frozen_desktop_stands_still(shared: X11Machine) -> None:
    """Programs of the account stop, those that were stopped before stay stopped, root goes on."""
    ticking = shared.shell.start("while :; do echo tick; sleep 0.02; done")
    halted = shared.shell.start("echo halted; kill -STOP $$; echo resumed")
    assert ticking.wait_output("stdout", 100, 30)
    assert halted.wait_output("stdout", 6, 30)
    state = ["sh", "-c", "ps -o state= -C sleep -C sh | sort -u"]
    shared.freeze()
    try:
        # What it had said before is on its way, on a busy host for longer than it said it.
        until(lambda: not ticking.wait_output("stdout", ticking.size("stdout"), 0.5), "silence")
        assert shared.shell.run("echo root", user="root").text == "root\n"
        assert "T" in shared.shell.run(state, user="root").text
    finally:
        shared.thaw()
    assert ticking.wait_output("stdout", ticking.size("stdout") + 50, 30)
    assert halted.exit is None
    assert b"resumed" not in halted.output("stdout")
    halted.close()
    ticking.close()
