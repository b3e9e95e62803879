"""Agents for the tests of running."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from cua_gym.actions import Action, Key, Submit, Type
from cua_gym.agent.base import TaskInfo


class Worker:
    """Does the toy task from its instruction alone."""

    end = ""

    def start(self, task: TaskInfo) -> None:
        """Plan."""
        word = task.instruction.split()[1]
        self._plan: Iterator[Action] = iter([Type(word + self.end), Key("ctrl+s"), Submit()])

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """The next action of the plan."""
        return next(self._plan)


class HalfWorker(Worker):
    """Types too much: half of the score."""

    end = "x"


class Crasher(Worker):
    """Works, then its own code fails."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Fails at the second action."""
        if info["steps_left"] < 5:
            raise LookupError("the model is overloaded")
        return super().act(observation, info)


class Quitter(Worker):
    """Ends the whole process, as it thinks."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """As a script's main() does."""
        raise SystemExit(0)


class Printer(Worker):
    """Prints while it works, as a debugged agent does, and as the programs that it starts do."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Print and act."""
        print("thinking ...")
        subprocess.run(["echo", "tool output"], check=True)
        return super().act(observation, info)


class Interrupted(Worker):
    """Gets a Ctrl-C while it works."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """As if the person at the keyboard had enough."""
        raise KeyboardInterrupt


class Sleeper(Worker):
    """Says so, then waits to be interrupted."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """Sleep until a signal comes."""
        print("sleeping", flush=True)
        signal.pause()
        return super().act(observation, info)


class Dawdler:
    """Never submits."""

    def start(self, task: TaskInfo) -> None:
        """Nothing to learn."""

    def act(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> Action:
        """One key after the other."""
        return Key("a")
