"""The fake computer's shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.contract.shell import ShellContract
from cua_gym.errors import MachineLost
from cua_gym.machine.local_shell import LocalShell


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
    pid = shell.run("sleep 300 >/dev/null 2>&1 & echo $!").text.strip()
    assert Path("/proc", pid).exists()
    shell.close()
    shell.close()
    state = Path("/proc", pid, "stat")
    assert not state.exists() or state.read_text().rsplit(") ", 1)[1].startswith("Z")
    with pytest.raises(MachineLost):
        shell.run("true")
