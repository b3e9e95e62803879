"""Which kinds of computer a task runs on."""

from __future__ import annotations

import dataclasses

import pytest

import cua_gym
from cua_gym.errors import TaskError
from cua_gym.task import Task, bundled_suite


@pytest.fixture
def task() -> Task:
    return bundled_suite().task("tidy-folder")


def test_a_light_desktop_is_used_where_the_task_allows_it(task: Task) -> None:
    """The same task, seeds and all, on another kind of computer."""
    free = dataclasses.replace(task, backend="any")
    assert free.on("x11").spec == dataclasses.replace(task.spec, backend="x11")
    assert free.on("x11").variation(3).start_key == task.variation(3).start_key
    assert free.on("qemu").spec.backend == "qemu"
    assert free.on(None) is free
    assert cua_gym.make(free, backend="x11").task.spec.backend == "x11"


def test_a_task_for_whole_computers_is_refused(task: Task) -> None:
    """Before anything is started, with the line to change."""
    whole = dataclasses.replace(task, backend="vm")
    with pytest.raises(TaskError, match=r"task\.toml says backend = 'vm'"):
        cua_gym.make(whole, backend="x11")
    with pytest.raises(ValueError, match="'qemu' or 'x11', not 'vm'"):
        cua_gym.make(whole, backend="vm")  # type: ignore[arg-type]
