"""A small whole task to start from: it validates and its oracle solves it."""

from __future__ import annotations

import re
from pathlib import Path

from cua_gym.errors import TaskError

__all__ = ["new_task"]

_FILES = {
    "task.toml": '''\
name = "@NAME@"
title = "Write a word into a file"
# {word} comes from vary.py; write {{ for a brace.
instruction = """
A text editor is open. Write the word {word} and save it as /home/user/Documents/word.txt.
"""
area = "editor"
level = 1
expected_steps = 4
measures = "typing and saving under a given name"
tool_policy = "gui"

[limits]
steps = 20
seconds = 300

[[setup]]
open = ["mousepad"]
window = "Mousepad"

[[evidence]]
name = "word"
file = "/home/user/Documents/word.txt"
''',
    "vary.py": '''\
"""What differs from seed to seed."""

from __future__ import annotations

import random
from typing import Any


def vary(rng: random.Random) -> dict[str, Any]:
    """Values for the placeholders in task.toml and hidden/checkpoints.toml."""
    return {"word": "".join(rng.choice("abcdefghijkmnopqrstuvwxyz") for _ in range(8))}
''',
    "oracle.py": '''\
"""Shows that the task can be done, by the same actions that an agent has."""

from __future__ import annotations

from typing import Any

from cua_gym.actions import Type
from cua_gym.agent.moves import save_as
from cua_gym.agent.oracle import Desk, Solution


def solve(params: dict[str, Any], desk: Desk) -> Solution:
    """Type, save, name the file."""
    desk.wait_window("Mousepad")
    yield Type(params["word"])
    yield from save_as(desk, "/home/user/Documents/word.txt")
    return None
''',
    "hidden/checkpoints.toml": """\
# Nothing in this folder ever enters the machine.
[[checkpoint]]
id = "word-saved"
weight = 1.0
check = "text.equals"
evidence = "word"
args = { expected = "{params.word}" }
""",
}


def new_task(tasks: Path, name: str) -> Path:
    """Write a new task folder below ``tasks``; its path.

    Raises:
        TaskError: the name is not allowed, or the folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9-]{1,63}", name):
        raise TaskError(f"{name!r} is no task name; use lower case, digits and '-', as rename-file")
    folder = tasks / name
    if folder.exists():
        raise TaskError(f"{folder} exists; choose another name")
    for file, text in _FILES.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("@NAME@", name), "utf-8")
    (folder / "inputs").mkdir()
    return folder
