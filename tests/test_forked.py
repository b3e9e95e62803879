"""What a forked child has of its parent's is still the parent's alone."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cua_gym.forked import finalizer
from cua_gym.image.workshop import locked
from cua_gym.machine import admission
from cua_gym.machine.qemu.states import StateStore


@pytest.fixture
def fork() -> Iterator[Callable[[], int]]:
    """Forks a child that has all open files of now until the test's end."""
    with contextlib.ExitStack() as stack:

        def fork() -> int:
            waits, end = os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # a test runner has threads
                child = os.fork()
            if not child:
                os.close(end)
                os.read(waits, 1)
                os._exit(0)
            os.close(waits)
            stack.callback(os.waitpid, child, 0)
            stack.callback(os.close, end)
            return child

        yield fork


def is_free(path: Path) -> bool:
    """Whether nobody has locked it."""
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


def test_a_lock_on_a_file_ends(fork: Callable[[], int], tmp_path: Path) -> None:
    """With its holder's use of it, not with a child that was forked meanwhile."""
    with locked(tmp_path / "lock"):
        assert not is_free(tmp_path / "lock")
        fork()
    assert is_free(tmp_path / "lock")


def test_the_right_to_make_a_state_ends(fork: Callable[[], int], tmp_path: Path) -> None:
    """Likewise."""
    store = StateStore(tmp_path, 1 << 20)
    with store.building(tmp_path / "state"):
        assert not is_free(tmp_path / "locks/state")
        fork()
    assert is_free(tmp_path / "locks/state")


def test_the_notes_on_machines_are_free_again(
    fork: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody with this cache waits for a child that was forked while they were read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(admission.VARIABLE, raising=False)

    def available_mb() -> int:
        fork()
        return 4096

    monkeypatch.setattr(admission, "available_mb", available_mb)
    admission.need_room([1])
    assert is_free(tmp_path / "cua-gym/run/rooms")


def test_a_child_frees_no_lock_of_its_parent(tmp_path: Path) -> None:
    """One that leaves the lock's block, by sys.exit say, while its parent is in it."""
    with contextlib.suppress(SystemExit), locked(tmp_path / "lock"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            raise SystemExit
        os.waitpid(child, 0)
        assert not is_free(tmp_path / "lock")
        return
    os._exit(0)


PARENT = """
import gc, os, sys
from cua_gym.machine.admission import room_for
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import start_machine

machine = start_machine(MachineSpec(backend="fake", screen=(64, 48)))
machine.shell.write("/home/user/kept", b"kept")
state = machine.snapshot("kept")
child = os.fork()
if not child:
    {end}
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert machine.shell.read("/home/user/kept") == b"kept"
machine.restore(state)
machine.check()
assert room_for(1) == 48
"""


@pytest.mark.parametrize(
    "end",
    ["pass", "machine.close()", "with machine: sys.exit()", "del machine; gc.collect()"],
)
def test_a_child_s_end_is_not_its_parent_s(end: str, tmp_path: Path) -> None:
    """However it leaves the machine that it was forked with, the parent goes on with it.

    The parent's own end still leaves nothing.
    """
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), admission.VARIABLE: "64"}
    (tmp_path / "left").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PARENT.format(end=end)],
        env={**os.environ, **environment, "TMPDIR": str(tmp_path / "left")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list((tmp_path / "left").iterdir()) == []
    assert list((tmp_path / "cache/cua-gym/run/rooms").iterdir()) == []


def test_a_finalizer_ends_once() -> None:
    """With its object, or when it is asked to, here as anywhere."""

    class Owner:
        pass

    ended: list[str] = []
    owner, other = Owner(), Owner()
    finalizer(owner, ended.append, "forgotten")
    asked = finalizer(other, ended.append, "asked")
    del owner
    asked()
    asked()
    del other
    assert ended == ["forgotten", "asked"]


WARM = """
import os, signal, sys, threading, time
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.pool import WarmPool, Wish
begun = threading.Event()
def endless(*_, **__):
    begun.set()
    time.sleep(600)
pool = WarmPool(1, start=endless)
place = pool.place()
place.expect(lambda: Wish(MachineSpec(), "key", ()))
begun.wait()
if os.fork() == 0:
    signal.alarm(20)  # ends it, if it waits
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
os._exit(0)
"""


def test_a_child_does_not_wait_for_its_parents_warm_machines() -> None:
    """What makes them is a thread that the child does not have."""
    done = subprocess.run(
        [sys.executable, "-c", WARM], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "0\n", done.stderr
