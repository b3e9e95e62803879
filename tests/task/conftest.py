"""A fresh task to spoil."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.task import new_task

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fresh task as `cua-gym task new` writes it, in a suite of its own."""
    (tmp_path / "evaluators").symlink_to(ROOT / "evaluators")
    return new_task(tmp_path / "tasks", "word-task")


def edit(path: Path, old: str, new: str) -> None:
    """Replace one text, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
