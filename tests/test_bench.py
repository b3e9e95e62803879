"""The benchmark's own logic, on computers in memory: what it counts, and how it writes it down."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.settle import Settle
from cua_gym.task import Task
from scripts.bench_parts import forks, vectors
from scripts.bench_parts.machines import has_room
from scripts.bench_parts.memory import tree_mb
from scripts.bench_parts.page import markdown
from scripts.bench_parts.plot import svg
from scripts.bench_parts.relay import relayed
from scripts.bench_parts.report import Pace, Report, p95
from tests.run.toy import make_suite, on_toy_computer

PACE = Pace(samples=2, rounds=1, seconds=0.01)


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    quick = Settle(first_s=0.02, quiet_s=0.01, max_s=0.5)
    monkeypatch.setattr(FakeMachine, "settle", quick, raising=False)
    monkeypatch.setitem(vectors.OPTIONS, "settle", quick)
    return on_toy_computer(make_suite(tmp_path / "suite").task("type-word"))


@pytest.fixture
def report() -> Report:
    """Two ways for two numbers of machines, a single row, a ratio and a gap."""
    made = Report(host={"date": "2026-01-01", "cores": 2})
    made.begin("fake", "vectors")
    for many in (1, 2):
        made.add("ours, steps", [10.0 * many, 12.0 * many], "1/s", many)
        made.add("theirs <&>, steps", [5.0], "1/s", many)
    made.add("a frame", [3.0, 1.0, 2.0], "ms")
    made.ratio("ours / theirs", made.median("ours, steps", 2), 5.0, ">= 3", 2)
    made.leave_out("ours", "no memory", 4)
    return made


def test_medians_and_p95(report: Report):
    """Of values in any order, few or many; p95 is one of them."""
    assert (report.rows[-1].p50, report.rows[-1].p95, report.rows[-1].n) == (2.0, 3.0, 3)
    assert p95([float(i) for i in range(100)]) == 95.0
    assert p95([7.0]) == 7.0
    assert report.median("ours, steps", 2) == 22.0
    assert report.median("ours, steps", 3) is None


def test_a_ratio_needs_both_sides(report: Report):
    """What was left out is in no ratio."""
    report.ratio("nothing", None, 5.0)
    report.ratio("nothing", 5.0, None)
    assert [(r.what, r.value, r.wanted) for r in report.ratios] == [("ours / theirs", 4.4, ">= 3")]


def test_the_page_has_a_column_for_each_number(report: Report):
    """A table for what grows, one for the rest, ratios, and what is missing and why."""
    page = markdown(report, {"vectors": "What it contains."})
    assert "| what, p50 (p95) | unit | 1 | 2 |" in page
    assert "| ours, steps | 1/s | 11 (12) | 22 (24) |" in page
    assert "| a frame | 2 | 3 | ms | 3 |" in page
    assert "| fake | ours / theirs | 2 | 4.4 | >= 3 |" in page
    assert "4 x ours: no memory" in page
    assert "What it contains." in page


def test_the_plot_is_a_picture_with_a_line_for_each_way(report: Report):
    """Well-formed, whatever is in the names; nothing but what grows."""
    root = ElementTree.fromstring(svg(report))
    lines = [e for e in root.iter() if e.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [2, 2]
    assert "prefers-color-scheme: dark" in svg(report)
    ElementTree.fromstring(svg(Report()))


def test_the_json_has_it_all(report: Report):
    """And can be read back."""
    again = json.loads(json.dumps(report.as_json()))
    assert [len(again[key]) for key in ("rows", "ratios", "left_out")] == [5, 1, 1]
    assert again["rows"][0]["many"] == 1


def test_vectors_are_measured(toy: Task):
    """Each way has its rows."""
    report = Report(machine="fake", part="vectors")
    vectors.measure(report, "fake", toy, PACE, [2], aside=False)
    for way in (vectors.ALONE, vectors.IN_STEP, vectors.VECTOR, vectors.SYNC, vectors.FILMED):
        assert report.median(f"{way}, steps", 2), way
        assert report.median(f"{way}, a step", 2), way
    assert report.median("reset all", 2)


@pytest.mark.slow
def test_gymnasiums_workers_are_measured(toy: Task):
    """They have processes of their own, whose memory counts."""
    report = Report(machine="fake", part="vectors")
    vectors.measure(report, "fake", toy, PACE, [2])
    assert report.median(f"{vectors.ASYNC}, steps", 2)
    assert (report.median(f"{vectors.ASYNC}, memory of each", 2) or 0) > 1
    assert any("AsyncVectorEnv" in ratio.what for ratio in report.ratios)


def test_forks_are_measured(toy: Task):
    """Times of each round, and how many children began with the parent's frame."""
    report = Report(machine="fake", part="forks")
    forks.measure(report, "fake", toy, PACE)
    assert report.median(f"fork({forks.CHILDREN}), until all have their frame")
    assert report.median(f"fork({forks.CHILDREN}), right frames") is not None


def test_what_has_no_room_is_left_out():
    """For want of memory, or since the number before was slow already; it says so."""
    report = Report()
    assert has_room(report, "qemu", "ours", 1, 0.1)
    assert not has_room(report, "qemu", "ours", 10**6, 0.1)
    assert not has_room(report, "qemu", "ours", 1, 30.0)
    assert ["memory" in report.left_out[0]["why"], "step" in report.left_out[1]["why"]] == [
        True
    ] * 2


def test_memory_counts_descendants():
    """A child's pages are in it."""
    before = tree_mb()
    code = "data = bytearray(b'x') * 50_000_000; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert tree_mb() - before > 40
        child.communicate(b"\n")


def test_a_relay_joins_both_ways():
    """Many connections, each until its end."""

    def far() -> socket.socket:
        ours, theirs = socket.socketpair()

        def shout() -> None:
            with theirs:
                while data := theirs.recv(100):
                    theirs.sendall(data.upper())

        threading.Thread(target=shout, daemon=True).start()
        return ours

    with relayed(far) as port:
        for word in (b"one", b"two"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as near:
                near.sendall(word)
                assert near.recv(100) == word.upper()


def test_it_says_its_parts():
    """Without starting anything."""
    script = Path(__file__).parents[1] / "scripts/bench.py"
    done = subprocess.run(
        [sys.executable, str(script), "--help"], capture_output=True, text=True, check=True
    )
    assert "vectors" in done.stdout
