"""Services, ports and processes: what commands print, read to the letter."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess

import pytest

from cua_gym.errors import GradingError
from evaluators.processes_services import read_processes, read_sockets

from .conftest import Judge

UNITS = """Id=nginx.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled

Id=cron.service
LoadState=loaded
ActiveState=inactive
SubState=dead
UnitFileState=disabled
"""


def test_a_unit_has_the_states_that_are_declared(judge: Judge):
    """Its own, not its neighbour's; whole values."""

    def unit(text: str | None, name: str, **expected: str) -> bool:
        return judge("processes_services.unit", text, name=name, expected=expected).passed

    assert unit(UNITS, "nginx.service", ActiveState="active", UnitFileState="enabled")
    assert unit(UNITS, "cron.service", ActiveState="inactive")
    assert not unit(UNITS, "cron.service", ActiveState="active")
    assert not unit(UNITS, "nginx.service", ActiveState="activ")
    assert not unit(UNITS, "nginx", ActiveState="active")
    assert not unit(UNITS, "nginx.service", Result="success")
    assert not unit("", "nginx.service", ActiveState="active")
    assert not unit(None, "nginx.service", ActiveState="active")
    gone = UNITS.replace("LoadState=loaded", "LoadState=not-found")
    assert not unit(gone, "cron.service", ActiveState="inactive")
    assert unit(gone, "cron.service", LoadState="not-found")


def test_several_units_are_one_question(judge: Judge):
    """All of them as wanted; one that is not, or is not told of, is enough to fail."""

    def units(**expected: dict[str, str]) -> bool:
        named = {f"{name}.service": pairs for name, pairs in expected.items()}
        return judge("processes_services.units", UNITS, expected=named).passed

    assert units(nginx={"ActiveState": "active"}, cron={"SubState": "dead"})
    assert units(cron={})
    assert not units(nginx={"ActiveState": "active"}, cron={"SubState": "running"})
    assert not units(nginx={"ActiveState": "active"}, ssh={})
    assert not units(nginx={"LoadState": "not-found"})
    with pytest.raises(GradingError, match="name at least one"):
        units()


@pytest.mark.parametrize(
    "text",
    [
        UNITS.replace("ActiveState=active", "ActiveState=failed\nActiveState=active"),
        UNITS.replace("ActiveState=active", "ActiveState=failed")
        + "\nId=nginx.service\nLoadState=loaded\nActiveState=active\n",
        UNITS.replace("Id=nginx.service", "hello\nId=nginx.service"),
        UNITS.replace("Id=nginx.service", "Id=nginx.service.bak"),
        UNITS.replace("\n\n", "\n"),
        "ActiveState=active\nId=nginx.service\n",
        "\0" * 50,
    ],
)
def test_a_forged_unit_is_refused(judge: Judge, text: str):
    """A command line with newlines in it could add lines and blocks of its own."""
    rule = {"name": "nginx.service", "expected": {"ActiveState": "active"}}
    assert not judge("processes_services.unit", text, **rule).passed


NGINX = 'users:(("nginx",pid=9,fd=6),("nginx",pid=8,fd=6))'
SOCKETS = f"""\
udp   UNCONN 0      0      127.0.0.53%lo:53        0.0.0.0:*    users:(("resolved",pid=4,fd=1))
tcp   LISTEN 0      511        127.0.0.1:8080      0.0.0.0:*    {NGINX}
tcp   LISTEN 0      128            [::1]:8080         [::]:*    {NGINX}
tcp   LISTEN 0      128                *:22              *:*   \n"""


def test_a_port_is_that_port(judge: Judge):
    """Protocol, addresses and holder where they are declared."""

    def listens(port: int, **rule: object) -> bool:
        return judge("processes_services.listening", SOCKETS, port=port, **rule).passed

    assert listens(8080)
    assert listens(8080, addresses=["::1", "127.0.0.1"], process="nginx")
    assert listens(53, protocol="udp", addresses=["127.0.0.53%lo"])
    assert listens(22, addresses=["*"])
    for port in (80, 808, 53, 2, 80801):
        assert not listens(port)
    assert not listens(8080, protocol="udp")
    assert not listens(8080, addresses=["127.0.0.1"])
    assert not listens(8080, addresses=["127.0.0.1", "::1", "0.0.0.0"])
    assert not listens(8080, process="ngin")
    assert not listens(22, process="sshd")
    assert judge("processes_services.not_listening", SOCKETS, port=80).passed
    assert judge("processes_services.not_listening", "", port=80).passed
    assert not judge("processes_services.not_listening", SOCKETS, port=22).passed
    assert not judge("processes_services.not_listening", None, port=80).passed
    assert not judge("processes_services.listening", "", port=80).passed


@pytest.mark.parametrize(
    "line",
    [
        'tcp LISTEN 0 5 *:80 *:* users:(("a"),("nginx",pid=1,fd=2))',
        'tcp LISTEN 0 5 *:80 *:* users:(("a",pid=1,fd=2)) users:(("nginx",pid=1,fd=2)',
        "tcp ESTAB 0 5 10.0.0.1:80 10.0.0.2:4000",
        "tcp LISTEN 0 5 *:80",
        "State Recv-Q Send-Q Local Address:Port Peer Address:Port",
        "",
        "\0",
        "tcp" + " " * 100_000,
    ],
)
def test_a_line_that_is_not_of_ss_is_refused(judge: Judge, line: str):
    """A process chooses its name; connections are not listening."""
    text = f"{SOCKETS}{line}\n"
    rule = {"port": 80, "process": "nginx"}
    assert not judge("processes_services.listening", text, **rule).passed
    assert not judge("processes_services.not_listening", text, port=443).passed


PROCESSES = """\
      1 root                             Ss   /usr/lib/systemd/systemd
     80 root                             Z    /usr/sbin/cron
    900 user                             Tl   /usr/bin/mousepad
    901 user                             T    /home/user/my tool (deleted)
"""


def test_a_process_is_that_program(judge: Judge):
    """All of the last column; whose it is; how many; no zombie."""

    def running(command: str, **rule: object) -> bool:
        found = judge("processes_services.running", PROCESSES, command=command, **rule).passed
        if "count" not in rule:
            absent = judge("processes_services.not_running", PROCESSES, command=command, **rule)
            assert absent.passed is not found
        return found

    assert running("/usr/bin/mousepad")
    assert running("/usr/bin/mousepad", user="user", count=1)
    assert running(r"/home/user/my tool \(deleted\)")
    assert not running("mousepad")
    assert not running("/usr/bin/mouse")
    assert not running("/usr/bin/mousepad", user="root")
    assert not running("/usr/bin/mousepad", count=2)
    assert not running("/usr/sbin/cron")
    with pytest.raises(GradingError, match="not_running"):
        running("/usr/sbin/cron", count=0)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(
    "text",
    [
        "",
        None,
        "hello",
        PROCESSES + "x\n",
        PROCESSES + "\n\n",
        f"1 user S {'a' * 50}\n",
        "\0",
        b"\xff",
    ],
)
def test_what_is_not_of_ps_is_a_plain_fail(judge: Judge, text: str | bytes | None):
    """Neither there nor not there; nor is a name that takes for ever to match."""
    for name in ("running", "not_running"):
        found = judge(f"processes_services.{name}", text, command="(a+)+b")
        assert not found.passed


@pytest.mark.skipif(shutil.which("ss") is None, reason="iproute2 is not installed")
def test_what_ss_prints_here_is_read():
    """The port that this process just opened is among them."""
    with socket.create_server(("127.0.0.1", 0)) as four:
        done = subprocess.run(["ss", "-Hltunp"], capture_output=True, text=True, check=True)
        port = four.getsockname()[1]
    sockets = read_sockets(done.stdout)
    [found] = [s for s in sockets if (s.address, s.port) == ("127.0.0.1", port)]
    assert found.protocol == "tcp"


@pytest.mark.skipif(shutil.which("ps") is None, reason="procps is not installed")
@pytest.mark.parametrize("column", ["exe", "args"])
def test_what_ps_prints_here_is_read(column: str):
    """This very process is among them."""
    command = ["ps", "-ewwo", f"pid=,user:32=,stat=,{column}="]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = read_processes(done.stdout)
    [this] = [process for process in found if process.pid == os.getpid()]
    assert "python" in this.what
