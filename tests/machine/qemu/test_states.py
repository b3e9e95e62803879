"""The cache of states: published whole, never taken from its users, small enough."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cua_gym.errors import StateMismatch
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.qemu.disk import BaseDisk
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.states import StateInfo, StateStore

SPEC = MachineSpec(image="tiny")
HARDWARE = Hardware("pc-q35-7.2", "tcg", "qemu64", 2, 64, (1280, 800), "7.2.1")
BASE = BaseDisk(Path("/nowhere"), 1 << 20, "abc", 1000, 5)


def put(
    store: StateStore,
    key: str,
    size: int = 4096,
    below: list[int] | None = None,
    kept: dict[str, bytes] | None = None,
) -> Path:
    """A state whose files hold ``size`` bytes each."""
    below = below or []
    folder = store.folder(SPEC, BASE, key)
    with store.draft() as draft:
        for fd in (draft.memory, draft.device, draft.disk):
            os.write(fd, key.encode().ljust(size, b"."))
        info = StateInfo(
            key, {}, HARDWARE.as_dict(), BASE.identity(), (1280, 800), (3, 4), len(below) + 1
        )
        store.publish(draft, info, folder, below, kept)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """An empty one without a limit worth the name."""
    return StateStore(tmp_path / "states", 1 << 40)


def test_a_state_comes_back_as_it_was_put(store: StateStore) -> None:
    """Description and files."""
    folder = put(store, "one")
    with store.open(folder) as lease:  # type: ignore[union-attr]
        assert os.pread(lease.memory, 3, 0) == b"one"
        assert (lease.info.key, lease.info.screen, lease.info.cursor) == (
            "one",
            (1280, 800),
            (3, 4),
        )
        lease.info.check(HARDWARE, BASE)


def test_what_is_kept_with_a_state_comes_and_goes_with_it(store: StateStore) -> None:
    """Counted as the rest of it is, and replaced with it."""
    folder = put(store, "one", kept={"a.txt": b"a", "b/c.txt": bytes(1 << 20)})
    assert (folder / "kept/b/c.txt").read_bytes() == bytes(1 << 20)
    ((_, _, size, _),) = store.list()
    assert size > 1 << 20
    assert not (put(store, "one") / "kept").exists()
    put(store, "one", kept={"a.txt": b"a"})
    assert store.remove(folder)
    assert not folder.exists()


def test_an_absent_state_is_none(store: StateStore) -> None:
    """Asking makes nothing."""
    assert store.open(store.folder(SPEC, BASE, "no")) is None


def test_an_unpublished_draft_leaves_nothing(store: StateStore) -> None:
    """Its files have no names, so a killed builder leaves no bytes."""
    with store.draft() as draft:
        os.write(draft.memory, bytes(1 << 16))
    assert [p.name for p in store.root.iterdir()] == ["locks"]


def test_layers_below_are_shared_not_copied(store: StateStore) -> None:
    """A state stands alone when the one it grew from is removed."""
    first = put(store, "first")
    with store.open(first) as lease:  # type: ignore[union-attr]
        second = put(store, "second", below=lease.deltas)
    assert (first / "disk.0.qcow2").samefile(second / "disk.0.qcow2")
    assert store.remove(first)
    with store.open(second) as lease:  # type: ignore[union-attr]
        assert [os.pread(fd, 5, 0) for fd in lease.deltas] == [b"first", b"secon"]


def test_layers_whose_names_are_gone_are_copied(store: StateStore) -> None:
    """A user of a replaced state can still be saved."""
    first = put(store, "first")
    lease = store.open(first)
    assert lease is not None
    put(store, "first")  # another process made it anew
    with lease:
        second = put(store, "second", below=lease.deltas)
    with store.open(second) as again:  # type: ignore[union-attr]
        assert os.pread(again.deltas[0], 5, 0) == b"first"


def test_a_state_in_use_is_not_removed(store: StateStore) -> None:
    """Nor by the limit; it goes once its last user lets go."""
    folder = put(store, "used")
    with store.open(folder):  # type: ignore[union-attr]
        assert not store.remove(folder)
        assert folder.is_dir()
    assert store.remove(folder)
    assert not folder.exists()


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    """Beyond the limit, by use and not by age."""
    store = StateStore(tmp_path / "states", 100_000)
    old, older = put(store, "old", 8192), put(store, "older", 8192)
    for age, folder in ((100, older), (50, old)):
        os.utime(folder / "state.json", (1_000_000 - age, 1_000_000 - age))
    with store.open(older):  # type: ignore[union-attr]
        pass  # used just now
    put(store, "new", 16384)
    assert not old.exists()
    assert older.is_dir()


def test_what_a_dead_builder_left_is_swept(store: StateStore) -> None:
    """An unlocked scratch folder goes, a locked one stays."""
    dead = store.root / ".scratch-dead"
    dead.mkdir()
    (dead / "memory").write_bytes(b"x")
    with store._scratch() as alive:
        StateStore(store.root, 1 << 40)
        assert not dead.exists()
        assert alive.is_dir()
    assert not alive.exists()


def test_a_state_of_other_hardware_is_refused_by_name(store: StateStore) -> None:
    """Each difference is in the message."""
    info = store.open(put(store, "s")).info  # type: ignore[union-attr]
    other = Hardware("pc-q35-8.0", "tcg", "qemu64", 2, 128, (1280, 800), "8.0.0")
    with pytest.raises(
        StateMismatch, match=r"machine was 'pc-q35-7.2'.*memory_mb was 64 and is 128"
    ):
        info.check(other, BASE)
    with pytest.raises(StateMismatch, match="mtime_ns was 5 and is 6"):
        info.check(HARDWARE, BaseDisk(BASE.path, 1 << 20, "abc", 1000, 6))


def test_an_unreadable_description_is_a_mismatch(store: StateStore) -> None:
    """Never a crash, never a guess."""
    folder = put(store, "s")
    (folder / "state.json").write_text("{}")
    with pytest.raises(StateMismatch, match="not readable"):
        store.open(folder)
    assert store.list() == []


def test_one_builder_at_a_time(store: StateStore) -> None:
    """The second waits until the first is done."""
    folder = store.folder(SPEC, BASE, "x")
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait(10)
        with store.building(folder):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with store.building(folder):
        inside.set()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
