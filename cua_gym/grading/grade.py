"""From evidence to an outcome, in a process of its own.

The grader's process has limits on memory, processor time, open files and wall time, no network
where this host can take it away, and speaks only JSON over its standard streams. Whatever goes
wrong in it is `unscored`, never a zero. A grading takes no machine, so it can be repeated for ever.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cua_gym
from cua_gym.errors import GradingError
from cua_gym.grading.checkpoints import Rubric, score, success
from cua_gym.grading.items import Evidence
from cua_gym.grading.outcome import CheckpointResult, Outcome
from cua_gym.grading.probes import Asks

__all__ = ["Limits", "grade"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a grader may use.

    Attributes:
        wall_s: then it is killed.
        cpu_s: processor time.
        memory_mb: address space.
        file_mb: largest file that it may write.
        open_files: open file descriptors.
    """

    wall_s: float = 120.0
    cpu_s: int = 60
    memory_mb: int = 2048
    file_mb: int = 256
    open_files: int = 256


def grade(evidence: Path, asked: Asks, limits: Limits = Limits()) -> Outcome:
    """The outcome of what lies in an evidence folder.

    Args:
        evidence: folder written by `cua_gym.grading.evidence.collect`.
        asked: the variation that was attempted.

    Returns:
        `scored`, or `unscored` with reason ``evidence`` (it is broken) or ``grader``.
    """
    rubric: Rubric = asked.rubric
    try:
        found = Evidence(evidence)
        gave_up = _submission(found).get("kind") == "give_up"
    except GradingError as error:
        return Outcome.unscored("evidence", "grade", str(error))
    try:
        network, prefix = _no_network()
        reply = _run_child(prefix, evidence, rubric, limits)
        results = [
            CheckpointResult(**{**r, "evidence": tuple(r["evidence"])}) for r in reply["results"]
        ]
        if [r.id for r in results] != [c.id for c in rubric.checkpoints]:
            raise GradingError("the grader answered other checkpoints than it was asked")
    except GradingError as error:
        return Outcome.unscored("grader", "grade", str(error))
    except (KeyError, TypeError) as error:
        return Outcome.unscored("grader", "grade", f"the grader's answer is malformed: {error!r}")
    if gave_up and rubric.feasible:
        return Outcome.scored(0.0, False, results, network)
    return Outcome.scored(score(results), success(results), results, network)


def _submission(evidence: Evidence) -> Mapping[str, Any]:
    data = json.loads(evidence["submission"].bytes())
    if not isinstance(data, dict):
        raise GradingError(f"submission.json is {data!r:.80}, not an object")
    return data


def _run_child(
    prefix: tuple[str, ...], evidence: Path, rubric: Rubric, limits: Limits
) -> Mapping[str, Any]:
    request = {
        "evidence": str(evidence.resolve()),
        "rubric": rubric.to_dict(),
        "limits": {
            "cpu_s": limits.cpu_s,
            "memory_mb": limits.memory_mb,
            "file_mb": limits.file_mb,
            "open_files": limits.open_files,
        },
    }
    with tempfile.TemporaryDirectory(prefix="cua-gym-grade-") as scratch:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": scratch,
            "TMPDIR": scratch,
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(Path(cua_gym.__file__).parents[1]),
            # A grader's result must not depend on the order of a set.
            "PYTHONHASHSEED": "0",
        }
        if prefix[:1] == ("bwrap",):
            prefix = (*prefix, "--bind", scratch, scratch)
        command = [*prefix, sys.executable, "-P", "-s", "-B", "-m", "cua_gym.grading.child"]
        with subprocess.Popen(
            command,
            cwd=scratch,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as child:
            try:
                out, err = child.communicate(json.dumps(request).encode(), limits.wall_s)
            except subprocess.TimeoutExpired:
                raise GradingError(
                    f"the grader ran over {limits.wall_s:g} s and was killed"
                ) from None
            finally:
                _kill_group(child.pid)
    complaint = err.decode(errors="replace").strip()[-1000:]
    if child.returncode != 0:
        raise GradingError(f"the grader {_death(child.returncode)}: {complaint or 'no message'}")
    try:
        reply = json.loads(out)
    except ValueError as error:
        raise GradingError(f"the grader answered {out[:200]!r}: {error}") from error
    if not isinstance(reply, dict):
        raise GradingError(f"the grader answered {out[:200]!r}, not an object")
    if "error" in reply:
        raise GradingError(str(reply["error"]))
    return reply


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # all of it has ended, as it should have


def _death(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    # bwrap reports a signal as 128 + its number.
    if 128 < code <= 128 + signal.SIGSYS:
        return f"was killed by {signal.Signals(code - 128).name}"
    return f"exited with {code}"


@functools.cache
def _no_network() -> tuple[str, tuple[str, ...]]:
    """How a process is started without a network here, tried once: (what it is, command)."""
    whole = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    ways = (
        ("none (bwrap)", ("bwrap", "--unshare-all", "--die-with-parent", *whole)),
        ("none (unshare)", ("unshare", "--net")),
        ("none (unshare)", ("unshare", "--map-root-user", "--net")),
    )
    for name, prefix in ways:
        if shutil.which(prefix[0]) is None:
            continue
        tried = subprocess.run([*prefix, "true"], capture_output=True, timeout=30, check=False)
        if tried.returncode == 0:
            return name, prefix
    return "not taken away: neither bwrap nor unshare works here", ()
