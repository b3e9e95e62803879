"""Drives one desktop by another's published client, and times it. Runs in the peers' environment.

    client.py osworld|vncdotool PORT STEPS

``STEPS`` is a JSON list of ``["move", x, y]``, ``["click", x, y]`` and ``["key", name]``. Each line
on stdin is ``["look", count]`` or ``["step", seconds]``, in whole cycles of them; the answer is
a JSON object with the seconds of each, and how many of the pictures differ from the one before.
"""

import io
import json
import sys
import time

from PIL import Image, ImageChops

NAMES = {"backspace": "bsp"}


class OSWorld:
    """`desktop_env`'s controller: an action is pyautogui's, a picture comes as PNG bytes."""

    def __init__(self, port):
        from desktop_env.controllers.python import PythonController

        self.controller = PythonController("127.0.0.1", port)

    def look(self):
        return self.controller.get_screenshot()

    def step(self, kind, *values):
        verb = {"move": "moveTo", "click": "click", "key": "press"}[kind]
        line = f"pyautogui.{verb}({', '.join(map(repr, values))})"
        done = self.controller.execute_python_command(line)
        if not done or done.get("returncode") != 0:
            raise SystemExit(f"{line}: {done}")
        return self.look()

    def picture(self, seen):
        return Image.open(io.BytesIO(seen)).convert("RGB")


class VncDoTool:
    """A picture is the whole screen, as it is by default.

    To wait for a change alone is for ever when a busy guest has shown two changes at once.
    """

    def __init__(self, port):
        from vncdotool import api

        self.client = api.connect(f"127.0.0.1::{port}", timeout=60)
        self.client.refreshScreen()

    def look(self):
        self.client.refreshScreen(incremental=False)
        return self.client.screen

    def step(self, kind, *values):
        if kind == "key":
            self.client.keyPress(NAMES.get(values[0], values[0]))
        else:
            self.client.mouseMove(*values)
            if kind == "click":
                self.client.mousePress(1)
        self.client.refreshScreen(incremental=False)
        return self.client.screen

    def picture(self, seen):
        return seen.convert("RGB").copy()


def main():
    kind, port, cycle = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    peer = {"osworld": OSWorld, "vncdotool": VncDoTool}[kind](port)
    last = peer.picture(peer.look())
    print("ready", flush=True)
    for line in sys.stdin:
        what, bound = json.loads(line)
        taken, changed = [], 0
        until = time.perf_counter() + bound
        while (
            len(taken) < bound
            if what == "look"
            else len(taken) % len(cycle) or not taken or time.perf_counter() < until
        ):
            step = cycle[len(taken) % len(cycle)] if what == "step" else None
            start = time.perf_counter()
            seen = peer.step(*step) if step else peer.look()
            taken.append(time.perf_counter() - start)
            picture = peer.picture(seen)
            changed += ImageChops.difference(picture, last).getbbox() is not None
            last = picture
        print(json.dumps({"seconds": taken, "changed": changed}), flush=True)


main()
