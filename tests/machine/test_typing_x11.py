"""Typing into real programs: the guest's daemon on a virtual X server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cua_gym.machine.channel import ControlChannel
from cua_gym.machine.keyboard import KEYS
from cua_gym.machine.keymap import Keymap, named_keymap
from cua_gym.machine.text import Press, type_text
from tests.machine import guestd

Xlib = pytest.importorskip("Xlib")
from Xlib import X  # noqa: E402 - only once python-xlib is known to be there
from Xlib.display import Display  # noqa: E402
from Xlib.ext import xtest  # noqa: E402

pytestmark = [
    pytest.mark.x11,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("Xvfb"), reason="needs Xvfb (package xvfb)"),
    # python-xlib warns when a server has no cookie, as Xvfb here
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

PRINTABLE = "".join(map(chr, range(32, 127)))
MIXED = "é ü ß ñ € 你好 😀"


class Desktop:
    """A virtual screen, its daemon, and a keyboard that is XTEST."""

    def __init__(self, display: str, channel: ControlChannel, folder: Path) -> None:
        self.name = display
        self.display = Display(display)
        self.ops = channel.ops
        self.folder = folder
        self.programs: list[subprocess.Popen] = []

    def press(self, key: str, down: bool) -> None:
        """A key of a PC keyboard, by its place."""
        kind = X.KeyPress if down else X.KeyRelease
        xtest.fake_input(self.display, kind, KEYS[key].evdev + 8)
        self.display.sync()

    def layout(self, name: str) -> None:
        """What a user does with setxkbmap."""
        command = ["setxkbmap", "-display", self.name, "-model", "pc105", "-layout", name]
        subprocess.run(command, check=True)

    def start(self, *command: str) -> int:
        """Start a program, wait for its window, give it the focus."""
        environment = {**os.environ, "DISPLAY": self.name, "LC_ALL": "C.UTF-8", "HOME": "/tmp"}
        known = set(self.windows())  # before: a program may be quicker than we are
        self.programs.append(
            subprocess.Popen(
                command,
                env=environment,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
                start_new_session=True,
            )
        )
        wait_until(lambda: set(self.windows()) - known)
        window = (set(self.windows()) - known).pop()
        wanted = self.display.create_resource_object("window", window)
        wanted.set_input_focus(X.RevertToParent, X.CurrentTime)
        self.display.sync()
        return window

    def windows(self) -> list[int]:
        """Top-level windows that are on the screen and large."""
        found = []
        for window in self.display.screen().root.query_tree().children:
            size = window.get_geometry()
            viewable = window.get_attributes().map_state == X.IsViewable
            if viewable and size.width > 50 and size.height > 30:
                found.append(window.id)
        return found

    def terminal(self) -> Path:
        """xterm with a cat into the file that is returned."""
        number = len(self.programs)
        target = self.folder / f"typed-{number}"
        script = f"stty -echo -ixon lnext undef; touch ready-{number}; exec cat >{target.name}"
        self.start("xterm", "-u8", "-e", "sh", "-c", script)
        wait_until((self.folder / f"ready-{number}").exists)
        return target

    def close(self) -> None:
        """End every program, and with it what it started: an editor's D-Bus session stays else."""
        for program in self.programs:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        self.display.close()


def wait_until(condition: Callable[[], Any], seconds: float = 20) -> None:
    """Until ``condition`` holds; a failure otherwise."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def content(path: Path, expected: str) -> str:
    """What the file holds once it is as long as ``expected``, or after a while."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if path.exists() and len(path.read_bytes()) >= len(expected.encode()):
            break
        time.sleep(0.01)
    return path.read_text("utf-8") if path.exists() else ""


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    """A fresh screen."""
    with guestd.xvfb() as name, guestd.guest(display=name) as channel:
        made = Desktop(name, channel, tmp_path)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("layout", ["us", "de", "fr", "it", "us(dvorak)", "us(intl)"])
def test_terminal_gets_exact_text_on_every_layout(desktop: Desktop, layout: str) -> None:
    """All printable ASCII, other scripts, emoji, tabs and newlines, whatever the layout."""
    desktop.layout(layout)
    target = desktop.terminal()
    text = f"{PRINTABLE}\t{MIXED}\nOpenBSD\n5^GgT-S%U~tG{{^\naaaa----test@x.org \\ ~ |\n"
    type_text(text, desktop.press, ops=desktop.ops)
    assert content(target, text) == text


def test_keymap_follows_the_layout(desktop: Desktop) -> None:
    """The daemon tells the layout of now, the second group and Caps Lock included."""
    for layout in ("us", "de", "fr", "us(intl)"):
        desktop.layout(layout)
        keymap = Keymap.parse(desktop.ops.call("keymap"))
        # Strokes, not keys: later versions of a layout put more characters behind AltGr.
        named = named_keymap(layout).strokes
        assert {c: keymap.strokes[c] for c in named} == named
    desktop.layout("us")
    desktop.press("caps_lock", True)
    desktop.press("caps_lock", False)
    keymap = Keymap.parse(desktop.ops.call("keymap"))
    assert keymap.locked & 2
    assert keymap.strokes["A"].holds == ()
    assert keymap.strokes["a"].holds == ("shift",)


def test_caps_lock_does_not_change_text(desktop: Desktop) -> None:
    """Text is exact while Caps Lock is on, and stays on."""
    target = desktop.terminal()
    desktop.press("caps_lock", True)
    desktop.press("caps_lock", False)
    text = "Hello World 1! éß 你\n"
    type_text(text, desktop.press, ops=desktop.ops)
    assert content(target, text) == text
    assert desktop.ops.call("keymap")["locked"] & 2


def test_second_layout_group(desktop: Desktop) -> None:
    """With two layouts the active one counts."""
    subprocess.run(
        ["setxkbmap", "-display", desktop.name, "-layout", "us,de", "-option", "grp:menu_toggle"],
        check=True,
    )
    desktop.press("menu", True)
    desktop.press("menu", False)
    keymap = desktop.ops.call("keymap")
    assert keymap["group"] == 1
    assert Keymap.parse(keymap).strokes["z"].key == "y"


def test_typing_leaves_the_clipboards_alone(desktop: Desktop) -> None:
    """What both clipboards held is there after text of any script, and can be read and set."""
    target = desktop.terminal()
    assert desktop.ops.call("clipboard_get") == {"text": None}
    desktop.ops.call("clipboard_set", text="kept 你")
    desktop.ops.call("clipboard_set", text="marked", selection="PRIMARY")
    type_text("é2\n", desktop.press, ops=desktop.ops)
    assert content(target, "é2\n") == "é2\n"
    assert desktop.ops.call("clipboard_get") == {"text": "kept 你"}
    assert desktop.ops.call("clipboard_get", selection="PRIMARY") == {"text": "marked"}


def test_more_characters_than_spare_keys(desktop: Desktop) -> None:
    """200 different characters arrive although there are fewer spare keys; then 300 times one."""
    target = desktop.terminal()
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 200))) + "\n" + "ä" * 300 + "\n"
    type_text(text, desktop.press, ops=desktop.ops)
    assert content(target, text) == text


def test_layout_loaded_between_texts(desktop: Desktop) -> None:
    """A keymap loaded meanwhile takes the daemon's keys away; it notices."""
    target = desktop.terminal()
    for layout in ("us", "de", "us"):
        desktop.layout(layout)
        type_text("你é好\n", desktop.press, ops=desktop.ops)
    assert content(target, "你é好\n" * 3) == "你é好\n" * 3


def test_long_clipboards_go_in_pieces(desktop: Desktop) -> None:
    """A text larger than one X request is held and read whole (INCR)."""
    with guestd.guest(display=desktop.name) as other:
        big = "你é" * 80_000
        desktop.ops.call("clipboard_set", text=big)
        assert other.ops.call("clipboard_get", timeout_s=20)["text"] == big


def test_keys_up_says_what_was_down(desktop: Desktop) -> None:
    """A stuck key is named by its keycode and let go."""
    desktop.press("ctrl", True)
    assert desktop.ops.call("keys", down=37)["met"] is True
    assert desktop.ops.call("keys_up") == {"down": [37]}
    assert desktop.ops.call("keys") == {"met": True, "down": []}


def test_daemon_survives_a_new_x_server() -> None:
    """X may come late, go, and come again under the same name."""
    number = 100 + os.getpid() % 10_000  # this run's own: another may go on beside it
    name, socket = f":{number}", Path(f"/tmp/.X11-unix/X{number}")
    with guestd.guest(display=name) as channel:
        for _ in range(2):
            server = subprocess.Popen(
                ["Xvfb", name, "-screen", "0", "320x200x24", "-nolisten", "tcp"],
                stderr=subprocess.DEVNULL,
            )
            try:
                wait_until(socket.exists)
                wait_until(lambda: works(channel))
            finally:
                server.terminate()
                server.wait()
            assert not works(channel)


def works(channel: ControlChannel) -> bool:
    """Does the daemon reach X?"""
    from cua_gym.errors import MachineError

    try:
        channel.ops.call("keys")
    except MachineError:
        return False
    return True


@pytest.mark.skipif(not shutil.which("mousepad"), reason="needs mousepad")
def test_gtk_selection_is_replaced(desktop: Desktop) -> None:
    """In a GTK editor text of any script replaces the selection; 20 of 20 exact."""
    target = desktop.folder / "note.txt"
    target.write_text("")
    desktop.start("dbus-run-session", "mousepad", str(target))
    press: Press = desktop.press
    wait_until(lambda: takes_input(press, target))  # some time after its window is there
    for i in range(20):
        for key in ("ctrl", "a"):
            press(key, True)
        for key in ("a", "ctrl"):
            press(key, False)
        text = f"élan {i} {PRINTABLE} {MIXED} \t{i}\nend"
        type_text(text, press, ops=desktop.ops)
        for key in ("ctrl", "s"):
            press(key, True)
        for key in ("s", "ctrl"):
            press(key, False)
        assert content_is(target, text), target.read_text()


def takes_input(press: Press, target: Path) -> bool:
    """Whether an editor has heard a letter and the wish to save it."""
    for key, down in (("x", True), ("x", False), ("ctrl", True), ("s", True), ("s", False)):
        press(key, down)
    press("ctrl", False)
    end = time.monotonic() + 1
    while time.monotonic() < end and not target.read_text():
        time.sleep(0.02)
    return bool(target.read_text())


def content_is(path: Path, expected: str) -> bool:
    """Whether the file becomes ``expected`` within a while."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if path.read_text("utf-8") in (expected, expected + "\n"):
            return True
        time.sleep(0.02)
    return False
