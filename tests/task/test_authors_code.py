"""What an author's own files may do: raise, exit, print, be odd; it is named, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cua_gym.errors import TaskError
from cua_gym.task import load_task
from cua_gym.task.elsewhere import try_elsewhere
from tests.task.conftest import ROOT, edit

WORD = 'def vary(rng): return {"word": "x"}\n'


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("vary.py", "import sys\nsys.exit(0)", r"vary\.py raised SystemExit: 0"),
        ("vary.py", "import sys\ndef vary(rng): sys.exit(0)", r"vary\(\) raised SystemExit: 0"),
        ("vary.py", "def (", r"vary\.py is no Python: invalid syntax \(vary.py, line 1\)"),
        ("vary.py", b"# \xff\n" + WORD.encode(), r"vary\.py is no Python: 'utf-8' codec"),
        (
            "vary.py",
            "def vary(rng):\n if rng.random() > 0.5: raise ValueError('rare')\n"
            " return {'word': 'x'}",
            r"vary\(\) raised ValueError: rare \(seed \d\)",
        ),
        (
            "vary.py",
            WORD + "def inputs(params): raise KeyError('x')",
            r"inputs\(\) raised KeyError",
        ),
        ("hidden/answers.py", "def answers(p, i): return 1 / 0", r"answers\(\) raised ZeroDiv"),
        (
            "hidden/answers.py",
            "n = []\ndef answers(p, i):\n n.append(0)\n return {'n': len(n)}",
            "answers.py: seed 0 gave two different results",
        ),
        ("hidden/checks.py", "import nosuch", r"toml:5: .*checks\.py raised ModuleNotFoundError"),
        ("hidden/checks.py", "import sys; sys.exit(0)", r"toml:5: .*checks\.py raised SystemExit"),
        ("hidden/checks.py", "def (", r"checks\.py is no Python: invalid syntax"),
        (
            "hidden/checks.py",
            "from cua_gym.grading.check import check\n@check\ndef own(x): 'd'",
            r"toml:5: .*checks\.py raised TypeError: .*first parameter",
        ),
        ("oracle.py", "def (", r"oracle\.py is no Python"),
        ("oracle.py", "x = 1", r"oracle\.py defines no solve"),
    ],
)
def test_whatever_it_raises_is_named(folder: Path, file: str, text: str | bytes, message: str):
    """With its file and the cause; `sys.exit` too."""
    if file == "hidden/checks.py":
        edit(folder / "hidden/checkpoints.toml", "text.equals", "checks.own")
    (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TaskError, match=message):
        load_task(folder)


@pytest.mark.parametrize("file", ["vary.py", "oracle.py", "hidden/checkpoints.toml", "task.toml"])
def test_a_folder_is_no_file(folder: Path, file: str):
    """Nor is it taken for a file that is not there."""
    (folder / file).unlink()
    (folder / file).mkdir()
    with pytest.raises(TaskError, match=f"{file} cannot be read: Is a directory"):
        load_task(folder)


@pytest.mark.parametrize("target", ["/etc/hostname", "../hidden/checkpoints.toml", ".", "nowhere"])
@pytest.mark.parametrize("place", ["inputs/x", "hidden/x"])
def test_a_link_is_refused(folder: Path, place: str, target: str):
    """It could bring a file of the host or a hidden one into the machine."""
    (folder / place).symlink_to(target)
    with pytest.raises(TaskError, match=f"{place} is a link; put the file itself there"):
        load_task(folder)


def test_linked_declarations_and_pipes_are_refused(folder: Path):
    """All that is neither a file nor a folder, at once."""
    os.mkfifo(folder / "inputs/pipe")
    (folder / "vary.py").rename(folder / "kept.py")
    (folder / "vary.py").symlink_to("kept.py")
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    pipe, link = str(caught.value).splitlines()
    assert "inputs/pipe is neither a file nor a folder" in pipe
    assert "vary.py is a link" in link


def test_another_process_must_make_the_same(folder: Path):
    """A set's order stands still within one process, and hides from the eye behind a name."""
    try_elsewhere(load_task(folder), [0, 1])
    edit(folder / "vary.py", "return {", "some = {chr(n) for n in range(65, 91)}\n    return {")
    edit(folder / "vary.py", '"word": ', '"x": list(some), "word": ')
    with pytest.raises(TaskError, match="seed 0 is another variation in another process"):
        try_elsewhere(load_task(folder), [0, 1])


def test_prints_leave_the_answer_alone(folder: Path):
    """`task show --json` is one object, whatever the task's files print."""
    edit(folder / "vary.py", "import random\n", "import os\nimport random\nprint('hello')\n")
    edit(folder / "vary.py", "    return {", "    os.system('echo noise')\n    return {")
    command = [sys.executable, "-m", "cua_gym.cli", "task", "show", str(folder), "--json"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout[:1], len(done.stdout.splitlines())) == (0, "{", 1)
    assert "hello" in done.stderr
    assert "noise" in done.stderr
