"""A red button on an empty screen, which jumps when it is hit and after three clicks beside it.

It runs inside the machine: ``python3 point_at.py SEED``. A line of targets.txt says of each target
whether it was hit. A square in the corner counts what happened, for whoever trains on pictures.
It is the last corner, which is painted last: when it has changed, the button has too.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

BUTTON = (64, 56)
"""Width and height in pixels: wherever it is, the middle of some 40 x 40 cell is on it."""
TRIES = 3
BOARD_PX = 8


class Targets:
    """The rules: where the button is, and what clicks do.

    Attributes:
        box: of the button: x, y, width, height.
        counts: targets that are over, targets that were hit, clicks.
    """

    def __init__(self, seed: int, screen: tuple[int, int]) -> None:
        self._random = random.Random(seed)
        self._screen = screen
        self._misses = 0
        self.counts = [0, 0, 0]
        self._jump()

    @property
    def board(self) -> tuple[int, int, int]:
        """The square's colour: each channel is a count modulo 8, times 32."""
        over, hits, clicks = (count % 8 * 32 for count in self.counts)
        return over, hits, clicks

    def click(self, hit: bool) -> str | None:
        """Take a click on the button or beside it; the line to write when a target is over."""
        self.counts[2] += 1
        self._misses += not hit
        if not hit and self._misses < TRIES:
            return None
        self.counts[0] += 1
        self.counts[1] += hit
        self._misses = 0
        self._jump()
        return "hit\n" if hit else "missed\n"

    def _jump(self) -> None:
        x, y = (
            self._random.randrange(s - b + 1) for s, b in zip(self._screen, BUTTON, strict=True)
        )
        self.box = (x, y, *BUTTON)


def main() -> None:
    import gi

    gi.require_version("Gtk", "3.0")
    from gi.repository import Gdk, Gtk

    screen = Gdk.Screen.get_default()
    targets = Targets(int(sys.argv[1]), (screen.get_width(), screen.get_height()))
    results = Path("~/targets.txt").expanduser().open("a", buffering=1)

    window = Gtk.Window(title="Point at the button")
    beside, place = Gtk.EventBox(), Gtk.Fixed()
    button, board = Gtk.Button(name="button"), Gtk.Box(name="board")
    button.set_size_request(*BUTTON)
    button.set_can_focus(False)  # or Enter would hit it
    board.set_size_request(BOARD_PX, BOARD_PX)
    place.put(button, 0, 0)
    place.put(board, screen.get_width() - BOARD_PX, screen.get_height() - BOARD_PX)
    beside.add(place)
    window.add(beside)
    style = Gtk.CssProvider()
    Gtk.StyleContext.add_provider_for_screen(screen, style, Gtk.STYLE_PROVIDER_PRIORITY_APPLICATION)

    def show() -> None:
        style.load_from_data(
            b"* { background: #181818; transition: none; }"
            b"#button { background: #ff2828; border: none; border-radius: 0; box-shadow: none; }"
            b"#board { background: rgb(%d, %d, %d); }" % targets.board
        )
        place.move(button, *targets.box[:2])

    def click(hit: bool) -> bool:
        if line := targets.click(hit):
            results.write(line)
        show()
        return True

    button.connect("clicked", lambda _: click(True))
    beside.connect("button-press-event", lambda *_: click(False))
    window.connect("destroy", Gtk.main_quit)
    show()
    window.fullscreen()
    window.show_all()
    Gtk.main()


if __name__ == "__main__":
    main()
