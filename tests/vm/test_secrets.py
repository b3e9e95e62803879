"""What stands in a task's hidden folder is never inside its machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest

import cua_gym
from cua_gym import Shell
from cua_gym.machine.base import Machine
from cua_gym.task import load_task

pytestmark = pytest.mark.vm

TASK = {
    "task.toml": """
name = "secret-keeping"
title = "Keep a secret"
instruction = "Write anything."
area = "editor"
level = 1
expected_steps = 1
measures = "nothing: it is for a test"
tool_policy = "shell"

[[setup]]
file = { to = "/home/user/plain-zebra.txt", content = "visible-zebra-9341" }

[[evidence]]
name = "plain"
file = "/home/user/plain-zebra.txt"
""",
    "hidden/checkpoints.toml": """
[[checkpoint]]
id = "kept"
weight = 1.0
check = "checks.secret"
evidence = "plain"
""",
    "hidden/checks.py": '''
"""Looks for a word that nobody was told."""

from cua_gym.grading.check import Item, Verdict, check, verdict

SECRET = "hidden-walrus-" + "7718"


@check
def secret(item: Item) -> Verdict:
    """Accepts the secret word only."""
    return verdict(item.text() == SECRET, "the word")
''',
    "hidden/reference.txt": "hidden-walrus-7718",
    "oracle.py": '''
"""There is nothing to do."""

from collections.abc import Iterator
from typing import Any

from cua_gym.actions import Action


def solve(params: dict[str, Any], desk: Any) -> Iterator[Action]:
    """Nothing."""
    yield from ()
''',
}


def found(file: BinaryIO, size: int, word: bytes) -> bool:
    """Search ``size`` bytes from where the file stands."""
    tail = b""
    while size > 0:
        data = file.read(min(size, 1 << 24))
        if not data:
            return False
        if word in tail + data:
            return True
        tail = data[-len(word) :]
        size -= len(data)
    return False


def memory_holds(machine: Machine, word: bytes) -> bool:
    """Search the guest's whole memory, as the machine's process maps it."""
    pid = machine.pid  # type: ignore[attr-defined]
    size = machine.spec.memory_mb << 20
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        first, last = (int(x, 16) for x in line.split()[0].split("-"))
        if last - first == size:
            with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
                memory.seek(first)
                return found(memory, size, word)
    pytest.fail(f"no mapping of {size} bytes in process {pid}")


def disk_holds(machine: Machine, word: bytes) -> bool:
    """Search all that was written to the disk since the image was built, on the host.

    A search inside the guest would bring the word into its memory.
    """
    machine.shell.run("sync", user="root")
    engine = machine._running()  # type: ignore[attr-defined]
    for fd in (engine._overlay, *engine.deltas):
        with Path(f"/proc/self/fd/{fd}").open("rb", buffering=0) as layer:
            if found(layer, os.fstat(fd).st_size, word):
                return True
    return False


def test_hidden_values_never_enter_the_guest(tmp_path: Path) -> None:
    """The search finds what the setup wrote, and nothing that only the grader knows."""
    folder = tmp_path / "tasks" / "secret-keeping"
    for name, text in TASK.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    env = cua_gym.make(load_task(folder), runs=tmp_path / "runs")
    try:
        env.reset(seed=0)
        env.step(Shell("echo typed-heron-5520 >/dev/null; cat plain-zebra.txt"))
        machine = env.machine
        assert disk_holds(machine, b"visible-zebra-9341")
        assert memory_holds(machine, b"typed-heron-5520")
        assert not disk_holds(machine, b"hidden-walrus-7718")
        assert not memory_holds(machine, b"hidden-walrus-7718")
        outcome = env.episode.evaluate()
        assert (outcome.kind, outcome.score) == ("scored", 0.0)
        assert not memory_holds(machine, b"hidden-walrus-7718")
        assert not disk_holds(machine, b"hidden-walrus-7718")
    finally:
        env.close()
