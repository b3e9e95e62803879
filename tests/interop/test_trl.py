"""Tasks as environments of TRL, driven as its trainer does, on the computer in memory.

TRL itself is not needed: what it asks of an environment is done here by its rules.
"""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from PIL import Image

from cua_gym.errors import MachineLost, TaskError
from cua_gym.interop.trl import DesktopTools, ShellTools
from cua_gym.machine.settle import Settle
from cua_gym.task import Task
from tests.run.toy import make_suite, on_toy_computer

Call = tuple[str, dict[str, Any]]


def tools(environment: DesktopTools) -> dict[str, Any]:
    """As the trainer finds them."""
    members = inspect.getmembers(environment, predicate=inspect.ismethod)
    own = ("reset", "get_reward")
    return {name: m for name, m in members if name not in own and not name.startswith("_")}


def roll_out(environment: DesktopTools, calls: list[Call], **row: Any) -> list[Any]:
    """The fake policy: what the model would see, the prompt's addition first."""
    seen: list[Any] = [environment.reset(**row)]
    known = tools(environment)
    for name, arguments in calls:
        try:
            seen.append(known[name](**arguments))
        except Exception as error:
            seen.append({"error": str(error)})
    return seen


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))


@pytest.fixture
def environment(task: Task, tmp_path: Path) -> Iterator[ShellTools]:
    settle = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
    environment = partial(ShellTools, task, runs=tmp_path / "runs", settle=settle)()
    yield environment
    environment.get_reward()  # ends the machine


def test_rollouts_are_rewarded(environment: ShellTools):
    """The instruction first, pictures after each tool, the score at the end; then the next one."""
    instruction = environment.reset(seed=3, prompt=[{"role": "user", "content": ""}])
    assert re.fullmatch(r"Type toy\w+ and press Ctrl\+S\.", instruction)
    work = [("type_text", {"text": instruction.split()[1]}), ("press", {"keys": "ctrl+s"})]
    seen = roll_out(environment, [("screenshot", {}), *work, ("submit", {})], seed=3)
    assert seen[0] == instruction
    for picture, words in seen[1:4]:
        assert isinstance(picture["image"], Image.Image)
        assert words["text"].endswith("steps left.")
    assert seen[-1] == "Submitted."
    assert environment.get_reward() == 1.0
    assert roll_out(environment, work[:1], seed=4)[0] != instruction
    assert environment.get_reward() == 0.0
    assert environment.outcome is not None
    assert not environment.outcome.success


def test_every_tool_does_its_action(environment: ShellTools):
    """And is counted, until the time is over; then the model is told so."""
    calls: list[Call] = [
        ("click", {"x": 150, "y": 120}),
        ("move", {"x": 1, "y": 2}),
        ("drag", {"x": 1, "y": 2, "to_x": 30, "to_y": 40}),
        ("scroll", {"x": 1, "y": 2, "down": 3}),
        ("wait", {"seconds": 0.0}),
        ("press", {"keys": "a"}),
    ]
    *seen, after = roll_out(environment, calls, seed=0)
    green = seen[1][0]["image"].getpixel((110, 110))
    assert green == (0, 160, 0)
    assert [said[1]["text"] for said in seen[-2:]] == ["1 steps left.", "The time to act is over."]
    assert "over" in after["error"]


def test_what_is_impossible_is_an_error_for_the_model(environment: ShellTools):
    """Nothing was done; the rollout goes on."""
    calls: list[Call] = [
        ("click", {"x": 9999, "y": 0}),
        ("run", {"command": "ls"}),
        ("press", {"keys": "no"}),
    ]
    _, off, shell, key = roll_out(environment, calls, seed=0)
    assert "off the 640x480 screen" in off["error"]
    assert "Shell is not allowed" in shell["error"]
    assert "no key is called" in key["error"]
    roll_out(environment, [("give_up", {"reason": "too hard"})], seed=0)
    assert environment.get_reward() == 0.0


def test_a_lost_machine_is_no_reward(environment: ShellTools):
    """It is unscored, and the model is told that it is over; the next rollout has another one."""
    environment.reset(seed=0)
    machine: Any = environment._env.machine  # type: ignore[union-attr]
    machine.fault = MachineLost("gone")
    with pytest.raises(RuntimeError, match="computer is gone"):
        environment.screenshot()
    assert environment.get_reward() is None
    roll_out(environment, [], seed=0)
    assert environment.get_reward() == 0.0


def test_no_machine_is_no_reward(task: Task, tmp_path: Path):
    """A trainer is not ended by it."""

    def start(*_: Any, **__: Any) -> Any:
        raise MachineLost("none to be had")

    environment = DesktopTools(task, runs=tmp_path, start=start)
    said, error = roll_out(environment, [("screenshot", {})], seed=0)
    assert said.startswith("Type ")
    assert "over" in error["error"]
    assert environment.get_reward() is None


def test_which_task():
    """A row's, else the bound one; none and an unknown one are errors. Factories are pickled."""
    with pytest.raises(ValueError, match="column 'task'"):
        DesktopTools().reset(seed=0)
    with pytest.raises(TaskError, match="no task 'no-such'"):
        DesktopTools().reset(task="no-such")
    assert pickle.loads(pickle.dumps(partial(ShellTools, "tidy-folder")))  # noqa: S301 - our own


def test_tools_are_described():
    """Each parameter has a type and a line in the docstring, or TRL refuses the tool."""
    found = tools(ShellTools())
    assert list(found) == [
        "click", "drag", "give_up", "move", "press", "run", "screenshot", "scroll", "submit",
        "type_text", "wait",
    ]  # fmt: skip
    assert "run" not in tools(DesktopTools())
    for name, tool in found.items():
        hints = get_type_hints(tool)
        said = re.findall(r"^ +(\w+): \S", (tool.__doc__ or "").partition("Args:")[2], re.MULTILINE)
        assert list(inspect.signature(tool).parameters) == said, name
        assert set(said) | {"return"} == set(hints), name
        assert "Returns:" in (tool.__doc__ or ""), name
