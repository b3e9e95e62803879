"""The fake computer's shell."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.contract.shell import ShellContract
from cua_gym.errors import MachineLost
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.local_shell import LocalShell
from cua_gym.machine.tree import remove_tree


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[LocalShell]:
    root = tmp_path / "root"
    root.mkdir()
    shell = LocalShell(root)
    yield shell
    shell.close()


class TestLocalShell(ShellContract):
    """The whole contract, on host processes."""


def test_guest_paths_lie_below_the_root(shell: LocalShell, tmp_path: Path) -> None:
    """An absolute guest path never leaves the private folder."""
    shell.write("/home/user/x.txt", b"x")
    assert (tmp_path / "root" / "home" / "user" / "x.txt").read_bytes() == b"x"
    assert shell.run("cat x.txt", cwd="/home/user").stdout == b"x"
    with pytest.raises(FileNotFoundError):
        shell.read("/etc/passwd")


def test_close_ends_what_was_left(shell: LocalShell) -> None:
    """Background jobs do not outlive the shell."""
    pid = shell.run("sleep 3000 >/dev/null 2>&1 & echo $!").text.strip()
    assert Path("/proc", pid).exists()
    shell.close()
    shell.close()

    def alive() -> bool:
        try:
            state = Path("/proc", pid, "stat").read_text().rsplit(") ", 1)[1][0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"

    while alive():  # killed, it may take a moment to be gone
        pass
    with pytest.raises(MachineLost):
        shell.run("true")


def test_close_ends_programs(shell: LocalShell) -> None:
    """Nor do programs that were started, and who waits for one is told."""
    programs = [shell.start("echo on; sleep 300", terminal=size) for size in (None, (80, 24))]
    assert all(program.wait_output("stdout", 0, 60) for program in programs)
    shell.close()
    assert [program.wait(60) for program in programs] == [True, True]
    assert [program.exit for program in programs] == [137, 137]


def test_a_hundred_programs_leave_nothing(shell: LocalShell) -> None:
    """No file, thread or process stays, whether they were closed or ended by themselves."""

    def held() -> tuple[int, int, str]:
        children = Path("/proc/self/task", str(os.getpid()), "children").read_text()
        return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), children

    before = held()
    programs = [shell.start(["cat"], terminal=(80, 24) if i % 2 else None) for i in range(100)]
    for program in programs[::2]:
        program.close_input()
    for program in programs[1::2]:
        program.write(b"\x04")
    for i, program in enumerate(programs):
        assert program.wait(60)
        if i % 3:
            program.close()
    assert held() == before


def test_a_long_script_leaves_no_file(shell: LocalShell, tmp_path: Path) -> None:
    """The file that carried a script goes at its end."""
    program = shell.start("true # " + "x" * 200_000)
    assert program.wait(60)
    assert (program.exit, [p.name for p in (tmp_path / "root").iterdir()]) == (0, ["home"])


def test_a_folder_with_all_kinds_is_put(shell: LocalShell, tmp_path: Path) -> None:
    """As into a real guest: pipes and links as they are, sockets left out, modes kept."""
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "run").write_text("x")
    (source / "below" / "run").chmod(0o751)
    os.mkfifo(source / "pipe")
    (source / "link").symlink_to("/nowhere")
    with socket.socket(socket.AF_UNIX) as unix, pytest.MonkeyPatch.context() as patch:
        patch.chdir(source)  # the path of a socket has a short limit
        unix.bind("socket")
        shell.put_dir(source, "/home/user/made/here")
    kinds = {entry.name: entry.kind for entry in shell.list("/home/user/made/here")}
    assert kinds == {"below": "dir", "pipe": "other", "link": "link"}
    assert shell.stat("/home/user/made/here/below/run").mode == 0o751
    with pytest.raises(NotADirectoryError):
        shell.put_dir(source / "pipe", "/home/user/other")


def test_a_deep_tree_is_removed() -> None:
    """What a one-line loop makes, a fake computer removes, and closes over."""
    machine = FakeMachine(MachineSpec("fake"))
    temporary = [machine.shell.host_path("/"), machine.shell.host_path("/") / "home"]
    deep = "mkdir -p $(printf 'd/%.0s' $(seq 1200))"
    assert machine.shell.run(deep).exit == 0
    machine.shell.remove("/home/user/d")
    assert machine.shell.list("/home/user") == []
    assert machine.shell.run(deep).exit == 0
    machine.close()
    machine.close()
    assert not any(folder.exists() for folder in temporary)


def test_removal_follows_no_link(tmp_path: Path) -> None:
    """Links go, what they lead to stays, also below a folder that nobody may enter."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").touch()
    closed = tmp_path / "t" / "a" / "b"
    closed.mkdir(parents=True)
    (closed / "link").symlink_to(tmp_path / "kept")
    (closed / "x").touch()
    closed.chmod(0)
    remove_tree(tmp_path / "t")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "x"]
