"""The grader's process from outside: started without a network, asked, ended.

What it does with a question is `child`'s business, what the answers come to is `grade`'s.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import cua_gym
from cua_gym.errors import GradingError
from cua_gym.grading.checkpoints import Rubric
from cua_gym.grading.items import Altered
from cua_gym.grading.limits import LIMITS, Limits
from cua_gym.grading.outcome import CheckpointResult

__all__ = ["Grader"]

SLACK_S = 60.0
"""The process keeps its own time; this is for one that hangs itself, on a busy host."""


class Grader:
    """Judges evidence folders, one after the other; a context manager.

    Its process is started when first asked. When it dies or hangs, that question alone fails, and
    the next one gets a new process.

    Attributes:
        network: how the process is kept off the network, or that it is not.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.network, self._prefix = _no_network()
        self._limits = limits
        self._process: _Process | None = None
        self._rubric: Rubric | None = None
        self._fault: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def judge(self, evidence: Path, rubric: Rubric) -> list[CheckpointResult]:
        """The verdicts of a rubric's checkpoints on an evidence folder.

        The same rubric is sent and its checks are imported once, while it does not change.

        Raises:
            Altered: the evidence is not what was collected.
            GradingError: the rubric cannot be asked, a check broke, or the process died or hung.
        """
        self._take_up(rubric)
        patience_s = self._limits.wall_s * len(rubric.checkpoints) + SLACK_S
        reply = self._ask({"evidence": str(evidence.resolve())}, patience_s)
        try:
            results = [
                CheckpointResult(**{**r, "evidence": tuple(r["evidence"])})
                for r in reply["results"]
            ]
        except (KeyError, TypeError) as error:
            raise GradingError(f"the grader's answer is malformed: {error!r}") from error
        if [r.id for r in results] != [c.id for c in rubric.checkpoints]:
            raise GradingError("the grader answered other checkpoints than it was asked")
        return results

    def _take_up(self, rubric: Rubric) -> None:
        if rubric is not self._rubric:
            self._rubric, self._fault = None, None
        elif self._fault is not None:
            raise GradingError(self._fault)  # no folder makes that better
        elif self._process is not None:
            return
        self._rubric = rubric
        try:
            self._ask({"rubric": rubric.to_dict()}, self._limits.wall_s + SLACK_S)
        except GradingError as error:
            self._fault = str(error)
            raise

    def _ask(self, request: dict[str, Any], patience_s: float) -> dict[str, Any]:
        if self._process is None:
            self._process = _Process(self._prefix, self._limits)
        try:
            reply = self._process.ask(request, patience_s)
        except GradingError:
            self.close()
            raise
        if "error" in reply:
            said = self._process.complaint() if reply.get("died") else ""
            kind = Altered if reply.get("altered") else GradingError
            raise kind(f"{reply['error']}{said and f': {said}'}")
        return reply


class _Process:
    """One process and its scratch folder."""

    def __init__(self, prefix: tuple[str, ...], limits: Limits) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="cua-gym-grade-")
        scratch = self._scratch.name
        self._said = Path(scratch, "stderr")
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
        with self._said.open("ab", buffering=0) as stderr:
            self._popen = subprocess.Popen(
                [*prefix, sys.executable, "-P", "-s", "-B", "-m", "cua_gym.grading.child"],
                cwd=scratch,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                bufsize=0,
            )
        self._tell(dataclasses.asdict(limits))

    def ask(self, request: dict[str, Any], patience_s: float) -> dict[str, Any]:
        """One answer.

        Raises:
            GradingError: it died, hung, or answered what makes no sense.
        """
        os.truncate(self._said, 0)
        self._tell(request)
        line = self._line(patience_s)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise GradingError(f"the grader answered {line[:200]!r}: {error}") from error
        if not isinstance(reply, dict):
            raise GradingError(f"the grader answered {line[:200]!r}, not an object")
        return reply

    def complaint(self) -> str:
        """The end of what was printed since the last question."""
        return self._said.read_bytes()[-1000:].decode(errors="replace").strip()

    def close(self) -> None:
        """Kill it with all that is its own."""
        try:
            os.killpg(self._popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all of it has ended
        for stream in (self._popen.stdin, self._popen.stdout):
            assert stream is not None
            stream.close()
        self._popen.wait()
        self._scratch.cleanup()

    def _tell(self, request: dict[str, Any]) -> None:
        assert self._popen.stdin is not None
        data = memoryview(json.dumps(request).encode() + b"\n")
        try:
            while data:
                data = data[self._popen.stdin.write(data) :]
        except BrokenPipeError:
            raise self._death() from None

    def _line(self, patience_s: float) -> bytes:
        assert self._popen.stdout is not None
        answers = self._popen.stdout.fileno()
        parts = bytearray()
        deadline = time.monotonic() + patience_s
        while not parts.endswith(b"\n"):
            ready, _, _ = select.select([answers], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise GradingError(f"the grader gave no answer in {patience_s:g} s; it was killed")
            data = os.read(answers, 1 << 20)
            if not data:
                raise self._death()
            parts += data
        return bytes(parts)

    def _death(self) -> GradingError:
        code = self._popen.wait()
        # bwrap reports a signal as 128 + its number.
        number = -code if code < 0 else code - 128
        if 0 < number <= signal.SIGSYS:
            how = f"was killed by {signal.Signals(number).name}"
        else:
            how = f"exited with {code}"
        return GradingError(f"the grader {how}: {self.complaint() or 'no message'}")


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
