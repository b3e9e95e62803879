"""The oracles' eyes and hands made of the bridges' tools alone.

It shows that what an oracle sees behind the screen can be had by the tools that every agent has.
"""

from __future__ import annotations

import base64
import io
import re
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from mcp_types import CallToolResult, ImageContent
from PIL import Image

from cua_gym import actions as a
from cua_gym.agent.oracle import Desk, Solution
from cua_gym.machine.base import Rgb
from cua_gym.machine.desktop import NotShown, Window
from tests.vm.mcp_harness import Remote, said

Observation = tuple[Mapping[str, Any], Mapping[str, Any]]


class BridgeDesk(Desk):
    """Looks by tools; what takes a command takes the shell bridge, where the task has one."""

    def __init__(self, remotes: Mapping[str, Remote]) -> None:
        self._any = next(iter(remotes.values()))
        self._desktop = remotes.get("desktop", self._any)  # of a task for shells: never asked
        self._shell = remotes.get("shell")
        self._app = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the screen in pixels."""
        facts = self._desktop.facts("screen_size")
        return facts["width"], facts["height"]

    def nodes(self, **where: Any) -> list[dict[str, Any]]:
        """What `accessibility_tree` answers."""
        nodes: list[dict[str, Any]] = self._desktop.facts("accessibility_tree", **where)["nodes"]
        return nodes

    def windows(self) -> list[Window]:
        """Programs' windows by what they say: a window's content is its first child."""
        found: list[Window] = []
        nodes = self.nodes()
        for number, node in enumerate(nodes):
            if node["depth"] != 1:
                continue
            within = []
            for below in nodes[number + 1 :]:
                if below["depth"] <= 1:
                    break
                within.append(below)
            x, y, width, height = within[0]["box"] if within else node["box"]
            active = any("focused" in n["states"] for n in [node, *within])
            found.append(
                Window(number, node["name"], node["app"], None, x, y, width, height, active, False,
                       node["role"])
            )  # fmt: skip
        return found

    def wait_window(self, title: str, timeout_s: float = 60.0, *, active: bool = False) -> Window:
        """A window whose title matches, and that has the keyboard where ``active``."""
        end = time.monotonic() + timeout_s
        while True:
            windows = self.windows()
            for window in windows:
                if re.search(title, window.title) and (window.active or not active):
                    self._app = window.app
                    return window
            if time.monotonic() > end:
                raise NotShown(f"no window like {title!r}: {[w.title for w in windows]}")

    def focused(self, title: str, timeout_s: float = 180.0) -> None:
        """Until the window with the keyboard has this text in its title."""
        self.wait_window(re.escape(title), timeout_s, active=True)

    def gone(self, title: str, timeout_s: float = 10.0) -> bool:
        """Whether, by the end of the time, no window's title matches any more."""
        end = time.monotonic() + timeout_s
        while any(re.search(title, w.title) for w in self.windows()):
            if time.monotonic() > end:
                return False
        return True

    def look(self) -> Rgb:
        """The screen of now."""
        return picture(self._desktop.call("screenshot"))

    def changed(self, before: Rgb, box: tuple[int, int, int, int], timeout_s: float = 60.0) -> bool:
        """Whether, by the end of the time, a box of the screen is another."""
        x, y, width, height = box
        part = slice(y, y + height), slice(x, x + width)
        end = time.monotonic() + timeout_s
        while not (self.look()[part] != before[part]).any():
            if time.monotonic() > end:
                return False
        return True

    def until(self, command: str, timeout_s: float = 60.0) -> None:
        """With a shell as an oracle does; else until the program is idle and the screen at rest."""
        if self._shell is None:
            self.nodes(app=self._app)  # a busy program answers when it is done
            seconds = min(60.0, timeout_s / 2)  # one call waits no longer
            assert self._desktop.facts("wait", seconds=seconds, until_settled=True)["settled"]
            return
        script = f"until {{ {command}\n}}; do sleep 0.3; done"
        assert not self._shell.facts("run", command=script, timeout_s=timeout_s)["timed_out"]

    def node(
        self,
        role: str | None,
        name: str,
        *,
        app: str | None = None,
        nth: int = 0,
        timeout_s: float = 60.0,
    ) -> dict[str, Any]:
        """A shown node, found in what the tool answers."""
        end = time.monotonic() + timeout_s
        # The tool takes a part of a program's name, the oracles a regular expression.
        part = {"app": max(re.findall("[A-Za-z]+", app), key=len)} if app else {}
        while True:
            nodes = self.nodes(role=role, **part)
            fits = [
                n for n in nodes if re.search(name, n["name"]) and re.search(app or "", n["app"])
            ]
            if nth < len(fits):
                return fits[nth]
            if time.monotonic() > end:
                raise NotShown(f"no {role} like {name!r}: {[n['name'] for n in nodes]}")

    def do(self, action: a.Action) -> Observation:
        """An action by its tool; what an oracle is sent."""
        match action:
            case a.Shell(command, timeout_s):
                assert self._shell is not None
                facts = self._shell.facts("run", command=command, timeout_s=timeout_s)
                return {}, {"shell": facts}
            case a.GiveUp(reason):
                self._any.facts("give_up", reason=reason)
                return {}, {}
            case _:
                arguments = a.action_to_dict(action)
                result = self._desktop.call(arguments.pop("type"), **arguments)
                assert not result.is_error, said(result)
                return {"screenshot": picture(result)}, dict(result.structured_content or {})

    def play(self, solution: Solution) -> None:
        """Play an oracle to its end, and end the attempt as it does."""
        try:
            action = next(solution)
            while not isinstance(action, a.GiveUp):
                action = solution.send(self.do(action))
            self.do(action)
        except StopIteration as end:
            self._any.facts("submit", answer=end.value)


def picture(result: CallToolResult) -> Rgb:
    """The picture of an answer, ``(height, width, 3)`` uint8."""
    (image,) = (c for c in result.content if isinstance(c, ImageContent))
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(image.data))).convert("RGB"))
