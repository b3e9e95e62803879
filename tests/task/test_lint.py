"""What drifts: the live web, words that mean now, code that no seed decides."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cua_gym.errors import TaskError
from cua_gym.task import load_task
from cua_gym.task.lint import drifting_code
from tests.task.conftest import edit


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("Open https://www.amazon.com/x and", True),
        ("Open http://shop.test/ and", False),
        ("Open http://localhost:8000/ and", False),
        ("Write today's date and", True),
        ("Book for next week and", True),
        ("The latest entry and", True),
        ("Write 2025-03-14 and", False),
        ("See www.news.com.", True),
        ("See news.com/x and", True),
        ("Open wikipedia.org and", True),
        ("Look at foo.github.io/page and", True),
        ("Open http://localhost@evil.com/ and", True),
        ("Open http://shop.test. Then", False),
        ("Open www.example.com and", False),
        ("Mail to ann@firm.com and", False),
        ("Open /srv/data.com, main.py, org.gnome.Shell, notes.md and", False),
        ("As of now", True),
        ("This morning we", True),
        ("In the current week", True),
        ("Made two days ago:", True),
        ("Now save it, then", False),
    ],
)
def test_what_drifts_is_flagged(folder: Path, text: str, flagged: bool):
    """The live web and words that mean now (B148)."""
    edit(folder / "task.toml", "Write the word", text + " write the word")
    if flagged:
        with pytest.raises(TaskError, match=r"task\.toml:\d+: "):
            load_task(folder)
    else:
        load_task(folder)


def test_a_pinned_date_allows_today(folder: Path):
    """It then has one meaning."""
    edit(folder / "task.toml", "Write the word", "Write today's word")
    edit(folder / "task.toml", "level = 1", 'level = 1\npinned_date = "2025-03-14"')
    load_task(folder)


def test_what_a_seed_fills_in_is_looked_at(folder: Path):
    """Not only the text with its placeholders."""
    whole = (folder / "vary.py").read_text()
    for word, fault in (("https://news.com/x", "live web"), ("today", "depends on the date")):
        (folder / "vary.py").write_text(
            whole.replace("return {", f'return {{"word": "{word}"}} or {{')
        )
        with pytest.raises(TaskError, match=rf"task\.toml:4: .*{fault}"):
            load_task(folder)


@pytest.mark.parametrize(
    "step",
    [
        'open = ["firefox", "wikipedia.org"]\nwindow = "x"',
        'run = "curl -s news.com/x"',
        'run = "true"\nuntil = "curl https://news.com"',
        'file = { to = "/home/user/a", content = "see https://news.com" }',
    ],
)
def test_the_setup_reaches_no_live_web(folder: Path, step: str):
    """Whatever its kind of step."""
    edit(folder / "task.toml", "[[setup]]", f"[[setup]]\n{step}\n\n[[setup]]")
    with pytest.raises(TaskError, match=r"task\.toml:\d+: .*live web"):
        load_task(folder)


@pytest.mark.parametrize(
    ("code", "flagged"),
    [
        ("import random; random.choice('ab')", "random.choice"),
        ("from random import choice as c; c('ab')", "random.choice"),
        ("import numpy as np; np.random.randint(2)", "numpy.random.randint"),
        ("import datetime as d; d.datetime.now()", "datetime.datetime.now"),
        ("from datetime import date; date.today()", "datetime.date.today"),
        ("import time; time.time_ns()", "time.time_ns"),
        ("import os; os.getpid()", "os.getpid"),
        ("from os import environ; environ['HOME']", "os.environ"),
        ("id(object())", "id"),
        ("hash('x')", "hash"),
        ("rng.choice(list({'a', 'b'}))", "the order of a set"),
        ("for x in set(y): pass", "the order of a set"),
        ("[x for x in frozenset(y)]", "the order of a set"),
        ("','.join({'a', 'b'})", "the order of a set"),
        ("import random; rng: random.Random = random.Random(1); rng.choice('ab')", None),
        ("import numpy as np; np.random.default_rng(1)", None),
        ("from datetime import date; date(2025, 1, 2)", None),
        ("rng.choice(sorted({'a', 'b'})); x = 1 in {1, 2}; len({1})", None),
        ("'never random.choice() or hash() here'; x = '# time.time()'", None),
        ("time = 'x'; time.strip()", None),
    ],
)
def test_code_that_no_seed_decides(code: str, flagged: str | None):
    """By the name that was imported; texts and docstrings are no code."""
    said = [
        (line, message.split(" differs")[0]) for line, message in drifting_code(ast.parse(code))
    ]
    assert said == ([] if flagged is None else [(1, flagged)])
