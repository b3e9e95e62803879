"""The agent that knows the way: it plays a task's own ``oracle.py``.

It shows that a task can be done by the same typed actions that any agent has. It may look at the
machine's windows and accessibility tree, as a person's eyes would, through `Desk`; what it does
goes through the episode like every agent's actions.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

from cua_gym.actions import Action, Submit
from cua_gym.agent.base import TaskInfo
from cua_gym.clock import Clock, SystemClock
from cua_gym.errors import TaskError
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine, Rgb
from cua_gym.machine.settle import Settle, settle

if TYPE_CHECKING:
    from cua_gym.episode import Episode

__all__ = ["Desk", "OracleAgent", "Solution"]

Solution = Generator[Action, tuple[Mapping[str, Any], Mapping[str, Any]], str | None]
"""What ``solve(params, desk)`` is: ``observation, info = yield action``; what it returns is the
submitted answer."""

STILL = Settle(first_s=0.5, quiet_s=0.5, max_s=10.0)


class Desk:
    """An oracle's eyes. Every look waits until it sees, so that no oracle needs to sleep.

    Args:
        saw: told the words of what is shown: titles, and names and texts of nodes.
    """

    def __init__(
        self,
        machine: Machine,
        saw: Callable[[str], None] = lambda _: None,
        clock: Clock | None = None,
    ) -> None:
        self._machine = machine
        self._saw = saw
        self._clock = clock or SystemClock()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the screen in pixels."""
        return self._machine.screen.size

    def windows(self) -> list[desktop.Window]:
        """All windows, bottom to top."""
        found = desktop.windows(self._machine.shell)
        for window in found:
            self._saw(window.title)
        return found

    def wait_window(
        self, title: str, timeout_s: float = 60.0, *, active: bool = False
    ) -> desktop.Window:
        """The topmost shown window whose title matches the regular expression.

        Args:
            active: it must have the keyboard too.

        Raises:
            NotShown: none appeared.
        """
        window = desktop.wait_window(self._machine.shell, title, timeout_s, active=active)
        self._saw(window.title)
        return window

    def focused(self, title: str, timeout_s: float = 180.0) -> None:
        """Wait until the window that has the keyboard has this text in its title.

        The cheapest look: half a second in an emulated guest, where `wait_window` takes three.

        Raises:
            NotShown: it had not.
        """
        look = "xdotool getactivewindow getwindowname 2>/dev/null"
        self.until(f"{look} | grep -qF -- {shlex.quote(title)}", timeout_s)
        self._saw(title)

    def gone(self, title: str, timeout_s: float = 10.0) -> bool:
        """Whether, by the end of the time, no shown window's title matches any more."""
        return desktop.wait_gone(self._machine.shell, title, timeout_s)

    def look(self) -> Rgb:
        """The screen, ``(height, width, 3)``, once it is still for half a second, or after ten."""
        screen = self._machine.screen
        return settle(screen, screen.serial, STILL, self._clock).frame.rgb

    def changed(self, before: Rgb, box: tuple[int, int, int, int], timeout_s: float = 60.0) -> bool:
        """Whether, by the end of the time, a box (x, y, width, height) of the screen is another."""
        x, y, width, height = box
        part = slice(y, y + height), slice(x, x + width)
        end = self._clock.monotonic() + timeout_s
        while True:
            frame = self._machine.screen.grab()
            if (frame.rgb[part] != before[part]).any():
                return True
            left = end - self._clock.monotonic()
            if left <= 0:
                return False
            self._machine.screen.wait_change(frame.serial, left)

    def until(self, command: str, timeout_s: float = 60.0) -> None:
        """Wait until a command that only looks, run as the desktop account, succeeds.

        Raises:
            NotShown: it did not.
        """
        script = f"until {{ {command}\n}}; do sleep 0.3; done"
        if self._machine.shell.run(script, timeout_s=timeout_s).timed_out:
            raise desktop.NotShown(f"{command!r} did not succeed in {timeout_s:g} s")

    def node(self, role: str | None, name: str, **where: Any) -> dict[str, Any]:
        """A shown accessible node, as `cua_gym.machine.desktop.find` gives it.

        Raises:
            NotShown: none appeared.
        """
        node = desktop.find(self._machine.shell, role, name, **where)
        for words in ("name", "text", "value"):
            self._saw(str(node.get(words) or ""))
        return node

    def find(self, role: str | None, name: str, **where: Any) -> tuple[int, int]:
        """The centre of such a node, in screen pixels.

        Args:
            role: exact accessible role, such as ``push button``; None is any.
            name: regular expression for its name.
            where: ``app`` (regular expression), ``nth``, ``timeout_s``.

        Raises:
            NotShown: none appeared.
        """
        x, y, width, height = self.node(role, name, **where)["box"]
        return x + width // 2, y + height // 2


class OracleAgent:
    """Plays the task's ``oracle.py``, then submits.

    Args:
        saw: as for `Desk`.
    """

    def __init__(self, saw: Callable[[str], None] = lambda _: None) -> None:
        self._saw = saw
        self._solution: Solution | None = None
        self._begun = False

    def attach(self, episode: Episode) -> None:
        """Load the oracle of the episode's task.

        Raises:
            TaskError: it has none, or it cannot be imported.
        """
        variation = episode.variation
        solve = getattr(variation.task.module("oracle.py"), "solve", None)
        if solve is None:
            raise TaskError(f"{variation.task.folder / 'oracle.py'} has no solve(params, desk)")
        self._solution = solve(dict(variation.params), Desk(episode.machine, self._saw))
        self._begun = False

    def start(self, task: TaskInfo) -> None:
        """Nothing to learn: it is attached to the episode."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """The oracle's next action.

        Raises:
            TaskError: its last action was refused; an oracle makes no such mistakes.
        """
        if self._solution is None:
            raise RuntimeError("the oracle looks behind the screen; call attach(episode) first")
        if "action_error" in info:
            raise TaskError(f"the oracle's last action was refused: {info['action_error']}")
        try:
            if self._begun:
                return self._solution.send((observation, info))
            self._begun = True
            return next(self._solution)
        except StopIteration as end:
            return Submit(end.value)
