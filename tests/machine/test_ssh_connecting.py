"""Connections to a real OpenSSH server: made once, lost, awaited, ended."""

from __future__ import annotations

import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from cua_gym.errors import MachineError, MachineLost, MachineTimeout
from cua_gym.machine.ssh import SshShell
from tests.machine.sshd import LOGIN, SSHD, Sshd, make_key, running, shell_of
from tests.machine.test_ssh import once_written

pytestmark = pytest.mark.skipif(not Path(SSHD).exists(), reason="needs openssh-server")


# connecting


def test_connects_when_first_needed_and_once(server: tuple[Sshd, Path, str]) -> None:
    """Making a shell opens nothing; all calls share one connection."""
    sshd = server[0]
    before = sshd.connections
    shell = shell_of(server)
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
    shell = shell_of(server)
    shell.warm()
    assert shell.run(["echo", "hi"]).stdout == b"hi\n"
    assert sshd.connections == before + 1
    shell.close()


def test_disconnect_and_a_new_connection(server: tuple[Sshd, Path, str]) -> None:
    """After `disconnect` the next call connects again and files still work."""
    shell = shell_of(server)
    shell.read("/etc/passwd")
    shell.disconnect()
    assert shell.read("/etc/passwd")
    assert shell.run(["echo", "hi"]).stdout == b"hi\n"
    shell.close()


def test_killed_connection_is_replaced(server: tuple[Sshd, Path, str], tmp_path: Path) -> None:
    """A command under way when the connection dies is `MachineLost`; the next one works."""
    sshd = server[0]
    shell = shell_of(server)
    shell.run(["true"])
    killing = once_written(tmp_path / "pid", lambda: sshd.signal(signal.SIGKILL))
    with pytest.raises(MachineLost):
        shell.run("echo $$ >pid; exec sleep 61", cwd=str(tmp_path), timeout_s=60)
    killing.join()
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
    with pytest.raises(MachineTimeout, match=r"no SSH server has answered in \d+ s"):
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
    assert time.monotonic() - begun < 30
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
        assert time.monotonic() - begun < 90  # not the 180 s that a boot gets
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
