"""Commands and files over a real OpenSSH server."""

from __future__ import annotations

import os
import signal
import socket
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
from tests.machine.sshd import LOGIN, SSHD, Sshd, make_key, running

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="needs openssh-server")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sshd, Path, str]]:
    with running(tmp_path_factory.mktemp("sshd")) as parts:
        yield parts


def _shell(server: tuple[Sshd, Path, str], *, stall_s: float = 30.0) -> SshShell:
    sshd, key, host = server
    return SshShell(
        sshd.connect,
        user=LOGIN,
        key=key,
        host_keys=[host],
        desktop_user=None,
        boot_deadline_s=20,
        stall_s=stall_s,
    )


@pytest.fixture(scope="module")
def kept(server: tuple[Sshd, Path, str]) -> Iterator[SshShell]:
    shell = _shell(server)
    yield shell
    shell.close()


@pytest.fixture
def shell(kept: SshShell) -> SshShell:
    return kept


class TestSshShell(ShellContract):
    """The whole contract, over OpenSSH."""


# connecting


def test_connects_when_first_needed_and_once(server: tuple[Sshd, Path, str]) -> None:
    """Making a shell opens nothing; all calls share one connection."""
    sshd = server[0]
    before = sshd.connections
    shell = _shell(server)
    assert sshd.connections == before
    shell.run(["true"])
    shell.read("/etc/passwd")
    assert sshd.connections == before + 1
    shell.close()
    shell.close()
    with pytest.raises(MachineLost, match="closed"):
        shell.run(["true"])


def test_warm_connects_in_the_background(server: tuple[Sshd, Path, str]) -> None:
    """`warm` returns at once, and the first call uses its connection."""
    sshd = server[0]
    before = sshd.connections
    shell = _shell(server)
    shell.warm()
    assert shell.run(["echo", "hi"]).stdout == b"hi\n"
    assert sshd.connections == before + 1
    shell.close()


def test_disconnect_and_a_new_connection(server: tuple[Sshd, Path, str]) -> None:
    """After `disconnect` the next call connects again and files still work."""
    shell = _shell(server)
    shell.read("/etc/passwd")
    shell.disconnect()
    assert shell.read("/etc/passwd")
    assert shell.run(["echo", "hi"]).stdout == b"hi\n"
    shell.close()


def test_killed_connection_is_replaced(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """A command under way when the connection dies is `MachineLost`; the next one works."""
    sshd = server[0]
    shell = _shell(server)
    shell.run(["true"])
    threading.Timer(0.5, sshd.signal, [signal.SIGKILL]).start()
    with pytest.raises(MachineLost):
        shell.run("echo $$ >pid; exec sleep 61", cwd=str(tmp_path), timeout_s=30)
    assert shell.run(["kill", (tmp_path / "pid").read_text().strip()]).exit == 0
    shell.close()


def test_booting_guest_is_awaited(
    server: tuple[Sshd, Path, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """Refusals, cut connections and silence are retried; nothing is printed."""
    sshd, key, host = server
    tries = []
    held = []

    def connect() -> socket.socket:
        tries.append(time.monotonic())
        if len(tries) == 1:
            raise ConnectionRefusedError("not yet")
        if len(tries) == 2:
            ours, theirs = socket.socketpair()
            theirs.close()
            return ours
        if len(tries) == 3:
            ours, theirs = socket.socketpair()
            theirs.sendall(b"garbage, not a banner\r\n" * 3)
            held.append(theirs)
            threading.Timer(0.5, theirs.shutdown, [socket.SHUT_RDWR]).start()
            return ours
        return sshd.connect()

    shell = SshShell(
        connect, user=LOGIN, key=key, host_keys=[host], desktop_user=None, boot_deadline_s=20
    )
    assert shell.run(["echo", "up"]).stdout == b"up\n"
    assert len(tries) == 4
    shell.close()
    held[0].close()
    assert capfd.readouterr() == ("", "")


def test_silent_guest_is_one_typed_error(
    server: tuple[Sshd, Path, str], capfd: pytest.CaptureFixture[str]
) -> None:
    """A port that accepts and stays silent ends at the deadline in one `MachineTimeout`."""
    _, key, host = server
    ends = []

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        ends.append(theirs)
        return ours

    shell = SshShell(
        connect, user=LOGIN, key=key, host_keys=[host], desktop_user=None, boot_deadline_s=1
    )
    begun = time.monotonic()
    with pytest.raises(MachineTimeout, match=r"no SSH server has answered in \d s"):
        shell.run(["true"])
    assert time.monotonic() - begun < 30  # not the 180 s that a boot gets
    shell.close()
    for end in ends:
        end.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("gone", ["refuses", "cuts", "silent"])
def test_a_server_that_was_up_and_is_gone(
    server: tuple[Sshd, Path, str], monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    """It gets seconds, not a boot's time, and where it is silent no longer than the caller says."""
    monkeypatch.setattr("cua_gym.machine.ssh_connection._AGAIN_S", 1)
    sshd, key, host = server
    ends: list[socket.socket] = []
    up = True

    def connect() -> socket.socket:
        if up:
            return sshd.connect()
        if gone == "refuses":
            raise ConnectionRefusedError("stopped")
        ours, theirs = socket.socketpair()
        if gone == "cuts":
            theirs.close()
        ends.append(theirs)
        return ours

    shell = SshShell(
        connect, user=LOGIN, key=key, host_keys=[host], desktop_user=None,
        boot_deadline_s=600, stall_s=600 if gone == "silent" else 30,
    )  # fmt: skip
    shell.run(["true"])
    up = False
    sshd.signal(signal.SIGKILL)
    begun = time.monotonic()
    for _ in range(2):
        with pytest.raises(MachineError, match="had answered before"):
            shell.run(["true"], timeout_s=2)
    assert time.monotonic() - begun < 60
    up = True
    assert shell.run(["echo", "back"]).stdout == b"back\n"
    shell.close()
    for end in ends:
        end.close()


def test_close_ends_a_connect_under_way(server: tuple[Sshd, Path, str]) -> None:
    """Closing does not wait for a guest that never answers."""
    _, key, host = server
    ours, theirs = socket.socketpair()
    shell = SshShell(
        lambda: ours, user=LOGIN, key=key, host_keys=[host], desktop_user=None, boot_deadline_s=60
    )
    shell.warm()
    theirs.recv(1)  # the client has spoken
    begun = time.monotonic()
    shell.close()
    assert time.monotonic() - begun < 5
    theirs.close()


def test_lost_channel_is_not_retried(server: tuple[Sshd, Path, str]) -> None:
    """A `MachineError` from the road to the guest goes straight to the caller."""
    _, key, host = server

    def connect() -> socket.socket:
        raise MachineLost("QEMU ended")

    shell = SshShell(connect, user=LOGIN, key=key, host_keys=[host], desktop_user=None)
    with pytest.raises(MachineLost, match="QEMU ended"):
        shell.run(["true"])


def test_two_machines_at_one_address(tmp_path: Path) -> None:
    """Each shell knows its own machine's key, whatever the address held before; `~/.ssh` is not
    touched, and another machine's key is refused.
    """
    ssh_folder = Path.home() / ".ssh"
    before = sorted(ssh_folder.glob("*")) if ssh_folder.exists() else None
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with running(tmp_path / "a") as first, running(tmp_path / "b") as second:
        at = [first[0]]
        for sshd, key, host in (first, second):
            at[0] = sshd
            shell = SshShell(
                lambda: at[0].connect(), user=LOGIN, key=key, host_keys=[host], desktop_user=None
            )
            assert shell.run(["echo", "hi"]).stdout == b"hi\n"
            shell.close()
        wrong = SshShell(
            second[0].connect, user=LOGIN, key=second[1], host_keys=[first[2]], desktop_user=None
        )
        begun = time.monotonic()
        with pytest.raises(MachineError, match="host key"):
            wrong.run(["true"])
        assert time.monotonic() - begun < 10
    assert (sorted(ssh_folder.glob("*")) if ssh_folder.exists() else None) == before


def test_refused_key(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """A key that the guest does not know is said at once."""
    sshd, _, host = server
    make_key(tmp_path / "other")
    shell = SshShell(
        sshd.connect, user=LOGIN, key=tmp_path / "other", host_keys=[host], desktop_user=None
    )
    with pytest.raises(MachineError, match="refused the key"):
        shell.run(["true"])


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
        assert shell.run(["sleep", "61.25"], timeout_s=timeout_s).timed_out
    assert shell.run(["pgrep", "-f", "sleep 61[.]25$"]).exit == 1


def test_job_without_output_survives_disconnect(shell: SshShell) -> None:
    """A background job lives on when the connection has ended."""
    pid = shell.run("nohup sleep 300 >/dev/null 2>&1 & echo $!").text.strip()
    shell.disconnect()
    assert shell.run(["kill", pid]).exit == 0


def test_stopped_server_while_a_command_runs(
    server: tuple[Sshd, Path, str], tmp_path: Path
) -> None:
    """A guest that hangs ends a command in `MachineTimeout`, not in silence."""
    sshd = server[0]
    shell = _shell(server, stall_s=1)
    shell.run(["true"])
    threading.Timer(0.3, sshd.signal, [signal.SIGSTOP]).start()
    with pytest.raises(MachineTimeout):
        shell.run("echo $$ >pid; exec sleep 61", cwd=str(tmp_path), timeout_s=1)
    assert shell.run(["kill", (tmp_path / "pid").read_text().strip()]).exit == 0
    shell.close()


# programs


@pytest.mark.parametrize("terminal", [None, (80, 24)])
def test_lost_connection_while_a_program_runs(
    server: tuple[Sshd, Path, str], terminal: tuple[int, int] | None
) -> None:
    """Who waits is told, what came is kept, and nothing is held; the next one works."""
    sshd = server[0]
    shell = _shell(server)
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
    assert threading.active_count() <= before
    shell.close()


def test_stopped_server_while_a_program_runs(server: tuple[Sshd, Path, str]) -> None:
    """Nothing waits longer than it was told to; a program that cannot be killed is given back."""
    sshd = server[0]
    shell = _shell(server, stall_s=1)
    program = shell.start("echo $$; exec sleep 61")
    assert program.wait_output("stdout", 0, 60)
    sshd.signal(signal.SIGSTOP)
    assert not program.wait(0.1)
    program.write(b"x")
    with pytest.raises(MachineTimeout):
        program.kill()
    program.close()
    with pytest.raises(MachineLost):
        program.wait(60)
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
    assert threading.active_count() <= before


def test_a_long_script_leaves_no_file(shell: SshShell) -> None:
    """The file that carried a script goes at its end, by whatever end."""
    before = set(Path("/tmp").glob(".cua-gym-*"))
    program = shell.start("echo $0; sleep 61 # " + "x" * 200_000)
    assert program.wait_output("stdout", 0, 60)
    assert program.output("stdout").startswith(b"/tmp/.cua-gym-")
    program.close()
    assert set(Path("/tmp").glob(".cua-gym-*")) == before


# files


def test_file_whose_size_is_not_told(shell: SshShell) -> None:
    """A file of /proc, whose size is said to be 0, is read to its end; a part of it too."""
    whole = Path("/proc/version").read_bytes()
    assert shell.read("/proc/version") == whole
    assert shell.read("/proc/version", offset=3, limit=5) == whole[3:8]


def test_stalled_download(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """A server stopped half way is a `MachineTimeout`; a new connection works again."""
    sshd = server[0]
    shell = _shell(server, stall_s=1)
    big = tmp_path / "big"
    os.truncate(_touch(big), 1 << 30)
    assert shell.read(str(big), limit=10) == bytes(10)
    threading.Timer(0.2, sshd.signal, [signal.SIGSTOP]).start()
    with pytest.raises(MachineTimeout, match="nothing moved for 1 s"):
        shell.read(str(big))
    assert shell.read(str(big), limit=10) == bytes(10)
    shell.close()


def test_stalled_folder(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """The same for a folder under way, in both directions."""
    sshd = server[0]
    shell = _shell(server, stall_s=1)
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
def test_dripping_guest(tmp_path: Path, what: str) -> None:
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
        shell = _shell((server, key, host), stall_s=2)
        calls: dict[str, Callable[[], object]] = {
            "tar": lambda: shell.get_dir(str(tmp_path), tmp_path / "got", limit_bytes=1 << 20),
            "sftp": lambda: shell.read(str(slow)),
        }
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
