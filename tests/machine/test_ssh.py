"""Commands and files over a real OpenSSH server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cua_gym.contract.shell import ShellContract
from cua_gym.errors import ActionError, MachineError, MachineLost, MachineTimeout, OutOfSpace
from cua_gym.machine import process
from cua_gym.machine.ssh import SshShell
from cua_gym.machine.ssh_connection import Pace, SshConnection
from tests.machine.sshd import LOGIN, SSHD, Sshd, running, shell_of

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="needs openssh-server")


def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds; a thread that was told to end takes a moment."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def once_written(path: Path, then: Callable[[], None]) -> threading.Thread:
    """Do something as soon as a command has written a line."""

    def wait() -> None:
        eventually(lambda: path.exists() and path.read_text().endswith("\n"))
        then()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


class TestSshShell(ShellContract):
    """The whole contract, over OpenSSH."""


# accounts


def test_missing_as_user_is_an_error(server: tuple[Sshd, Path, str]) -> None:
    """A guest without the way into the desktop account is a fault, not a failed command."""
    sshd, key, host = server
    shell = SshShell(
        sshd.connect, user=LOGIN, key=key, host_keys=[host], desktop_user="no-such-user"
    )
    with pytest.raises(MachineError, match="as-user"):
        shell.run(["true"])
    with pytest.raises(MachineError, match="no account 'no-such-user'"):
        shell.write("/tmp/never", b"x")
    assert shell.run(["echo", "hi"], user=LOGIN).stdout == b"hi\n"
    with pytest.raises(MachineError, match="nobody-at-all"):
        shell.run(["true"], user="nobody-at-all")
    shell.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another account")
def test_another_account(shell: SshShell, tmp_path: Path) -> None:
    """A third account's commands run as that account; what is written for it is its own."""
    done = shell.run(
        ["sh", "-c", 'id -un; echo "$HOME $A"; exit 5'], user="daemon", env={"A": "$b"}
    )
    assert (done.exit, done.stdout) == (5, b"daemon\n/usr/sbin $b\n")
    assert shell.run("sleep 61", user="daemon", timeout_s=1).timed_out
    shell.write(f"{tmp_path}/theirs/x", b"x", user="daemon")
    assert (tmp_path / "theirs").owner() == "daemon"
    assert (tmp_path / "theirs" / "x").owner() == "daemon"


# commands


def test_environment_name_is_checked(shell: SshShell) -> None:
    """A name that no shell could use is refused before anything runs."""
    with pytest.raises(ActionError, match="-x"):
        shell.run(["true"], env={"-x": "1"})


def test_output_beyond_the_bound_is_counted(
    shell: SshShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Output past the kept bound is counted, and never stops the command."""
    monkeypatch.setattr(process, "KEEP_BYTES", 1000)
    done = shell.run("head -c 5000 /dev/zero; head -c 1500 /dev/zero >&2; exit 3")
    assert (done.exit, len(done.stdout), len(done.stderr), done.dropped) == (3, 1000, 1000, 4500)


def test_mark_in_the_environment_does_not_end_output(shell: SshShell) -> None:
    """A command may print its environment and every command line of the system."""
    done = shell.run("tr '\\0' '\\n' </proc/self/environ; cat /proc/*/cmdline; echo end")
    assert done.stdout.endswith(b"end\n")


def test_time_that_is_up_at_once(shell: SshShell) -> None:
    """A command whose time ends while it is being launched does not run after all."""
    for timeout_s in (0.0, 0.01, 0.03):
        assert shell.run(["sleep", "62.25"], timeout_s=timeout_s).timed_out
    end = time.monotonic() + 30
    while shell.run(["pgrep", "-f", "sleep 62[.]25$"]).exit != 1:
        assert time.monotonic() < end


def test_job_without_output_survives_disconnect(shell: SshShell) -> None:
    """A background job lives on when the connection has ended."""
    pid = shell.run("nohup sleep 300 >/dev/null 2>&1 & echo $!").text.strip()
    shell.disconnect()
    assert shell.run(["kill", pid]).exit == 0


def test_stopped_server_while_a_command_runs(
    server: tuple[Sshd, Path, str], tmp_path: Path
) -> None:
    """A guest that hangs ends a command in `MachineTimeout`, not in silence."""
    shell = shell_of(server)
    shell.run(["true"])

    def stop() -> None:
        server[0].signal(signal.SIGSTOP)
        shell._connection.stall_s = 1.0  # only from now on: a busy host lets nobody hurry

    stopping = once_written(tmp_path / "pid", stop)
    with pytest.raises(MachineTimeout):
        shell.run("echo $$ >pid; exec sleep 61", cwd=str(tmp_path), timeout_s=8)
    stopping.join()
    shell._connection.stall_s = 30.0
    assert shell.run(["kill", (tmp_path / "pid").read_text().strip()]).exit == 0
    shell.close()


# programs


@pytest.mark.parametrize("terminal", [None, (80, 24)])
def test_lost_connection_while_a_program_runs(
    server: tuple[Sshd, Path, str], terminal: tuple[int, int] | None
) -> None:
    """Who waits is told, what came is kept, and nothing is held; the next one works."""
    sshd = server[0]
    shell = shell_of(server)
    shell.run(["true"])
    before = threading.active_count()
    program = shell.start("echo $$; exec sleep 61", terminal=terminal)
    assert program.wait_output("stdout", 0, 60)
    threading.Timer(0.2, sshd.signal, [signal.SIGKILL]).start()
    with pytest.raises(MachineLost):
        program.wait(60)
    pid = program.output("stdout")
    for action in (lambda: program.write(b"x"), lambda: program.output("stdout", len(pid))):
        with pytest.raises(MachineLost):
            action()
    program.close()
    shell.run(["kill", pid.decode().strip()])  # on a terminal it went with that
    eventually(lambda: threading.active_count() <= before)
    shell.close()


def test_stopped_server_while_a_program_runs(server: tuple[Sshd, Path, str]) -> None:
    """Nothing waits longer than it was told to; a program that cannot be killed is given back."""
    sshd = server[0]
    shell = shell_of(server)
    program = shell.start("echo $$; exec sleep 61")
    assert program.wait_output("stdout", 0, 60)
    sshd.signal(signal.SIGSTOP)
    shell._connection.stall_s = 1.0
    assert not program.wait(0.1)
    program.write(b"x")
    with pytest.raises(MachineTimeout):
        program.kill()
    program.close()
    with pytest.raises(MachineLost):
        program.wait(60)
    shell._connection.stall_s = 30.0
    assert shell.run(["kill", program.output("stdout").decode().strip()]).exit == 0
    shell.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another account")
def test_terminal_of_another_account(shell: SshShell) -> None:
    """A third account's terminal is its own, controlling, and of the size asked for."""
    program = shell.start(
        'id -un; stat -c %U "$(tty)"; stty size <"$(tty)"; echo on; exec cat </dev/tty',
        user="daemon",
        terminal=(90, 20),
    )
    assert program.wait_output("stdout", len(b"daemon\r\ndaemon\r\n20 90\r\n"), 60)
    program.write(b"\x03")
    assert program.wait(60)
    assert program.output("stdout").startswith(b"daemon\r\ndaemon\r\n20 90\r\non\r\n")
    assert program.exit == 130


def test_a_hundred_programs_leave_nothing(shell: SshShell) -> None:
    """No thread stays, and no session of the server, which allows a hundred at once."""
    shell.run(["true"])
    before = threading.active_count()
    for terminal in (None, (80, 24), None):
        programs = [shell.start(["cat"], terminal=terminal) for _ in range(40)]
        for program in programs:
            if terminal:
                program.write(b"\x04")
            else:
                program.close_input()
        assert all(program.wait(60) for program in programs)
    eventually(lambda: threading.active_count() <= before)


def test_a_long_script_leaves_no_file(shell: SshShell) -> None:
    """The file that carried a script goes at its end, by whatever end."""
    program = shell.start("echo $0; sleep 61 # " + "x" * 200_000)
    assert program.wait_output("stdout", len(b"/tmp/.cua-gym-"), 60)
    script = Path(program.output("stdout").decode().strip())
    assert script.match("/tmp/.cua-gym-*")
    assert script.exists()
    program.close()
    assert not script.exists()


# files

STALL_S = 5
"""A server that goes on, on a busy host, is not taken for a stopped one."""


def test_file_whose_size_is_not_told(shell: SshShell) -> None:
    """A file of /proc, whose size is said to be 0, is read to its end; a part of it too."""
    whole = Path("/proc/version").read_bytes()
    assert shell.read("/proc/version") == whole
    assert shell.read("/proc/version", offset=3, limit=5) == whole[3:8]


def test_stalled_download(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """A server stopped half way is a `MachineTimeout`; a new connection works again."""
    sshd = server[0]
    shell = shell_of(server, stall_s=STALL_S)
    big = tmp_path / "big"
    os.truncate(_touch(big), 1 << 30)
    assert shell.read(str(big), limit=10) == bytes(10)
    threading.Timer(0.2, sshd.signal, [signal.SIGSTOP]).start()
    with pytest.raises(MachineTimeout, match=f"nothing moved for {STALL_S} s"):
        shell.read(str(big))
    assert shell.read(str(big), limit=10) == bytes(10)
    shell.close()


def test_stalled_folder(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """The same for a folder under way, in both directions."""
    sshd = server[0]
    shell = shell_of(server, stall_s=STALL_S)
    (tmp_path / "source").mkdir()
    os.truncate(_touch(tmp_path / "source" / "big"), 4 << 30)
    shell.run(["true"])
    threading.Timer(0.3, sshd.signal, [signal.SIGSTOP]).start()
    with pytest.raises(MachineTimeout):
        shell.get_dir(f"{tmp_path}/source", tmp_path / "target", limit_bytes=8 << 30)
    assert not (tmp_path / "target").exists()
    shell.run(["true"])
    threading.Timer(0.3, sshd.signal, [signal.SIGSTOP]).start()
    with pytest.raises(MachineTimeout):
        shell.put_dir(tmp_path / "source", f"{tmp_path}/copy")
    shell.close()


DRIP = """#!/bin/sh
{ %s; } | exec %s -c '
import os, time
while data := os.read(0, 1):
    os.write(1, data)
    time.sleep(0.2)
'
"""


@pytest.mark.parametrize("what", ["tar", "sftp"])
def test_dripping_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A byte now and then keeps no call alive: the transfer ends, typed, and the next one works."""
    (tmp_path / "bin").mkdir()
    programs = {"tar": "exec cat /dev/zero", "sftp": "exec /usr/lib/openssh/sftp-server"}
    slow = tmp_path / "bin" / what
    slow.write_text(DRIP % (programs[what], sys.executable))
    slow.chmod(0o755)
    with running(tmp_path) as (server, key, host):
        config = server.config.read_text()
        faster = config.replace("SHLVL=2", f"SHLVL=2 PATH={tmp_path}/bin:/usr/bin:/bin")
        slower = faster.replace("internal-sftp", str(slow)) if what == "sftp" else faster
        server.config.write_text(slower)
        shell = shell_of((server, key, host))
        calls: dict[str, Callable[[], object]] = {
            "tar": lambda: shell.get_dir(str(tmp_path), tmp_path / "got", limit_bytes=1 << 20),
            "sftp": lambda: shell.read(str(slow)),
        }
        with monkeypatch.context() as patch:
            patch.setattr(SshConnection, "pace", lambda _: Pace(4.0))
            with pytest.raises(MachineTimeout, match=r"only \d+ bytes moved in \d+ s"):
                calls[what]()
        server.config.write_text(config)
        assert shell.read(str(slow)) == slow.read_bytes()
        shell.close()
    assert not (tmp_path / "got").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("cannot mount a tmpfs here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk(shell: SshShell, small_disk: Path, tmp_path: Path) -> None:
    """A full file system is one error with the free space; the partial file is gone."""
    with pytest.raises(OutOfSpace, match=r"20000000 bytes to write, 8\d+ bytes"):
        shell.write(f"{small_disk}/big", bytes(20_000_000))
    assert list(small_disk.iterdir()) == []
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "big").write_bytes(os.urandom(20_000_000))
    with pytest.raises(OutOfSpace, match="free"):
        shell.put_dir(tmp_path / "source", str(small_disk))


def _touch(path: Path) -> Path:
    path.touch()
    return path
