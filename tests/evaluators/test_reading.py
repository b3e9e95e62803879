"""The bounds on reading what an agent made."""

from __future__ import annotations

import threading

import pytest

from cua_gym.grading.check import Fails, GradingError
from evaluators.packages import once, reading


def test_reading_for_ever_is_a_plain_fail():
    """Even by a parser that swallows whatever is raised."""

    def parse() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    with pytest.raises(Fails, match=r"over 0\.2 s"), reading("a file", cpu_s=0.2):
        parse()


def test_within_another_the_outer_bound_holds():
    """The end of the inner one does not lift it."""

    def parse() -> None:
        with reading("a part"):
            pass
        while True:
            pass

    with pytest.raises(Fails, match=r"a file: over 0\.2 s"), reading("a file", cpu_s=0.2):
        parse()


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), KeyError("x"), EOFError()])
def test_what_a_parser_raises_is_the_files_fault(error: Exception):
    """Whatever it is."""
    with pytest.raises(Fails, match="no whole thing"), reading("no whole thing"):
        raise error


def test_what_is_ours_stays_ours():
    """An error of the grader is not turned into a fail; Ctrl-C is neither."""
    for error in (GradingError("ours"), KeyboardInterrupt()):
        with pytest.raises(type(error)), reading("a file"):
            raise error


def test_a_thread_reads_without_a_clock():
    """Signals go to the main thread alone; the grader's own limit holds there."""
    done = []

    def work() -> None:
        with reading("a file"):
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_file_is_read_once_failures_too():
    """Five checkpoints of a hostile file cost what one does."""
    calls = []

    @once
    def read(data: bytes) -> int:
        """Its length."""
        calls.append(data)
        if not data:
            raise Fails("empty", seen=0, wanted=1)
        return len(data)

    assert [read(b"abc"), read(b"abc")] == [3, 3]
    for _ in range(2):
        with pytest.raises(Fails, match="empty") as caught:
            read(b"")
        assert (caught.value.seen, caught.value.wanted) == (0, 1)
    assert calls == [b"abc", b""]
