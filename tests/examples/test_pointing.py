"""Targets as episodes, on a computer in memory that runs the rules of the task's own program."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cua_gym import DesktopVectorEnv, MachineSpec, Settle
from cua_gym.machine.base import Button, Frame, Rgb
from cua_gym.machine.fake import FakeMachine
from cua_gym.task import find_task
from examples.ppo_pointing.pointing import TASK, Pointing

Targets = runpy.run_path(str(TASK / "inputs/point_at.py"))["Targets"]


class Computer(FakeMachine):
    """The button's screen; what clicks do shows ``late_s`` after them."""

    late_s = 0.0

    def __init__(self, spec: MachineSpec, **_: Any) -> None:
        super().__init__(spec)
        self.targets = Targets(0, spec.screen)
        self._was = Button.NONE

    def grab(self, out: Rgb | None = None) -> Frame:
        frame = super().grab()
        frame.rgb[:] = 24
        x, y, width, height = self.targets.box
        frame.rgb[y : y + height, x : x + width] = (255, 40, 40)
        frame.rgb[-8:, -8:] = self.targets.board
        return frame

    def pointer(self, x: int, y: int, buttons: Button = Button.NONE) -> None:
        super().pointer(x, y, buttons)
        if buttons & ~self._was & Button.LEFT:
            left, top, width, height = self.targets.box
            hit = left <= x < left + width and top <= y < top + height
            if self.late_s:
                threading.Timer(self.late_s, self._click, [hit]).start()
            else:
                self._click(hit)
        self._was = buttons

    def _click(self, hit: bool) -> None:
        line = self.targets.click(hit)
        if line and not self.closed:
            try:
                old = self.shell.read("/home/user/targets.txt")
            except FileNotFoundError:
                old = b""
            self.shell.write("/home/user/targets.txt", old + line.encode())
        self._change()


class LateComputer(Computer):
    late_s = 0.1


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Pointing]]:
    made: list[Pointing] = []

    def make(start: Callable[..., Any] = Computer, max_steps: int = 50) -> Pointing:
        task = find_task(TASK)
        desktops = DesktopVectorEnv(
            2,
            replace(task, spec=replace(task.spec, backend="fake")),
            autoreset_mode="SameStep",
            max_steps=max_steps,
            runs=tmp_path,
            settle=Settle(first_s=0.02, quiet_s=0.01, max_s=0.5),
            start=start,
        )
        made.append(Pointing(desktops))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def on_red(pictures: Any) -> Any:
    """Clicks on the cell in whose middle there is most red."""
    cells = pictures[..., 0].astype(int) - pictures[..., 1]
    best = cells.reshape(len(cells), 8, 2, 10, 2).sum(axis=(2, 4)).reshape(len(cells), -1).argmax(1)
    return np.stack([0 * best, best % 10, best // 10, 0 * best], axis=1)


@pytest.mark.parametrize("start", [Computer, LateComputer])
def test_hits_are_rewarded(make: Callable[..., Pointing], start: Callable[..., Any]):
    """Each ends an episode; the next picture shows the next target, however late it comes."""
    envs = make(start)
    pictures, _ = envs.reset(seed=0)
    assert pictures.shape == envs.observation_space.shape == (2, 16, 20, 3)
    for _ in range(5):
        before = pictures
        pictures, rewards, terminated, truncated, _ = envs.step(on_red(pictures))
        assert rewards.tolist() == [1.0, 1.0]
        assert terminated.all()
        assert not truncated.any()
        assert (pictures != before).any(axis=(1, 2, 3)).all()


def test_the_third_miss_ends_a_target(make: Callable[..., Pointing]):
    """Without a reward; a slot that misses leaves the other alone."""
    envs = make()
    pictures, _ = envs.reset(seed=0)
    for over in (False, False, True):
        actions = on_red(pictures)
        actions[1, 1:3] = 9 - actions[1, 1], 7 - actions[1, 2]
        pictures, rewards, terminated, _, _ = envs.step(actions)
        assert rewards.tolist() == [1.0, 0.0]
        assert terminated.tolist() == [True, over]


def test_an_attempt_ends_and_the_next_begins(make: Callable[..., Pointing]):
    """It cuts a target short at most, is graded, and the next one's counts begin at 0."""
    envs = make(max_steps=4)
    pictures, _ = envs.reset(seed=0)
    for step in range(1, 7):
        pictures, rewards, terminated, _, more = envs.step(on_red(pictures))
        assert rewards.tolist() == [1.0, 1.0]
        assert terminated.all()
        assert more["_final_obs"].tolist() == [step == 4] * 2
    assert envs.scores == [0.04, 0.04]
    assert (envs.reset()[0] == pictures).all()  # nobody asked for fresh desktops
