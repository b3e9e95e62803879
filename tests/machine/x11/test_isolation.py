"""What a program in a light desktop cannot reach, tried from inside it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.machine.x11.machine import X11Machine
from tests.machine.x11.conftest import start, until

pytestmark = [pytest.mark.x11, pytest.mark.slow]


def tried(machine: X11Machine, script: str, user: str | None = None) -> str:
    """What a Python script inside prints."""
    done = machine.shell.run(["python3", "-I", "-c", script], user=user)
    return done.text.strip() or done.stderr.decode(errors="replace").strip().splitlines()[-1]


def called(machine: X11Machine, call: str, user: str | None = None) -> str:
    """What a function of the C library returns inside, and the error it leaves."""
    script = (
        "import ctypes, errno; c = ctypes.CDLL(None, use_errno=True); "
        f"r = c.{call}; print(r, errno.errorcode.get(ctypes.get_errno()))"
    )
    return tried(machine, script, user)


ATTEMPTS = {
    "a user namespace by unshare": "unshare(0x10000000)",
    "a mount namespace": "unshare(0x00020000)",
    "a user namespace by clone": "syscall(56, 0x10000011, 0, 0, 0, 0)",
    "a mount": "mount(b'none', b'/mnt', b'tmpfs', 0, None)",
    "a mount by the new calls": "syscall(430, b'tmpfs', 0)",
    "joining a namespace": "setns(0, 0)",
    "a kernel key": "syscall(250, 0, -3, 1)",
    "bpf": "syscall(321, 0, 0, 0)",
    "io_uring": "syscall(425, 8, 0)",
    "a handle instead of a path": "syscall(304, -100, 0, 0)",
}


@pytest.mark.parametrize("what", ATTEMPTS)
@pytest.mark.parametrize("user", [None, "root"])
def test_calls_that_reach_around(shared: X11Machine, what: str, user: str | None) -> None:
    """The kernel refuses them, to the desktop account and to the root of the sandbox alike."""
    assert called(shared, ATTEMPTS[what], user) == "-1 EPERM"


def test_the_account_cannot_trace_the_supervisor(shared: X11Machine) -> None:
    """Nor anything else that is root's."""
    assert called(shared, "ptrace(16, 1, 0, 0)") == "-1 EPERM"


def test_clone3_is_not_there(shared: X11Machine) -> None:
    """Its flags cannot be looked at, so callers are sent to the older call."""
    assert called(shared, "syscall(435, bytes(88), 88)") == "-1 ENOSYS"


@pytest.mark.parametrize("family", [40, 38, 17, 31])
def test_sockets_that_no_namespace_holds(shared: X11Machine, family: int) -> None:
    """Of the hypervisor (vsock), the kernel's crypto, raw packets, bluetooth."""
    script = f"import socket; socket.socket({family}, socket.SOCK_RAW if {family} == 17 else 1)"
    assert "Address family not supported" in tried(shared, script)


def test_no_capability_and_none_to_gain(shared: X11Machine) -> None:
    """The account has none, no program gives it any, and root's are few."""
    status = shared.shell.run(["cat", "/proc/self/status"]).text
    fields = dict(line.split(":\t") for line in status.splitlines())
    assert int(fields["CapPrm"], 16) == int(fields["CapEff"], 16) == 0
    assert int(fields["CapAmb"], 16) == 0
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")
    root = shared.shell.run(["cat", "/proc/self/status"], user="root").text
    held = int(dict(line.split(":\t") for line in root.splitlines())["CapEff"], 16)
    for number in (12, 13, 16, 17, 21, 25, 27):  # net, modules, raw I/O, admin, time, devices
        assert not held >> number & 1, f"capability {number}"


def test_root_inside_is_nobody_outside(shared: X11Machine) -> None:
    """Neither account inside is an account of the host."""
    mapped = shared.shell.run(["cat", "/proc/self/uid_map"], user="root").text.split()
    assert mapped[0] == "0"
    for pid in _all_below(shared.pid)[1:]:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            owner = Path(f"/proc/{pid}").stat().st_uid
            assert owner != os.getuid(), Path(f"/proc/{pid}/cmdline").read_bytes()


def test_the_host_s_files_are_not_there(shared: X11Machine, tmp_path: Path) -> None:
    """Not by a path, and root's changes stay inside."""
    secret = tmp_path / "secret"
    secret.write_text("host")
    for path in (secret, Path(__file__), Path(sys.prefix) / "pyvenv.cfg"):
        assert shared.shell.run(["test", "-e", str(path)], user="root").exit == 1
    shared.shell.write("/etc/light-desktop-was-here", b"", user="root")
    assert not Path("/etc/light-desktop-was-here").exists()
    shared.shell.remove("/etc/light-desktop-was-here")
    mounts = shared.shell.run(["cat", "/proc/self/mounts"]).text
    assert str(Path.home()) not in mounts
    devices = set(shared.shell.run("find /dev -type b; find /dev -type c").text.split())
    allowed = {"null", "zero", "full", "random", "urandom", "tty", "console"}
    assert {d for d in devices if not d.startswith("/dev/pts/")} <= {f"/dev/{n}" for n in allowed}


def test_the_host_s_processes_are_not_there(shared: X11Machine) -> None:
    """Only what the sandbox holds is seen; nothing else can be signalled."""
    seen = shared.shell.run("ps -eo comm=", user="root").text.split()
    assert "python3" in seen
    assert "pytest" not in seen
    assert shared.shell.run(["test", "-e", f"/proc/{2**22 + 1}"], user="root").exit == 1
    space = shared.shell.run(["readlink", "/proc/self/ns/pid"], user="root").text.strip()
    assert space.startswith("pid:[")
    assert space != str(Path("/proc/self/ns/pid").readlink())  # numbers in both may be the same


@contextlib.contextmanager
def listening(sock: socket.socket) -> Iterator[None]:
    """A service of the host that greets whoever comes."""
    sock.listen()

    def greet() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = sock.accept()
                connection.sendall(b"host")
                connection.close()

    thread = threading.Thread(target=greet)
    thread.start()
    try:
        yield
    finally:
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        thread.join()


def test_the_host_s_services_are_not_there(shared: X11Machine) -> None:
    """Its loopback is another one, and abstract sockets belong to a network namespace."""
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    name = f"\0cua-gym-test-{os.getpid()}"
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(name)
    with listening(tcp), listening(abstract):
        with socket.create_connection(("127.0.0.1", port)) as here:
            assert here.recv(4) == b"host"
        said = tried(shared, f"import socket; socket.create_connection(('127.0.0.1', {port}))")
        assert "Connection refused" in said
        with socket.socket(socket.AF_UNIX) as here:
            here.connect(name)
            assert here.recv(4) == b"host"
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        assert "Connection refused" in tried(shared, script)


def test_there_is_no_network(shared: X11Machine) -> None:
    """One interface, lo, and no way out."""
    assert shared.shell.run(["ls", "/sys/class/net"]).exit != 0
    links = shared.shell.run("ip -o link").text.strip().splitlines()
    assert [line.split(":")[1].strip() for line in links] == ["lo"]
    assert shared.shell.run("ip route").text == ""


def test_the_x_server_is_not_on_the_host_s_network(shared: X11Machine) -> None:
    """No socket of it has a name that others on the host could find."""
    names = Path("/proc/net/unix").read_text()
    inside = Path(f"/proc/{shared.pid}/root/tmp/.X11-unix/X0")
    assert inside.is_socket()
    if not Path("/tmp/.X11-unix/X0").exists():
        assert "@/tmp/.X11-unix/X0" not in names


def test_two_desktops_do_not_meet(shared: X11Machine) -> None:
    """Files, processes, ports and screens of one are not another's."""
    with start() as other:
        shared.shell.write("/tmp/mine", b"x")
        with pytest.raises(FileNotFoundError):
            other.shell.read("/tmp/mine")
        serve = shared.shell.start(["python3", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
        try:
            shared.shell.run("until : < /dev/tcp/127.0.0.1/8123; do sleep 0.1; done", timeout_s=30)
            assert other.shell.run(": < /dev/tcp/127.0.0.1/8123").exit != 0
            assert "http.server" not in other.shell.run("ps -ef", user="root").text
        finally:
            serve.close()
        corner = other.screen.grab().rgb[:40, :40]
        drawn = shared.screen.grab().rgb[:40, :40]
        shared.input.pointer(11, 13)
        until(lambda: (shared.screen.grab().rgb[:40, :40] != drawn).any(), "the pointer's arrival")
        assert (other.screen.grab().rgb[:40, :40] == corner).all()
    shared.shell.remove("/tmp/mine")


def test_the_file_system_is_one(shared: X11Machine) -> None:
    """Shared, changed and new files are on one device, so what is moved is not copied."""
    shared.shell.write("/home/user/new", b"")
    shared.shell.run("echo >> /home/user/.profile")
    names = ["/home/user", "/home/user/new", "/home/user/.profile", "/home/user/.bashrc", "/usr"]
    assert len(set(shared.shell.run(["stat", "-c", "%d", *names]).text.split())) == 1
    shared.shell.remove("/home/user/new")


def test_what_it_may_take_is_bounded(shared: X11Machine) -> None:
    """A full disk is an error inside, and the account's processes have a number."""
    done = shared.shell.run("head -c 4G /dev/zero > /tmp/full; rm -f /tmp/full")
    assert b"No space left" in done.stderr
    limits = shared.shell.run(["cat", "/proc/self/limits"]).text
    assert [line.split()[2] for line in limits.splitlines() if "Max processes" in line] == ["4096"]
    shared.check()


def _all_below(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{one}/task/{one}/children").read_text()
            found += [int(child) for child in text.split()]
    return found


RESIZES = (
    "xrandr --fb 640x480",
    "xrandr --output screen --mode 640x480",
    "xrandr --output screen --off --fb 640x480",
    "xrandr -s 640x480",
)


@pytest.mark.parametrize("command", RESIZES)
def test_the_screen_keeps_its_size(shared: X11Machine, command: str) -> None:
    """Nobody inside makes the picture another one than the spec's, or the machine seem lost."""
    width, height = shared.spec.screen
    assert shared.shell.run(command).exit != 0
    dimensions = shared.shell.run("xdpyinfo | grep dimensions").text
    assert f"{width}x{height} pixels" in dimensions
    assert shared.screen.grab().rgb.shape == (height, width, 3)
