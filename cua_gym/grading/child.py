"""The grader's process: folders of evidence in, verdicts out, a line of JSON for each.

It imports the checks once and looks at nothing that an agent made. Each folder is judged in a fork
of its own, with limits, a scratch folder and no way back: nothing that one folder does can reach
the next. A checkpoint that takes more than any honest work needs ends its fork and counts against
the attempt; the checkpoints after it are judged in a new one. Nothing is unpickled or evaluated.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import math
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from cua_gym.errors import GradingError
from cua_gym.grading.checkpoints import Question, Rubric
from cua_gym.grading.items import Altered, Evidence
from cua_gym.grading.limits import Limits

MB = 1024 * 1024
PR_SET_CHILD_SUBREAPER = 36

CONTENT_KILLS = {
    signal.SIGXCPU: "more processor time than any honest work needs",
    signal.SIGSEGV: "a parser that broke on it (SIGSEGV)",
    signal.SIGBUS: "a parser that broke on it (SIGBUS)",
    signal.SIGABRT: "a parser that gave up on it (SIGABRT)",
    signal.SIGFPE: "a parser that broke on it (SIGFPE)",
    signal.SIGILL: "a parser that broke on it (SIGILL)",
}
"""What a check dies of when content is to blame. SIGKILL is the host's: its memory was full."""
WORKING = 0.25
"""Share of its processor time that a check took which was still working, not waiting, when the
wall time was over: a host that has no time for us is no fault of the content."""


class _Died(GradingError):
    """The fork ended for no reason that lies in the content."""


def main() -> None:
    """Answer requests until standard input ends.

    The first line is the limits. Then ``{"rubric": ...}`` is answered by ``{}``, and
    ``{"evidence": folder}`` by ``{"results": [...]}``; either by ``{"error": text}``.
    """
    # What a check prints must not end up in the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # What a check leaves running becomes a child of ours, which `_sweep` ends.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    limits = Limits(**json.loads(sys.stdin.readline()))
    questions: list[Question] = []
    for line in sys.stdin:
        request = json.loads(line)
        reply: dict[str, Any] = {}
        try:
            if "rubric" in request:
                questions = Rubric.from_dict(request["rubric"]).questions()
            else:
                results = _judge(Path(request["evidence"]), questions, limits)
                reply = {"results": results}
        except GradingError as error:
            reply = {
                "error": str(error),
                "died": isinstance(error, _Died),
                "altered": isinstance(error, Altered),
            }
        print(json.dumps(reply, allow_nan=False), file=answers, flush=True)


def _judge(folder: Path, questions: Sequence[Question], limits: Limits) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    while len(results) < len(questions):
        results += _fork(folder, questions[len(results) :], limits)
    return results


def _fork(folder: Path, questions: Sequence[Question], limits: Limits) -> list[dict[str, Any]]:
    """At least one verdict; fewer than asked for when the last one exhausted its fork."""
    scratch = tempfile.mkdtemp()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(writing, folder, scratch, questions, limits)
    os.close(writing)
    try:
        return _hear(pid, reading, questions, limits)
    finally:
        os.close(reading)
        _sweep()
        shutil.rmtree(scratch, ignore_errors=True)


# within the fork


def _answer(
    writing: int, folder: Path, scratch: str, questions: Sequence[Question], limits: Limits
) -> NoReturn:
    code = 1
    try:
        _confine(writing, scratch, limits)
        _speak(writing, folder, questions, limits)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # No clean-up of the parent's things, whatever happened.
        sys.stderr.flush()
        os._exit(code)


def _speak(writing: int, folder: Path, questions: Sequence[Question], limits: Limits) -> None:
    with os.fdopen(writing, "w") as answers:

        def say(**line: Any) -> None:
            print(json.dumps(line, allow_nan=False), file=answers, flush=True)

        try:
            evidence = Evidence(folder)
            for question in questions:
                _limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + limits.cpu_s)
                result = question.answer(evidence)
                say(result=dataclasses.asdict(result), cpu_s=sum(os.times()[:4]))
                if result.exhausted:
                    return
        except GradingError as error:
            say(error=str(error), altered=isinstance(error, Altered))


def _confine(writing: int, scratch: str, limits: Limits) -> None:
    """Limits, and nothing of the parent's open but the way to answer."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.closerange(3, writing)
    os.closerange(writing + 1, 1024)
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = scratch
    os.chdir(scratch)
    _limit(resource.RLIMIT_AS, limits.memory_mb * MB)
    _limit(resource.RLIMIT_FSIZE, limits.file_mb * MB)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


# beside the fork


@dataclass(slots=True)
class _Heard:
    """What a fork has said so far."""

    results: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    cpu_s: float = 0.0
    error: GradingError | None = None

    def take(self, line: dict[str, Any]) -> None:
        if "error" in line:
            kind = Altered if line["altered"] else GradingError
            self.error = kind(line["error"])
        else:
            self.results.append(line["result"])
            self.cpu_s = line["cpu_s"]


def _hear(
    pid: int, reading: int, questions: Sequence[Question], limits: Limits
) -> list[dict[str, Any]]:
    heard = _Heard()
    late = False
    try:
        for line in _lines(reading, limits.wall_s):
            heard.take(json.loads(line))
    except TimeoutError:
        late = True
    if late:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    if heard.error is not None:
        raise heard.error
    complete = len(heard.results) == len(questions)
    if complete or (heard.results and heard.results[-1]["exhausted"]):
        return heard.results
    question = questions[len(heard.results)]
    what = f"checkpoint {question.point.id}"
    why: str | None
    if late:
        cpu_s = usage.ru_utime + usage.ru_stime - heard.cpu_s
        if cpu_s < WORKING * limits.cpu_s:
            raise _Died(
                f"{what}: the grader ran over {limits.wall_s:g} s and was killed; it had used "
                f"{cpu_s:.1f} s of processor time"
            )
        why = f"over {limits.wall_s:g} s, {cpu_s:.0f} s of it processor time"
    elif os.WIFSIGNALED(status):
        number = signal.Signals(os.WTERMSIG(status))
        why = CONTENT_KILLS.get(number)
        if why is None:
            raise _Died(f"{what}: the grader was killed by {number.name}")
    else:
        code = os.waitstatus_to_exitcode(status)
        raise _Died(f"{what}: the grader exited with {code} without an answer")
    return [*heard.results, dataclasses.asdict(question.exhausted(why))]


def _lines(reading: int, wall_s: float) -> Iterator[bytes]:
    """Whole lines until the end, each within its time.

    Raises:
        TimeoutError: the next one did not come.
    """
    rest = b""
    deadline = time.monotonic() + wall_s
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        data = os.read(reading, 1 << 16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line
            deadline = time.monotonic() + wall_s


def _sweep() -> None:
    """End what a check left running, however it hid: all of it is a child of ours by now."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        left = list(_children())
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(-1, 0 if left else os.WNOHANG)


def _children() -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
        if parent == os.getpid():
            yield int(path.parent.name)


if __name__ == "__main__":
    main()
