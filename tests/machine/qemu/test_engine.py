"""A QEMU process from start to end, with nothing in it but firmware."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cua_gym.errors import MachineError, MachineLost, OutOfSpace
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.identity import owner_name, start_time
from cua_gym.machine.qemu.accelerator import Host
from cua_gym.machine.qemu.disk import BaseDisk
from cua_gym.machine.qemu.engine import Engine
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.process import SANDBOX_UID
from cua_gym.machine.qemu.reaper import reap
from cua_gym.machine.qemu.screen import LiveScreen
from cua_gym.machine.qemu.states import StateInfo, StateStore
from tests.machine.qemu.conftest import MEMORY_MB

SPEC = MachineSpec(image="firmware")


def lit(screen: LiveScreen) -> None:
    """Wait until the firmware has written something."""
    deadline = time.monotonic() + 20
    while not screen.grab().rgb.any():
        assert time.monotonic() < deadline, "the firmware's screen stayed black"
        screen.wait_change(screen.serial, 1.0)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def status(pid: int, field: str) -> list[str]:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(line for line in text.splitlines() if line.startswith(field)).split()[1:]


def test_the_screen_shows_the_firmware(engine: Engine, screen: LiveScreen) -> None:
    """Pixels are pushed as soon as the guest runs."""
    engine.resume()
    lit(screen)
    engine.check()


def test_without_dbus_the_screen_is_polled(
    host: Host, hardware: Hardware, base: BaseDisk, tmp_path: Path
) -> None:
    """The fallback gives the very same pixels."""
    pictures = []
    for display in (True, False) if host.dbus_display else (False,):
        screen = LiveScreen((1280, 800))
        engine = Engine(
            replace(host, dbus_display=display), hardware, base, screen, run_dir=tmp_path
        )
        # Paused at power-on, both show the same placeholder.
        assert screen.wait_change(0, 10.0)
        pictures.append(screen.grab().rgb)
        engine.close()
    assert all(np.array_equal(pictures[0], picture) for picture in pictures)


def test_a_saved_moment_comes_back_whole(
    host: Host,
    hardware: Hardware,
    base: BaseDisk,
    screen: LiveScreen,
    engine: Engine,
    tmp_path: Path,
) -> None:
    """Same picture, and the source goes on; the same again from the restored machine's state."""
    store = StateStore(tmp_path / "states", 1 << 40)
    engine.resume()
    lit(screen)
    # The second one's overlay lies on another file system than the state.
    memory = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path
    for generation in range(2):
        engine.pause()
        engine.nudge()
        folder = store.folder(SPEC, base, f"generation {generation}")
        with store.draft() as draft:
            engine.save(draft, MEMORY_MB << 20)
            draft.split(MEMORY_MB << 20)
            info = StateInfo(
                "x", {}, hardware.as_dict(), base.identity(), screen.size, (0, 0),
                len(engine.deltas) + 1,
            )  # fmt: skip
            store.publish(draft, info, folder, engine.deltas)
        while screen.wait_change(screen.serial, 0.1):  # what the nudge found is on its way
            pass
        saved = screen.grab().rgb
        engine.resume()
        engine.check()
        engine.close()
        with store.open(folder) as lease:  # type: ignore[union-attr]
            engine = Engine(host, hardware, base, screen, run_dir=memory, lease=lease)
            assert screen.wait_whole(info.screen, 10.0)
            # The cursor of the text mode blinks by the host's clock, also in a paused machine.
            until = time.monotonic() + 10
            while not np.array_equal(saved, screen.grab().rgb):
                assert time.monotonic() < until
                engine.nudge()
                screen.wait_change(screen.serial, 0.05)
            engine.resume()
    engine.close()


@pytest.mark.parametrize("full_at", ["the pause", "the split"])
def test_a_failed_save_is_typed_and_the_guest_goes_on(
    engine: Engine,
    screen: LiveScreen,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    full_at: str,
) -> None:
    """A full disk says how much is needed."""
    splice, pieces = os.splice, 0

    def a_few(*arguments: int) -> int:
        nonlocal pieces
        pieces += 1
        if pieces > 1 and full_at == "the pause":
            raise OSError(errno.ENOSPC, "no space left on device")
        return splice(*arguments)

    monkeypatch.setattr(os, "splice", a_few)
    store = StateStore(tmp_path / "states", 1 << 40)
    engine.resume()
    lit(screen)
    engine.pause()
    with store.draft() as draft:
        full = os.open("/dev/full", os.O_RDWR)
        os.dup2(full, draft.device)
        os.close(full)
        fails = partial(engine.save, draft)
        if full_at == "the split":
            fails(MEMORY_MB << 20)
            fails = draft.split
        with pytest.raises(OutOfSpace, match=f"{2 * MEMORY_MB} MiB are needed"):
            fails(MEMORY_MB << 20)
    engine.resume()
    engine.check()
    serial = screen.serial
    assert screen.wait_change(serial, 10.0)  # the firmware's cursor blinks


def test_a_state_of_another_size_is_not_loaded(
    host: Host,
    hardware: Hardware,
    base: BaseDisk,
    screen: LiveScreen,
    engine: Engine,
    tmp_path: Path,
) -> None:
    """Were the check before it forgotten, QEMU's own refusal is a typed error, in time."""
    store = StateStore(tmp_path / "states", 1 << 40)
    folder = store.folder(SPEC, base, "x")
    engine.pause()
    with store.draft() as draft:
        engine.save(draft, MEMORY_MB << 20)
        draft.split(MEMORY_MB << 20)
        info = StateInfo("x", {}, hardware.as_dict(), {}, screen.size, (0, 0), 1)
        store.publish(draft, info, folder, [])
    files = open_files()
    other = replace(hardware, screen=(800, 600), cpus=2)
    with store.open(folder) as lease, pytest.raises(MachineError):  # type: ignore[union-attr]
        Engine(host, other, base, screen, run_dir=tmp_path, lease=lease)
    assert open_files() == files


def test_the_process_has_no_privileges(engine: Engine) -> None:
    """Another account when started by root, a seccomp filter, no new privileges."""
    assert status(engine.pid, "Seccomp:") == ["2"]
    if os.geteuid() == 0:
        assert set(status(engine.pid, "Uid:")) == {str(SANDBOX_UID)}
        assert set(status(engine.pid, "CapEff:")) == {"0" * 16}
        assert status(engine.pid, "Groups:") == []


def test_a_killed_qemu_is_noticed_with_its_cause(engine: Engine, screen: LiveScreen) -> None:
    """Waiters, grabs and checks all raise at once."""
    engine.resume()
    lit(screen)
    os.kill(engine.pid, signal.SIGKILL)
    with pytest.raises(MachineLost, match="SIGKILL"):
        screen.wait_change(screen.serial + 1_000_000, 30.0)
    with pytest.raises(MachineLost, match="SIGKILL"):
        engine.check()


def test_qemus_own_words_are_quoted(
    host: Host, hardware: Hardware, base: BaseDisk, screen: LiveScreen, tmp_path: Path
) -> None:
    """A QEMU that refuses to start says why in the error."""
    files = open_files()
    with pytest.raises(MachineLost, match="unable to find CPU model 'nonsense'"):
        Engine(host, replace(hardware, cpu="nonsense"), base, screen, run_dir=tmp_path)
    assert open_files() == files


def test_closing_leaves_nothing(
    host: Host, hardware: Hardware, base: BaseDisk, screen: LiveScreen, tmp_path: Path
) -> None:
    """Twenty machines at once: no descriptor, thread, process or file stays."""
    engines = [Engine(host, hardware, base, screen, run_dir=tmp_path)]
    engines.pop().close()  # what is made once is made now
    files, threads = open_files(), threading.active_count()
    engines = [
        Engine(host, hardware, base, LiveScreen((1280, 800)), run_dir=tmp_path) for _ in range(20)
    ]
    pids = [engine.pid for engine in engines]
    for engine in engines:
        engine.close()
        engine.close()
    assert open_files() == files
    assert threading.active_count() == threads
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert list(tmp_path.iterdir()) == []


OWNER = """
import sys, time
from pathlib import Path
from cua_gym.machine.qemu.accelerator import probe
from cua_gym.machine.qemu.disk import BaseDisk
from cua_gym.machine.qemu.engine import Engine
from cua_gym.machine.qemu.hardware import Hardware
from cua_gym.machine.qemu.screen import LiveScreen
folder = Path(sys.argv[1])
host = probe(folder)
hardware = Hardware("pc-q35-7.2", "tcg", "qemu64", 1, 64, (1280, 800), host.version)
base = BaseDisk.open(Path(sys.argv[2]), "empty")
print(Engine(host, hardware, base, LiveScreen((1280, 800)), run_dir=folder).pid, flush=True)
time.sleep(60)
"""


def test_a_machine_dies_with_its_owner(base: BaseDisk, tmp_path: Path) -> None:
    """``kill -9`` of the owner ends QEMU by the kernel's hand."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), str(base.path)], stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert start_time(pid) is not None
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 20
    while start_time(pid) is not None:
        assert time.monotonic() < deadline, "QEMU outlived its owner"
        time.sleep(0.01)


def named(name: str) -> subprocess.Popen[bytes]:
    """A process that looks like a machine called ``name``."""
    process = subprocess.Popen(["sh", "-c", "sleep 60; :", "qemu", "-name", f"guest={name}"])
    # The kernel tells of the start before the new program's words can be read.
    while name.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
        time.sleep(0.001)
    return process


def test_only_orphans_are_reaped() -> None:
    """Not the machines of the living, not those of other pid namespaces, not strangers."""
    mine = owner_name()
    _, _, namespace, pid, _, unique = mine.split("-")
    dead = subprocess.Popen(["true"])
    dead.wait()
    names = {
        "living": mine,
        "elsewhere": f"cua-gym-{int(namespace) + 1}-{dead.pid}-5-{unique}",
        "stranger": "somebody-elses-machine",
        "orphan": f"cua-gym-{namespace}-{dead.pid}-5-{unique}",
        "pid reused": f"cua-gym-{namespace}-{pid}-5-{unique}",
    }
    processes = {kind: named(name) for kind, name in names.items()}
    try:
        reap()  # whoever starts a machine beside this test reaps too, and may have come first
        for kind in ("orphan", "pid reused"):
            assert processes[kind].wait(10) == -signal.SIGKILL
        for kind in ("living", "elsewhere", "stranger"):
            assert processes[kind].poll() is None
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
