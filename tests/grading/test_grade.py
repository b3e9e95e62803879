"""Grading: a process of its own, whose every fault is unscored."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from cua_gym.errors import GradingError
from cua_gym.grading.checkpoints import score, success
from cua_gym.grading.grade import Limits, grade
from cua_gym.grading.outcome import CheckpointResult, Outcome

from .conftest import Bench

PASS = "@check\ndef probe(item: Item) -> Verdict:\n    'Accepts all.'\n    "


def graded(bench: Bench, **limits: Any) -> Outcome:
    return grade(bench.evidence, bench.asked, Limits(**limits))


def test_a_true_state_is_scored(bench: Bench):
    """With what was seen and wanted."""
    bench.machine.shell.write("/home/user/note.txt", b"hello\n")
    bench.values["params.word"] = "hello"
    bench.point("text.equals", args={"expected": "{params.word}"})
    bench.collect()
    outcome = graded(bench)
    assert (outcome.kind, outcome.score, outcome.success) == ("scored", 1.0, True)
    assert (outcome.checkpoints[0].seen, outcome.checkpoints[0].wanted) == ("hello\n", "hello")
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


def test_a_part_is_no_success(bench: Bench):
    """0.1 stays 0.1 and is not a success (B128)."""
    bench.machine.shell.write("/home/user/note.txt", b"hello")
    bench.point("files.exists", weight=0.1)
    bench.point("text.equals", weight=0.9, args={"expected": "other"})
    bench.collect()
    outcome = graded(bench)
    assert (outcome.score, outcome.success) == (0.1, False)


def test_the_agents_claim_is_no_verdict(bench: Bench):
    """It says done and the right word; the state says no (B136, B146)."""
    bench.point("text.equals", args={"expected": "10"})
    bench.collect({"kind": "submit", "answer": "10", "reason": None})
    outcome = graded(bench)
    assert (outcome.score, outcome.success) == (0.0, False)


@pytest.mark.parametrize(("feasible", "wanted"), [(True, 0.0), (False, 1.0)])
def test_giving_up_scores_only_where_it_can_be_right(bench: Bench, feasible: bool, wanted: float):
    """On a feasible task it is 0, whatever the state."""
    bench.feasible = feasible
    bench.point("answer.gave_up", evidence="submission")
    bench.collect({"kind": "give_up", "answer": None, "reason": "no such file"})
    assert graded(bench).score == wanted


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("raise ValueError('broken')", "ValueError: broken"),
        ("return True", "not a Verdict"),
        ("return Verdict(1.0, 5)", "checkpoint c0: a verdict's message is text, not 5"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import os; os._exit(0)", "exited with 0 without an answer"),
        ("raise SystemExit(3)", "exited with 3"),
        ("return Verdict(float('nan'))", "from 0 to 1"),
        ("import os; os.kill(os.getppid(), 9)", "SIGKILL"),
        ("import os, sys; print('last words', file=sys.stderr); os._exit(3)", "last words"),
    ],
)
def test_a_broken_check_is_unscored(bench: Bench, body: str, cause: str):
    """Never a zero, and the cause is named."""
    bench.checks(PASS + body)
    bench.point("checks.probe", evidence="answer")
    bench.collect()
    outcome = graded(bench)
    assert (outcome.kind, outcome.reason, outcome.phase) == ("unscored", "grader", "grade")
    assert cause in (outcome.cause or "")


def test_a_value_of_numpys_is_a_number(bench: Bench):
    """What a mean() gives needs no float() around it."""
    bench.checks(PASS + "import numpy; return Verdict(numpy.ones(3).mean())")
    bench.point("checks.probe", evidence="answer")
    bench.collect()
    assert graded(bench).score == 1.0


def test_a_hanging_check_is_killed(bench: Bench):
    """With everything that it started."""
    mark = f"60.{secrets.randbelow(10**9)}"
    bench.checks(PASS + f"import subprocess; subprocess.run(['sleep', '{mark}'])")
    bench.point("checks.probe", evidence="answer")
    bench.collect()
    outcome = graded(bench, wall_s=1.5)
    assert outcome.reason == "grader"
    assert "was killed" in (outcome.cause or "")
    deadline = time.monotonic() + 30  # a PID namespace ends a moment after its first process
    while subprocess.run(["pgrep", "-f", f"sleep {mark}$"], check=False).returncode == 0:
        assert time.monotonic() < deadline


EXHAUSTING = [
    ("import itertools; sum(itertools.repeat(0))", "more processor time"),
    ("return Verdict(1.0) if len(bytearray(1 << 40)) else None", "MemoryError"),
    ("return probe(item)", "RecursionError"),
    ("import os; os.abort()", "SIGABRT"),
    ("open('big', 'wb').truncate(1 << 40)", "OSError [Errno 27]"),
    ("kept = [open('/dev/null') for _ in range(9999)]", "OSError [Errno 24]"),
    ("import json; json.loads('[' * 5000 + ']' * 5000)", "RecursionError"),
    ("seen = []\n    for _ in range(5000): seen = [seen]\n    return Verdict(1.0, seen=seen)",
     "RecursionError"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "cause"), EXHAUSTING)
def test_what_no_check_can_finish_counts_against_the_attempt(bench: Bench, body: str, cause: str):
    """Nobody has an attempt left out of the count by a file that no parser survives."""
    bench.checks(PASS + body)
    bench.point("checks.probe", evidence="answer", weight=0.5)
    bench.point("files.absent", evidence="note", weight=0.5)
    bench.point("checks.probe", evidence="answer", weight=-0.2)
    bench.point("checks.probe", evidence="answer", weight=-0.1, negate=True)
    bench.collect()
    outcome = graded(bench, cpu_s=1)
    assert (outcome.kind, outcome.success) == ("scored", False)
    assert [p.value for p in outcome.checkpoints] == [0.0, 1.0, 1.0, 1.0]
    assert [p.exhausted for p in outcome.checkpoints] == [True, False, True, True]
    assert cause in outcome.checkpoints[0].message
    assert outcome.score == 0.2
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


def test_working_until_the_wall_is_exhausting_and_waiting_is_not(bench: Bench):
    """A host with no time for us is no fault of the content; a check that works and works is."""
    bench.checks(
        PASS + "import time\n    while time.process_time() < 0.5: pass\n    time.sleep(600)"
    )
    bench.point("checks.probe", evidence="answer")
    bench.collect()
    worked = graded(bench, wall_s=5.0, cpu_s=2)
    assert (worked.score, worked.checkpoints[0].exhausted) == (0.0, True)
    assert "over 5 s" in worked.checkpoints[0].message
    waited = graded(bench, wall_s=2.0, cpu_s=1000)
    assert waited.reason == "grader"


def test_what_a_check_prints_is_not_the_answer(bench: Bench):
    """Nor can it forge one that way."""
    bench.checks(PASS + "print('{\"results\": []}', flush=True); return Verdict(0.0)")
    bench.point("checks.probe", evidence="answer")
    bench.collect()
    assert graded(bench).score == 0.0


def test_the_grader_has_no_network(bench: Bench):
    """Not even this host's own, where the host can take it away."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        port = server.getsockname()[1]
        bench.checks(
            PASS + f"import socket\n    try: socket.create_connection(('127.0.0.1', {port}), 2)\n"
            "    except OSError: return Verdict(0.0)\n    return Verdict(1.0)"
        )
        bench.point("checks.probe", evidence="answer")
        bench.collect()
        outcome = graded(bench)
    assert outcome.score == (0.0 if (outcome.network or "").startswith("none") else 1.0)


def test_the_grader_imports_only_what_a_check_needs(bench: Bench):
    """Not Gymnasium, numpy or PyAV: each grading would begin with a wait for them."""
    heavy = {"av", "gymnasium", "numpy", "paramiko", "PIL", "pydantic"}
    bench.checks(PASS + f"import sys; return Verdict(1.0, seen=sorted({heavy} & {{*sys.modules}}))")
    bench.point("checks.probe", evidence="answer")
    bench.collect()
    assert graded(bench).checkpoints[0].seen == "[]"


def test_broken_evidence_is_unscored(bench: Bench):
    """With the reason evidence, not grader."""
    bench.point("files.exists")
    bench.collect()
    (bench.evidence / "manifest.json").write_text("{")
    assert graded(bench).reason == "evidence"
    assert grade(bench.folder / "nowhere", bench.asked).reason == "evidence"


def test_grading_again_gives_the_same(bench: Bench):
    """It is pure: the same evidence, the same outcome, also side by side."""
    bench.machine.shell.write("/home/user/note.txt", b"hello")
    bench.point("text.states", args={"facts": [["hello"], ["world"]]})
    bench.collect()
    outcomes: list[Outcome] = []
    threads = [threading.Thread(target=lambda: outcomes.append(graded(bench))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].score == 0.5


def point(weight: float, value: float, required: bool = False) -> CheckpointResult:
    return CheckpointResult("x", weight, value == 1.0, value, required)


@pytest.mark.parametrize(
    ("points", "wanted", "won"),
    [
        ([point(1.0, 1.0, True)], 1.0, True),
        ([point(0.7, 1.0, True), point(0.3, 0.0)], 0.7, True),
        ([point(1.0, 1.0, True), point(-0.4, 1.0)], 0.6, False),
        ([point(1.0, 0.0, True), point(-0.4, 1.0)], 0.0, False),
        ([point(0.1, 1.0)] * 10, 1.0, True),
        ([point(0.5, 0.5, True), point(0.5, 1.0, True)], 0.75, False),
    ],
)
def test_weights_add_up(points: list[CheckpointResult], wanted: float, won: bool):
    """Negative ones subtract, the sum is kept from 0 to 1, success is every required one."""
    assert (score(points), success(points)) == (wanted, won)


def test_a_checkpoint_counts_only_after_its_gates(bench: Bench):
    """In whatever order they stand; the message says which is missing and what it is alone."""
    bench.machine.shell.write("/home/user/note.txt", b"hello")
    bench.point("files.exists", weight=0.3, after=("c2",))
    bench.point("files.exists", weight=-0.2, after=("c2",))
    bench.point("text.equals", weight=0.3, after=("c3",), args={"expected": "hello"})
    bench.point("text.equals", weight=0.4, args={"expected": "hello"})
    bench.collect()
    assert graded(bench).score == 0.8
    bench.machine.shell.write("/home/user/note.txt", b"hell")
    bench.points[2] = replace(bench.points[2], args={"expected": "hell"})
    bench.collect()
    outcome = graded(bench)
    assert (outcome.score, [p.value for p in outcome.checkpoints]) == (0.0, [0.0] * 4)
    assert "counts only after c3, which did not pass; alone it is 1" in (
        outcome.checkpoints[2].message
    )
    assert "counts only after c2" in outcome.checkpoints[0].message
    assert not outcome.checkpoints[0].passed


def test_a_negated_checkpoint_turns_the_check_round(bench: Bench):
    """A changed or missing file fires it."""
    bench.point("files.exists", weight=1.0)
    bench.point("text.equals", weight=-0.5, negate=True, args={"expected": "kept"})
    bench.machine.shell.write("/home/user/note.txt", b"kept")
    bench.collect()
    assert graded(bench).score == 1.0
    bench.machine.shell.write("/home/user/note.txt", b"lost")
    bench.collect()
    outcome = graded(bench)
    assert (outcome.score, outcome.success) == (0.5, False)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "scored"},
        {"kind": "scored", "score": 1.1},
        {"kind": "scored", "score": float("nan")},
        {"kind": "unscored", "reason": "machine", "score": 0.0},
        {"kind": "unscored", "reason": "bad luck"},
        {"kind": "failed"},
    ],
)
def test_an_unscored_outcome_has_no_score(fields: dict[str, Any]):
    """And a scored one has a real one: neither can be mistaken for the other."""
    with pytest.raises(GradingError):
        Outcome(**fields)
