"""What reading an agent's content may cost."""

from __future__ import annotations

import signal
import threading

import pytest

from cua_gym.grading.check import Fails
from evaluators import bounds


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CPU_S", 0.1)


def spin() -> None:
    """What never ends."""
    while True:
        pass


def test_time_has_an_end_and_nothing_stays_behind():
    """Neither a timer nor a handler."""
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(Fails, match=r"the file: over 0\.1 s"), bounds.within("the file"):
        spin()
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_one_within_another_prolongs_nothing():
    """The outer time goes on."""

    def inner() -> None:
        with bounds.within("inner"):
            pass
        with bounds.within("inner"):
            spin()

    with pytest.raises(Fails, match="outer"), bounds.within("outer"):
        inner()


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_too_much_memory_and_depth_are_the_contents_fault(error: type[Exception]):
    """Our own faults pass through."""
    with pytest.raises(Fails, match=error.__name__), bounds.within("the file"):
        raise error
    with pytest.raises(KeyError), bounds.within("the file"):
        raise KeyError


def test_another_thread_has_no_bound_and_no_fault():
    """No signal arrives there."""
    done = []

    def read() -> None:
        with bounds.within("the file"):
            done.append(True)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert done == [True]
