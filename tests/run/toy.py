"""A suite with one small task that the toy computer in memory can do: type a word, save it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cua_gym.machine.base import MachineSpec
from cua_gym.task import Suite, Task

_FILES = {
    "evaluators/toy.py": '''
"""Checks of the toy suite."""

from __future__ import annotations

from cua_gym.grading.check import Item, Verdict, check, verdict


@check
def says(item: Item, *, expected: str) -> Verdict:
    """Accepts exactly the text, refuses any other."""
    return verdict(item.text() == expected, "the note", seen=item.text(), wanted=expected)


@check
def begins(item: Item, *, expected: str) -> Verdict:
    """Accepts a note that begins so."""
    return verdict(item.text().startswith(expected), "its beginning", seen=item.text())
''',
    "tasks/type-word/task.toml": """
name = "type-word"
title = "Type a word and save it"
instruction = "Type {word} and press Ctrl+S."
area = "editor"
level = 1
expected_steps = 2
measures = "typing"
tool_policy = "gui"
backend = "any"

[machine]
screen = [640, 480]

[limits]
steps = 5
seconds = 60

[[evidence]]
name = "note"
file = "/home/user/note.txt"
""",
    "tasks/type-word/vary.py": '''
"""The word."""

from __future__ import annotations

import random
from typing import Any


def vary(rng: random.Random) -> dict[str, Any]:
    """A word of its own for each seed."""
    return {"word": "toy" + "".join(rng.choice("abcdef") for _ in range(6))}
''',
    "tasks/type-word/hidden/checkpoints.toml": """
[[checkpoint]]
id = "word-saved"
weight = 0.5
check = "toy.says"
evidence = "note"
args = { expected = "{params.word}" }

[[checkpoint]]
id = "begun"
weight = 0.5
check = "toy.begins"
evidence = "note"
args = { expected = "toy" }
""",
    "tasks/type-word/oracle.py": '''
"""Types and saves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cua_gym.actions import Action, Key, Type


def solve(params: dict[str, Any], desk: Any) -> Iterator[Action]:
    """Two actions."""
    yield Type(params["word"])
    yield Key("ctrl+s")
''',
    "tasks/type-word/inputs/.keep": "",
}


def make_suite(folder: Path) -> Suite:
    """Write the suite into ``folder``."""
    for name, text in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    return Suite(folder)


def on_toy_computer(task: Task) -> Task:
    """The task, to be run on the computer in memory."""
    return replace(task, spec=MachineSpec(backend="fake", screen=task.spec.screen))
