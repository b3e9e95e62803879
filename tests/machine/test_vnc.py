"""The VNC wire against real servers: TigerVNC's Xvnc, and QEMU's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cua_gym.errors import ActionError, MachineError, MachineLost, UntypableText
from cua_gym.machine.base import Button
from cua_gym.machine.keyboard import KEYS
from cua_gym.machine.keymap import named_keymap
from cua_gym.machine.text import Pace
from cua_gym.machine.vnc import VncWire, connect_vnc
from cua_gym.machine.vnc_keys import keysym_number, scan_code

Xlib = pytest.importorskip("Xlib")
from Xlib import X  # noqa: E402 - only once python-xlib is known to be there
from Xlib.display import Display  # noqa: E402
from Xlib.error import ConnectionClosedError  # noqa: E402

needs_xvnc = [
    pytest.mark.x11,
    pytest.mark.skipif(not shutil.which("Xvnc"), reason="needs Xvnc (tigervnc-standalone-server)"),
]
needs_qemu = pytest.mark.skipif(not shutil.which("qemu-system-x86_64"), reason="needs QEMU")
QUICK = Pace(blind_gap_s=0.002)


def wait_until(condition: Callable[[], Any], seconds: float = 15) -> None:
    """Until ``condition`` holds; a failure otherwise."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


class Xvnc:
    """A TigerVNC server with an X display."""

    def __init__(self, folder: Path, *options: str) -> None:
        read, write = os.pipe()
        self.path = folder / "vnc.sock"
        command = ["Xvnc", "-displayfd", str(write), "-rfbport", "-1", "-rfbunixpath"]
        command += [str(self.path), "-geometry", "640x480", "-depth", "24"]
        self.process = subprocess.Popen(
            [*command, "-SecurityTypes", "None", "-extension", "GLX", "-noreset", *options],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        try:
            with os.fdopen(read) as answer:
                self.name = f":{answer.readline().strip()}"
            self.display = Display(self.name)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def fill(self, colour: int) -> None:
        """The whole screen in one colour."""
        root = self.display.screen().root
        context = root.create_gc(foreground=colour, subwindow_mode=X.IncludeInferiors)
        size = root.get_geometry()
        root.fill_rectangle(context, 0, 0, size.width, size.height)
        self.display.sync()

    def pointer(self) -> tuple[int, int, int]:
        """Where X has the pointer, and its buttons."""
        found = self.display.screen().root.query_pointer()
        return found.root_x, found.root_y, found.mask & 0x1F00

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(ConnectionClosedError):  # a test may have killed it
            self.display.close()
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def server(short_folder: Path) -> Iterator[Xvnc]:
    """A fresh server."""
    made = Xvnc(short_folder)
    yield made
    made.close()


@pytest.fixture
def wire(server: Xvnc) -> Iterator[VncWire]:
    """Connected to it."""
    with connect_vnc(server.path, pace=QUICK) as made:
        yield made


@pytest.mark.usefixtures("server")
class TestXvnc:
    """Screen and hands over Xvnc."""

    pytestmark = needs_xvnc

    def test_first_picture_is_whole_and_right(self, server: Xvnc) -> None:
        """A picture grabbed right after connecting shows the lit screen, not black."""
        server.fill(0x20C040)
        with connect_vnc(server.path) as wire:
            frame = wire.screen.grab()
            assert wire.screen.size == (640, 480)
            assert frame.rgb.shape == (480, 640, 3)
            assert frame.rgb[100, 100].tolist() == [0x20, 0xC0, 0x40]

    def test_changes_are_pushed(self, server: Xvnc, wire: VncWire) -> None:
        """50 of 50 changes arrive, each in a newer picture; a still screen gives none."""
        for blue in range(5, 255, 5):  # not 0: the screen is black, and black on it no change
            before = wire.screen.serial
            server.fill(blue)
            assert wire.screen.wait_change(before, 20)
            wait_until(lambda: wire.screen.grab().rgb[240, 320, 2] == blue)  # noqa: B023
        assert not wire.screen.wait_change(wire.screen.serial, 0.2)
        a, b = wire.screen.grab(), wire.screen.grab()
        assert not np.shares_memory(a.rgb, b.rgb)

    @pytest.mark.skipif(not shutil.which("xrandr"), reason="needs xrandr (x11-xserver-utils)")
    def test_resize_gives_the_new_size(self, server: Xvnc, wire: VncWire) -> None:
        """After a change of mode size and picture are the new ones, wholly painted."""
        subprocess.run(["xrandr", "-display", server.name, "-s", "1024x768"], check=True)
        wait_until(lambda: wire.screen.size == (1024, 768))
        server.fill(0x0000FF)
        wait_until(lambda: (wire.screen.grab().rgb[760, 1000] == [0, 0, 255]).all())
        assert wire.screen.grab().rgb.shape == (768, 1024, 3)
        wire.input.pointer(1023, 767)
        wait_until(lambda: server.pointer()[:2] == (1023, 767))

    def test_pointer_is_exact(self, server: Xvnc, wire: VncWire) -> None:
        """Corners and points in between, buttons as asked; off the screen is refused."""
        for point in [(0, 0), (639, 479), (639, 0), (0, 479), (17, 301), (320, 240)]:
            wire.input.pointer(*point)
            wait_until(lambda: server.pointer() == (*point, 0))  # noqa: B023
            assert wire.input.position == point
        wire.input.pointer(5, 5, Button.LEFT | Button.RIGHT)
        wait_until(lambda: server.pointer() == (5, 5, X.Button1Mask | X.Button3Mask))
        wire.input.release_all()
        wait_until(lambda: server.pointer() == (5, 5, 0))
        with pytest.raises(ActionError, match="x is 0 to 639"):
            wire.input.pointer(640, 0)

    @pytest.mark.parametrize("layout", ["us", "de", "dvorak"])
    def test_text_is_exact(self, server: Xvnc, tmp_path: Path, layout: str) -> None:
        """Printable ASCII and what the layout has arrive in a terminal as they are."""
        x_layout = {"dvorak": "us(dvorak)"}.get(layout, layout)
        command = ["setxkbmap", "-display", server.name, "-model", "pc105", "-layout", x_layout]
        subprocess.run(command, check=True)
        dead = "" if layout == "us" else "^`"
        text = "".join(chr(c) for c in range(32, 127) if chr(c) not in dead)
        text += {"us": "", "de": "äöüß€@", "dvorak": ""}[layout] + "\tend\n"
        script = "stty -echo -ixon lnext undef; : >typed; touch ready; exec cat >>typed"
        terminal = subprocess.Popen(
            ["xterm", "-u8", "-e", "sh", "-c", script],
            env={**os.environ, "DISPLAY": server.name, "LC_ALL": "C.UTF-8"},
            cwd=tmp_path,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until((tmp_path / "ready").exists)
            with connect_vnc(server.path, layout=layout, server_layout=layout, pace=QUICK) as wire:
                root = server.display.screen().root
                window = max(root.query_tree().children, key=lambda w: w.get_geometry().width)
                window.set_input_focus(X.RevertToParent, X.CurrentTime)
                server.display.sync()
                wire.input.text(text)
                wait_until(lambda: len((tmp_path / "typed").read_bytes()) >= len(text.encode()))
            assert (tmp_path / "typed").read_text("utf-8") == text
        finally:
            terminal.kill()
            terminal.wait()

    def test_right_shift_is_only_right_shift(self, server: Xvnc, wire: VncWire) -> None:
        """A modifier presses itself and not its twin; release_all lets go."""
        wire.input.key("shift_r", True)
        wait_until(lambda: self.down(server) == {62})
        wire.input.key("ctrl", True)
        wait_until(lambda: self.down(server) == {62, 37})
        wire.input.release_all()
        wait_until(lambda: self.down(server) == set())

    @staticmethod
    def down(server: Xvnc) -> set[int]:
        """Keycodes that X has down."""
        bits = server.display.query_keymap()
        return {8 * i + b for i in range(32) for b in range(8) if bits[i] >> b & 1}

    def test_untypable_is_refused(self, wire: VncWire) -> None:
        """Without the guest's daemon what the layout lacks is refused by name."""
        with pytest.raises(UntypableText, match="'你'"):
            wire.input.text("abc 你")

    def test_lost_connection_is_made_again(self, server: Xvnc, wire: VncWire) -> None:
        """A client that takes the server for itself costs us nothing but a reconnection."""
        before = wire.screen.serial
        wire.live.close()
        wait_until(lambda: wire._connection.lost)
        server.fill(0x00FF00)
        frame = wire.screen.grab()
        assert frame.rgb[240, 320].tolist() == [0, 255, 0]
        assert frame.serial > before

    def test_dead_server_is_machine_lost(self, server: Xvnc, wire: VncWire) -> None:
        """A server that is gone is MachineLost, also for one who waits for a change."""
        failures: list[Exception] = []

        def wait() -> None:
            try:
                wire.screen.wait_change(wire.screen.serial + 10, 20)
            except MachineLost as error:
                failures.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        server.process.kill()
        waiting.join(10)
        assert failures
        with pytest.raises(MachineLost, match="connecting again failed"):
            wire.screen.grab()

    def test_connections_leak_nothing(self, server: Xvnc) -> None:
        """30 connections leave no descriptor and no thread."""
        connect_vnc(server.path).close()

        def used() -> tuple[int, int]:
            return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()

        before = used()
        for _ in range(30):
            connect_vnc(server.path).close()
        wait_until(lambda: used() == before)


@pytest.mark.x11
# vncdotool 1.4 takes DES, VNC's own cipher, from where cryptography has moved it away
@pytest.mark.filterwarnings("ignore:TripleDES has been moved")
@pytest.mark.skipif(not shutil.which("vncpasswd"), reason="needs vncpasswd (tigervnc-tools)")
def test_password(short_folder: Path) -> None:
    """The right one connects, a wrong one or none is refused with the server's words."""
    made = subprocess.run(["vncpasswd", "-f"], input=b"secret12\n", capture_output=True, check=True)
    file = short_folder / "passwd"
    file.write_bytes(made.stdout)
    file.chmod(0o600)
    server = Xvnc(short_folder, "-SecurityTypes", "VncAuth", "-PasswordFile", str(file))
    try:
        connect_vnc(server.path, password="secret12").close()
        for wrong in ("secret1", None):
            with pytest.raises(MachineError, match="refused"):
                connect_vnc(server.path, password=wrong)
    finally:
        server.close()


@pytest.mark.parametrize("password", ["P@ssw0rd@2016", "ñandú123"])
def test_long_passwords_are_refused_with_the_reason(password: str) -> None:
    """What VNC would cut off is refused before anything is connected."""
    with pytest.raises(ValueError, match="at most 8 bytes"):
        connect_vnc("/nowhere", password=password)


def test_nobody_listens() -> None:
    """No server is MachineLost with the cause; a server of something else is named so."""
    with pytest.raises(MachineLost, match="no VNC server answers"):
        connect_vnc("/nonexistent/vnc.sock")
    with pytest.raises(ValueError, match="host:port"):
        connect_vnc("localhost:vnc")
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        with pytest.raises(MachineError, match="does not speak VNC"):
            connect_vnc(ours)


@needs_qemu
def test_qemu_firmware_screen(short_folder: Path) -> None:
    """QEMU's own server: the firmware's text is there, keys go by place, its size is right."""
    path = short_folder / "vnc.sock"
    qemu = subprocess.Popen(
        ["qemu-system-x86_64", "-nodefaults", "-accel", "tcg", "-m", "32", "-vga", "std",
         "-display", "none", "-vnc", f"unix:{path}", "-net", "none"],
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with connect_vnc(path, retry_s=30) as wire:
            wait_until(lambda: wire.screen.grab().rgb.any())
            # The firmware goes from mode to mode, so only one picture's size is compared with it.
            wait_until(lambda: wire.screen.grab().rgb.shape == (*wire.screen.size[::-1], 3))
            assert wire.screen.size[0] >= 640
            assert wire.live.extended_keys
            assert wire.live.name.startswith("QEMU")
            wire.input.key("a", True)
            wire.input.release_all()
            with pytest.raises(ActionError, match="sideways"):
                wire.input.pointer(1, 1, Button.WHEEL_LEFT)
    finally:
        qemu.kill()
        qemu.wait()


def test_keysyms_agree_with_shift() -> None:
    """A held Shift gives the shifted keysym, so QEMU presses no Caps Lock by itself."""
    us, german = named_keymap("us"), named_keymap("de")
    assert keysym_number(us, "a", []) == ord("a")
    assert keysym_number(us, "a", ["shift"]) == ord("A")
    assert keysym_number(us, "1", ["shift_r"]) == ord("!")
    assert keysym_number(german, "q", ["alt_r"]) == ord("@")
    assert keysym_number(german, "e", ["alt_r"]) == 0x010020AC
    assert keysym_number(us, "shift", ["shift"]) == 0xFFE1


@pytest.mark.parametrize("name", KEYS)
def test_every_key_has_a_keysym_and_a_scan_code(name: str) -> None:
    """No key is lost over VNC, whatever the server's layout; scan codes are distinct."""
    for layout in ("us", "de", "fr"):
        assert keysym_number(named_keymap(layout), name, []) > 0
    codes = [scan_code(key.evdev) for key in KEYS.values()]
    assert len(set(codes)) == len(codes)
    assert max(codes) < 0x100
