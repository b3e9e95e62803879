"""Evidence items made in a moment, and the bundled checks by name."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cua_gym.grading.check import Verdict
from cua_gym.grading.items import Entry, Item
from cua_gym.grading.library import CheckLibrary

ROOT = Path(__file__).parents[2]

Judge = Callable[..., Verdict]


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """``judge("text.equals", content, expected=...)``; content None is an absent file."""
    library = CheckLibrary(ROOT / "evaluators", tmp_path)

    def run(name: str, content: Any, /, **arguments: Any) -> Verdict:
        return library.find(name)(item(tmp_path, content), **arguments)

    return run


@pytest.fixture
def hurried(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may take seconds of processor time may take a fifth of one here."""
    judge("text.equals", None, expected="")  # imports the bounds, under the suite's own name
    for name, module in list(sys.modules.items()):
        if name.startswith("cua_gym_evaluators_") and name.endswith(".bounds"):
            monkeypatch.setattr(module, "CPU_S", 0.2)


def item(folder: Path, content: Any) -> Item:
    """A file with this content, absent when None, or a glob of files when a dict."""
    if content is None:
        return Item("thing", "file", "/home/user/thing", "absent", folder, "does not exist")
    if isinstance(content, dict):
        entries = [store(folder, f"{n:04}", path, data) for n, (path, data) in
                   enumerate(sorted(content.items()))]  # fmt: skip
        return Item("thing", "glob", "/home/user/**", "present", folder, entries=tuple(entries))
    data = content.encode() if isinstance(content, str) else content
    entry = store(folder, "thing", "/home/user/thing", data)
    return Item("thing", "file", "/home/user/thing", "present", folder, entries=(entry,))


def store(folder: Path, name: str, guest: str, data: bytes) -> Entry:
    """One collected file."""
    (folder / name).write_bytes(data)
    return Entry(guest, "file", len(data), name, hashlib.sha256(data).hexdigest())
