"""Faults of a real machine in each phase: typed, quick, and unscored with phase and cause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

import cua_gym
from cua_gym import Move, Shell, Submit, Type
from cua_gym.env import DesktopEnv
from cua_gym.errors import CuaGymError, MachineError, MachineLost, OutOfSpace
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.start import start_machine
from tests.vm.conftest import until

pytestmark = pytest.mark.vm

TASK = "write-many-scripts"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[DesktopEnv]:
    """An episode under way."""
    env = cua_gym.make(TASK, runs=tmp_path / "runs")
    env.reset(seed=0)
    yield env
    env.close()


def unscored(env: DesktopEnv, phase: str) -> str:
    """The cause in result.json, once it says unscored in that phase."""
    result = json.loads(env.episode.folder.result.read_text())
    assert (result["kind"], result["score"], result["phase"]) == ("unscored", None, phase)
    return str(result["cause"])


def pid(env: DesktopEnv) -> int:
    """QEMU's process id."""
    return int(env.machine.pid)  # type: ignore[attr-defined]


def test_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A QEMU that cannot start is a fault of the phase boot."""
    env = cua_gym.make(TASK, runs=tmp_path / "runs")
    monkeypatch.setenv("CUA_GYM_RUN_DIR", "/proc/no-such-folder")
    with pytest.raises(CuaGymError):
        env.reset(seed=0)
    assert "no-such-folder" in unscored(env, "boot")
    assert env.evaluate().kind == "unscored"


def test_setup(tmp_path: Path) -> None:
    """A setup step that fails is a fault of the phase setup, with its output."""
    from cua_gym.task import load_task
    from tests.vm.test_secrets import TASK as FILES

    folder = tmp_path / "tasks" / "secret-keeping"
    step = '\n[[setup]]\nrun = "echo a planted fault >&2; exit 3"\n'
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip() + (step if name == "task.toml" else ""))
    env = cua_gym.make(load_task(folder), runs=tmp_path / "runs")
    with pytest.raises(CuaGymError, match="planted fault"):
        env.reset(seed=0)
    assert "planted fault" in unscored(env, "setup")


def test_act(env: DesktopEnv) -> None:
    """QEMU killed in the middle: the step comes back at once, truncated, with an error."""
    os.kill(pid(env), signal.SIGKILL)
    _, reward, terminated, truncated, info = env.step(Type("hello"))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "SIGKILL" in info["error"]
    assert "SIGKILL" in unscored(env, "act")


def test_act_hung(tmp_path: Path) -> None:
    """A guest that stands still is a typed fault, not a hang, whatever it is asked for."""
    with ExitStack() as stack, ThreadPoolExecutor() as both:
        envs = [cua_gym.make(task, runs=tmp_path / "runs") for task in (TASK, "slowest-request")]
        for env in envs:
            stack.callback(env.close)
            env.reset(seed=0)
            env.step(Move(5, 5))
            os.kill(pid(env), signal.SIGSTOP)
        start = time.monotonic()
        steps = both.map(lambda env, act: env.step(act), envs, (Type("hello"), Shell("true")))
        for env, (_, _, _, truncated, info) in zip(envs, steps, strict=True):
            assert truncated
            assert info["error"]
            unscored(env, "act")
        assert time.monotonic() - start < 120


def test_a_fork_bomb_is_the_agents_doing(tmp_path: Path) -> None:
    """The command runs out of its time and the attempt is graded: what it did is no excuse."""
    env = cua_gym.make("slowest-request", runs=tmp_path / "runs")
    env.reset(seed=0)
    _, _, _, truncated, info = env.step(Shell("bomb() { bomb | bomb & }; bomb; sleep 60", 5.0))
    assert info["shell"]["timed_out"]
    assert not truncated
    assert (env.evaluate().kind, env.evaluate().score) == ("scored", 0.0)
    env.close()


def test_collect(env: DesktopEnv) -> None:
    """A machine lost before the evidence is taken leaves no verdict."""
    env.step(Move(5, 5))
    os.kill(pid(env), signal.SIGKILL)
    outcome = env.evaluate()
    assert (outcome.kind, outcome.score) == ("unscored", None)
    unscored(env, "collect")


def test_collect_without_the_guests_daemon(env: DesktopEnv) -> None:
    """A guest whose daemon is dead for good cannot be frozen: unscored."""
    # By a wire of its own: a shell would end with the daemon that carries it.
    stop = ["/usr/bin/systemctl", "mask", "--now", "--runtime", "cua-guestd"]
    done = env.machine.agent.exec(stop, timeout_s=60.0)  # type: ignore[attr-defined]
    assert done.exit == 0
    _, _, _, truncated, _ = env.step(Submit())
    assert truncated
    unscored(env, "collect")


def test_grade(env: DesktopEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grader that cannot run is a fault of the phase grade."""
    from cua_gym.errors import GradingError

    def broken(*_: object) -> None:
        raise GradingError("planted")

    monkeypatch.setattr("cua_gym.episode.grade", broken)
    env.step(Submit())
    assert "planted" in unscored(env, "grade")


@pytest.fixture
def small_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Disk overlays go to a disk of so many MB, which only root can mount."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param}m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount the small disk that this needs")
    monkeypatch.setenv("CUA_GYM_RUN_DIR", str(folder))
    yield
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("small_disk", [80], indirect=True)
@pytest.mark.usefixtures("small_disk")
def test_a_full_host_disk_is_out_of_space() -> None:
    """A guest that fills the host's disk gives OutOfSpace with numbers, not a timeout."""
    with start_machine(MachineSpec()) as machine:
        fill = "dd if=/dev/urandom of=/var/tmp/big bs=1M count=200 conv=fsync"
        try:
            machine.shell.run(fill, user="root", timeout_s=30)
        except MachineError:
            pass  # the guest stands still from the moment its disk is full
        with pytest.raises(OutOfSpace, match="MiB free"):
            machine.check()


@pytest.mark.parametrize("small_disk", [8], indirect=True)
@pytest.mark.usefixtures("small_disk")
def test_too_little_room_is_found_before_the_start() -> None:
    """A disk that is nearly full refuses the start with the numbers."""
    with pytest.raises(OutOfSpace, match="MiB free"):
        start_machine(MachineSpec())


def test_a_guest_that_shuts_down_is_lost_with_the_cause() -> None:
    """The guest's own power-off is told from a crash."""
    with start_machine(MachineSpec()) as machine:
        try:
            machine.shell.run("systemctl poweroff -ff", user="root", timeout_s=20)
        except MachineError:
            pass  # the channel may end first
        until(lambda: not Path(f"/proc/{machine.pid}/exe").exists(), "QEMU's end")  # type: ignore[attr-defined]
        with pytest.raises(MachineLost, match="guest"):
            machine.check()
