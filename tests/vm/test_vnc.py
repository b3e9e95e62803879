"""The VNC wire on the image's desktop: QEMU's own server, reached by socket pairs alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from cua_gym import actions as a
from cua_gym.clock import SystemClock
from cua_gym.errors import UntypableText
from cua_gym.machine.base import Button, Input, Machine, MachineSpec, Screen, Shell, State
from cua_gym.machine.hands import Hands
from cua_gym.machine.qemu.machine import QemuMachine
from cua_gym.machine.vnc import VncWire
from cua_gym.testing import MachineContract
from tests.vm.conftest import open_app, rest, until
from tests.vm.test_input import TEXT, events, lands_on_the_exact_pixel

pytestmark = pytest.mark.vm


class VncMachine:
    """A machine that is seen and driven by VNC alone; its shell is SSH."""

    def __init__(self, machine: QemuMachine) -> None:
        self._machine = machine
        self._wire = machine.vnc()

    @property
    def spec(self) -> MachineSpec:
        return self._machine.spec

    @property
    def screen(self) -> Screen:
        return self._wire.screen

    @property
    def input(self) -> Input:
        return self._wire.input

    @property
    def shell(self) -> Shell:
        return self._machine.shell

    @property
    def kept(self) -> Path | None:
        return self._machine.kept

    def snapshot(self, key: str) -> State:
        self.input.release_all()
        return self._machine.snapshot(key)

    def restore(self, state: State) -> None:
        self._wire.close()
        self._machine.restore(state)
        self._wire = self._machine.vnc()

    def freeze(self) -> None:
        self.input.release_all()
        self._machine.freeze()

    def thaw(self) -> None:
        self._machine.thaw()

    def check(self) -> None:
        self._machine.check()

    def close(self) -> None:
        self._wire.close()
        self._machine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class TestVncMachine(MachineContract):
    """A machine whose screen and input are the VNC wire keeps the machine's contract."""

    @pytest.fixture
    def machine(self) -> Iterator[Machine]:
        """A fresh machine for each promise: some end it."""
        with VncMachine(QemuMachine.start(MachineSpec())) as machine:
            yield machine


@pytest.fixture(scope="module")
def qemu() -> Iterator[QemuMachine]:
    """One machine for the tests below, which leave it as they found it."""
    with QemuMachine.start(MachineSpec()) as machine:
        yield machine


@pytest.fixture(scope="module")
def wire(qemu: QemuMachine) -> Iterator[VncWire]:
    """Connected to it, with the guest's daemon."""
    with qemu.vnc() as made:
        yield made


@pytest.fixture
def hands(wire: VncWire) -> Iterator[Hands]:
    """Hands over VNC; nothing stays down."""
    hands = Hands(wire.input, wire.screen, SystemClock())
    yield hands
    hands.release()


def test_nothing_listens(qemu: QemuMachine, wire: VncWire) -> None:
    """While a client is connected the server has no port and no socket file."""
    assert wire.live.qemu
    links = [fd.readlink().as_posix() for fd in Path(f"/proc/{qemu.pid}/fd").iterdir()]
    inodes = {m[1] for link in links if (m := re.fullmatch(r"socket:\[(\d+)\]", link))}
    assert inodes

    def table(name: str) -> list[list[str]]:
        return [line.split() for line in Path("/proc/net", name).read_text().splitlines()]

    assert not inodes & {words[9] for words in table("tcp") + table("tcp6")}
    mine = [words for words in table("unix") if words[6] in inodes]
    assert mine
    assert not [words for words in mine if len(words) > 7], "a name in the file system"


def test_frames_equal_the_pushed_ones(qemu: QemuMachine, wire: VncWire) -> None:
    """At rest VNC and D-Bus show the same pixels, also the first frame of a new client."""
    for x, y in ((3, 3), (640, 400), (1279, 799)):
        wire.input.pointer(x, y)
        rest(qemu)
        wanted = qemu.screen.grab().rgb
        until(lambda w=wanted: np.array_equal(wire.screen.grab().rgb, w), "the same picture", 5)  # type: ignore[misc]
    with qemu.vnc() as fresh:
        assert np.array_equal(fresh.screen.grab().rgb, wanted)


def test_another_mode_is_seen_whole(qemu: QemuMachine, wire: VncWire) -> None:
    """After a change of mode size and pixels are the new ones, and so they are back again."""
    for width, height in ((1024, 768), (1280, 800)):
        qemu.shell.run(f"xrandr -s {width}x{height}")
        until(lambda w=width, h=height: wire.screen.size == (w, h), "the new size", 10)  # type: ignore[misc]
        rest(qemu)
        wanted = qemu.screen.grab().rgb
        assert wanted.shape == (height, width, 3)
        until(lambda w=wanted: np.array_equal(wire.screen.grab().rgb, w), "the same picture", 5)  # type: ignore[misc]


def test_the_pointer_lands_on_the_exact_pixel(qemu: QemuMachine, hands: Hands) -> None:
    """At the corners and at 20 random points."""
    lands_on_the_exact_pixel(qemu, hands, seed=11)


@pytest.fixture(scope="module")
def xev(qemu: QemuMachine) -> Iterator[QemuMachine]:
    """A window that writes down button events."""
    command = "sh -c 'exec xev -geometry 400x300+200+200 -event button >/tmp/xev.log'"
    open_app(qemu, command, "Event Tester")
    yield qemu
    qemu.shell.run("pkill xev; true")


@pytest.mark.parametrize(("dx", "dy", "button"), [(0, 5, 5), (0, -3, 4), (2, 0, 7), (-4, 0, 6)])
def test_scroll_counts_notches(
    xev: QemuMachine, hands: Hands, dx: int, dy: int, button: int
) -> None:
    """Each notch is one event; sideways ones are the daemon's."""
    pattern = rf"ButtonPress event[^\n]*\n[^\n]*\n[^\n]*button {button},"
    before = events(xev, pattern)
    hands.perform(a.Scroll(400, 400, dx, dy))
    wanted = before + abs(dx or dy)
    until(lambda: events(xev, pattern) == wanted, f"{wanted} notches", 10)


def buttons(machine: QemuMachine) -> list[tuple[str, int, int]]:
    """Presses and releases of the left button that the window saw: kind, x, y on the screen."""
    log = machine.shell.read("/tmp/xev.log").decode()
    pattern = r"Button(\w+) event[^\n]*\n[^\n]*root:\((\d+),(\d+)\),\n[^\n]*button 1,"
    return [(kind, int(x), int(y)) for kind, x, y in re.findall(pattern, log)]


def test_a_click_after_a_drag_is_no_part_of_it(xev: QemuMachine, hands: Hands) -> None:
    """Events arrive in order, each on its own pixel."""
    before = len(buttons(xev))
    hands.perform(a.Drag(((250, 260), (450, 400))))
    hands.perform(a.Click(300, 310))
    wanted = [("Press", 250, 260), ("Release", 450, 400)]
    wanted += [("Press", 300, 310), ("Release", 300, 310)]
    until(lambda: buttons(xev)[before:] == wanted, f"{wanted}", 10)


def test_a_lost_connection_leaves_no_button_down(xev: QemuMachine, wire: VncWire) -> None:
    """The button of a client that QEMU lost is let go by the next one."""
    before = len(buttons(xev))
    wire.input.pointer(350, 350, Button.LEFT)
    until(lambda: len(buttons(xev)) == before + 1, "the press", 10)
    wire.live.close()
    until(lambda: wire._connection.lost is not None, "the loss", 10)
    wire.input.release_all()
    wanted = [("Press", 350, 350), ("Release", 350, 350)]
    until(lambda: buttons(xev)[before:] == wanted, "the release", 10)


@pytest.fixture(scope="module")
def editor(qemu: QemuMachine) -> QemuMachine:
    """Mousepad on an empty file, in front of everything."""
    qemu.shell.write("/home/user/typed.txt", b"")
    open_app(qemu, "mousepad /home/user/typed.txt", "typed.txt")
    return qemu


def saves(editor: QemuMachine, wire: VncWire | QemuMachine, text: str) -> None:
    """Put ``text`` in place of everything and save: the file is that, to the byte.

    A loaded guest takes seconds to save; the wait is not what is tested.
    """
    hands = Hands(wire.input, wire.screen, SystemClock())
    hands.perform(a.Key("ctrl+a"))
    hands.perform(a.Key("delete"))
    hands.perform(a.Type(text))
    hands.perform(a.Key("ctrl+s"))
    wanted = text.encode()
    until(
        lambda: editor.shell.read("/home/user/typed.txt") in (wanted, wanted + b"\n"),
        f"the file holds {wanted!r}",
        60,
    )


@pytest.mark.parametrize("round_", range(20))
def test_typed_text_is_byte_identical(editor: QemuMachine, wire: VncWire, round_: int) -> None:
    """Printable ASCII, other scripts, emoji, tabs and newlines, with no pause before the save."""
    saves(editor, wire, f"{round_} {TEXT}")


def test_another_layout(editor: QemuMachine, wire: VncWire) -> None:
    """Keys go by place, so a German guest behind an American server gets the same text."""
    try:
        editor.shell.run("setxkbmap de")
        saves(editor, wire, "de: test@x.org \\ ~ | //// {^} <<>> äöü")
    finally:
        editor.shell.run("setxkbmap us")


def test_caps_lock_changes_no_text_and_is_let_go(editor: QemuMachine, wire: VncWire) -> None:
    """QEMU's own correction of Caps Lock does not correct what is planned already."""
    saves(editor, wire, "small")
    wire.input.key("caps_lock", True)
    wire.input.key("caps_lock", False)
    until(lambda: wire.input.keymap().locked == 2, "Caps Lock", 10)
    saves(editor, wire, "Hello_World-42")
    assert wire.input.keymap().locked == 2
    wire.input.release_all()
    until(lambda: wire.input.keymap().locked == 0, "Caps Lock off", 10)


def test_viewers_that_come_and_go_change_no_text(editor: QemuMachine) -> None:
    """What the machine's own input types is left alone by VNC clients that watch."""
    enough = threading.Event()

    def look() -> None:
        while not enough.wait(0.2):
            with editor.vnc() as viewer:
                assert viewer.screen.grab().rgb.any()

    viewing = threading.Thread(target=look)
    viewing.start()
    try:
        saves(editor, editor, "Ctrl, Shift_And (Super) STAY {up} while OTHERS look: é 你好")
    finally:
        enough.set()
        viewing.join()


def test_without_the_daemon_the_rest_of_unicode_is_refused(editor: QemuMachine) -> None:
    """A machine that has nothing but VNC types its layout's characters, and no others."""
    with editor.vnc(daemon=False) as bare:
        saves(editor, bare, r"Hello_World-42 (a>b) & {x\|y} #~$ tail")
        with pytest.raises(UntypableText, match=r"'é'.*'你'.*'😀'"):
            bare.input.text(TEXT)
        saves(editor, bare, "nothing was typed")
