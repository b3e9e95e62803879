"""Ctrl-C, kills and odd standard streams, with a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.record.layout import RunFolder, attempts
from cua_gym.record.replay import Replay

ROOT = Path(__file__).parents[2]


def command(tmp_path: Path, *agents: str) -> list[str]:
    """A run of the toy task by these agents."""
    words = [sys.executable, "-m", "tests.cli.toy_program", str(tmp_path / "suite")]
    words += ["run", "type-word", "--json", "--runs", str(tmp_path / "runs")]
    for agent in agents:
        words += ["--agent", f"tests.run.agents:{agent}"]
    return words


@pytest.fixture
def sleeping(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that did one attempt and sleeps in its second."""
    process = subprocess.Popen(
        command(tmp_path, "Worker", "Sleeper"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=hear_ctrl_c,
        # One is killed, and the computer in memory then leaves its files.
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr is not None
    with process:
        assert "sleeping\n" in process.stderr
        yield process
        process.kill()


def hear_ctrl_c() -> None:
    """Undo what a shell does to its background jobs, which would be inherited: SIGINT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c(sleeping: subprocess.Popen[str], tmp_path: Path) -> None:
    """The run ends with code 130 and no traceback, and the finished attempt is in the answer."""
    sleeping.send_signal(signal.SIGINT)
    out, err = sleeping.communicate(timeout=60)
    assert sleeping.returncode == 130, err
    assert "Traceback" not in err
    assert [row["score"] for row in json.loads(out)["outcomes"]] == [1.0]
    assert sorted(f.result.exists() for f in attempts(tmp_path / "runs")) == [False, True]


def test_sigkill(sleeping: subprocess.Popen[str], tmp_path: Path) -> None:
    """After SIGKILL the finished attempt is whole and the broken one's steps parse."""
    sleeping.kill()
    sleeping.communicate(timeout=60)
    found: list[RunFolder] = sorted(attempts(tmp_path / "runs"), key=lambda f: f.result.exists())
    broken, done = found
    assert [s.index for s in Replay(broken).steps()] == [0]
    assert (Replay(done).result or {})["score"] == 1.0


def test_the_answer_is_one_object(tmp_path: Path) -> None:
    """What the agent and its child processes print stands on standard error."""
    done = subprocess.run(
        command(tmp_path, "Printer"), capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert json.loads(done.stdout)["outcomes"][0]["score"] == 1.0
    assert "thinking ..." in done.stderr
    assert "tool output" in done.stderr


def test_an_answer_that_cannot_be_written(tmp_path: Path) -> None:
    """A full device for an answer is a fault of code 3 with a sentence, not a traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(tmp_path, "Worker"), stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
    assert done.returncode == 3
    assert "the answer cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
