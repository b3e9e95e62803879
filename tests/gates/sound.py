"""A small task that passes every gate on the toy computer, and copies with one thing wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cua_gym.task import Task, load_task
from tests.run.toy import on_toy_computer

ROOT = Path(__file__).parents[2]
NAME = "note-the-sum"

_FILES = {
    "task.toml": f"""
name = "{NAME}"
title = "Note a sum"
instruction = '''
The prices in /home/user/prices.csv are of {{item}} alone. Type their sum, with two decimals,
and save it as /home/user/note.txt with Ctrl+S. Change nothing else.
'''
area = "editor"
level = 1
expected_steps = 3
measures = "adding, typing, saving"
backend = "any"

[machine]
screen = [640, 480]

[limits]
steps = 10
seconds = 60

[[setup]]
file = {{ to = "/home/user/prices.csv", from = "prices.csv" }}

[[evidence]]
name = "note"
file = "/home/user/note.txt"

[[evidence]]
name = "prices"
file = "/home/user/prices.csv"
""",
    "vary.py": '''
"""Two prices and what they are of."""

from __future__ import annotations

import random
from typing import Any


def vary(rng: random.Random) -> dict[str, Any]:
    """The prices in cents."""
    return {
        "item": rng.choice(["tea", "coffee", "cocoa"]),
        "cents": [rng.randint(1_000_001, 4_000_000) for _ in range(2)],
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """One price a line."""
    return {"prices.csv": "".join(f"{c / 100:.2f}\\n" for c in params["cents"]).encode()}
''',
    "oracle.py": '''
"""Adds, types, saves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cua_gym.actions import Action, Key, Type


def solve(params: dict[str, Any], desk: Any) -> Iterator[Action]:
    """Two actions."""
    yield Type(f"{sum(params['cents']) / 100:.2f}")
    yield Key("ctrl+s")
''',
    "hidden/answers.py": '''
"""The sum."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """As text with two decimals."""
    return {"sum": f"{sum(params['cents']) / 100:.2f}"}
''',
    "hidden/checkpoints.toml": """
[[checkpoint]]
id = "sum-noted"
weight = 1.0
check = "text.equals"
evidence = "note"
args = { expected = "{answer.sum}", whitespace = "trim" }

[[checkpoint]]
id = "prices-altered"
weight = -0.5
check = "files.same_bytes"
negate = true
evidence = "prices"
args = { expected = "{input.prices.csv}" }

[discovered]
"answer.sum" = "by adding the prices"
""",
}

CHECKS = '''
"""Checks of this task alone."""

from __future__ import annotations

import datetime
from typing import Any

from cua_gym.grading.check import Item, Verdict, check, verdict


@check
def asked(item: Item, *, expected: str) -> Verdict:
    """What this copy of the task takes for right."""
    text = item.text().strip()
    return verdict(RULE, "the note", seen=text, wanted=expected)
'''
"""``RULE`` stands for an expression of ``text`` and ``expected``."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What is done to the files of the sound task.

    Attributes:
        replace: file to pairs of old and new text; each old one has to be there.
        add: file to its text.
    """

    replace: Mapping[str, tuple[tuple[str, str], ...]] | None = None
    add: Mapping[str, str] | None = None


SOUND = Edit()


def rule(expression: str) -> Edit:
    """The sum is judged by a check of the task's own."""
    return Edit(
        replace={
            "hidden/checkpoints.toml": (
                ("text.equals", "checks.asked"), (', whitespace = "trim"', "")
            )
        },
        add={"hidden/checks.py": CHECKS.replace("RULE", expression)},
    )  # fmt: skip


def make_task(suite: Path, edit: Edit = SOUND) -> Task:
    """Write the task, with an edit, into a suite's folder and load it for the toy computer."""
    folder = suite / "tasks" / NAME
    files = dict(_FILES) | dict(edit.add or {})
    for name, pairs in (edit.replace or {}).items():
        for old, new in pairs:
            assert old in files[name], f"{name} has no {old!r}"
            files[name] = files[name].replace(old, new)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"))
    return load(suite)


def load(suite: Path) -> Task:
    """The task as it is now."""
    return on_toy_computer(load_task(suite / "tasks" / NAME, ROOT / "evaluators"))
