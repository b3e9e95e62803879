# pathlib takes 10 ms to import, and every start waits for this.
# ruff: noqa: PTH101, PTH103, PTH108, PTH123, PTH208
"""Process 1 of a light desktop's sandbox: starts programs as any account, stops and reaps them.

Runs on the image's own Python and imports nothing of this package. The host asks over one socket;
each request brings descriptors, the first of which is the request's own link:

    start {user, argv, session, terminal}   + stdin, stdout, stderr unless a terminal
    stop, go {user}                                   every process of an account
    setup {files, folders, edits}                     what a fresh computer lacks

On its link a request is answered ``{}`` (``start`` with a terminal: and its descriptor), or
``{error}``; when a started program ends, ``{exit}`` follows and the link is closed. Answers are
never waited for: a host that does not read them loses them.
"""

from __future__ import annotations

import json
import os
import pwd
import resource
import selectors
import signal
import socket
import sys
import termios

TYPE_CHECKING = False  # as typing has it, without its import
if TYPE_CHECKING:
    from typing import Any

LONGEST = 1 << 20
PROCESSES = 4096
ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"


class Supervisor:
    """The loop: requests in, ends of programs out."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._links: dict[int, socket.socket] = {}  # by process id
        self._halted: set[int] = set()  # stopped before we stopped all
        self._stops = {"stop": self._stop, "go": self._go}
        woken, wake = socket.socketpair()
        woken.setblocking(False)
        wake.setblocking(False)
        self._woken = woken
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(woken, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the host is gone."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(4096)
                    self._reap()
                elif not self._request():
                    return

    def _request(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self._control, LONGEST, 4)
        if not data:
            return False
        link = socket.socket(fileno=fds.pop(0))
        try:
            request = json.loads(data)
            answer, sent = self._do(request, fds, link)
        except (OSError, KeyError, ValueError) as error:
            answer, sent = {"error": f"{type(error).__name__}: {error}"}, []
        _tell(link, answer, sent)
        for fd in (*fds, *sent):
            os.close(fd)
        if link not in self._links.values():
            link.close()
        return True

    def _do(
        self, request: dict[str, Any], fds: list[int], link: socket.socket
    ) -> tuple[dict[str, Any], list[int]]:
        name = request["op"]
        if name == "start":
            return {}, self._start(request, fds, link)
        if name == "setup":
            _set_up(request)
        else:
            self._stops[name](pwd.getpwnam(request["user"]).pw_uid)
        return {}, []

    # programs

    def _start(self, request: dict[str, Any], fds: list[int], link: socket.socket) -> list[int]:
        account = pwd.getpwnam(request["user"])
        groups = os.getgrouplist(account.pw_name, account.pw_gid)
        environment = _environment(account, request["session"])
        argv = [_bytes(word) for word in request["argv"]]
        ours = []
        if request["terminal"] is not None:
            master, slave = os.openpty()
            os.fchown(slave, account.pw_uid, -1)
            columns, rows = request["terminal"]
            termios.tcsetwinsize(slave, (rows, columns))
            fds.append(slave)
            ours.append(master)
        pid = os.fork()
        if pid == 0:
            # Nothing of the loop may run on in the child, whatever happens.
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                if ours:
                    os.login_tty(slave)
                else:
                    os.setsid()
                    for number, fd in enumerate(fds):
                        os.dup2(fd, number)
                os.closerange(3, 1024)
                resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
                os.setgroups(groups)
                os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
                os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
                os.umask(0o022)
                try:
                    os.chdir(account.pw_dir)
                except OSError:
                    os.chdir("/")
                os.execvpe(argv[0], argv, {_bytes(k): _bytes(v) for k, v in environment.items()})
            except BaseException as error:
                os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
                os._exit(127)
        self._links[pid] = link
        return ours

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._halted.discard(pid)
            link = self._links.pop(pid, None)
            if link is not None:
                code = os.waitstatus_to_exitcode(status)
                _tell(link, {"exit": 128 - code if code < 0 else code}, [])
                link.close()

    # accounts

    def _stop(self, uid: int) -> None:
        """Stop every process of an account: looked for until a look finds nothing new."""
        self._halted = {pid for pid, state in _processes(uid) if state == "T"}
        stopped = set(self._halted)
        while fresh := {pid for pid, _ in _processes(uid)} - stopped:
            for pid in fresh:
                _signal(pid, signal.SIGSTOP)
            stopped |= fresh

    def _go(self, uid: int) -> None:
        for pid, _ in _processes(uid):
            if pid not in self._halted:
                _signal(pid, signal.SIGCONT)
        self._halted = set()


def _processes(uid: int) -> list[tuple[int, str]]:
    """Living processes of an account and their states; a process of several accounts counts."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", errors="replace") as file:
                    fields = dict(line.split(":\t", 1) for line in file if ":\t" in line)
            except (OSError, ValueError):
                continue
            state = fields["State"][0]
            if str(uid) in fields["Uid"].split() and state not in "ZX":
                found.append((int(name), state))
    return found


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _environment(account: pwd.struct_passwd, session: bool) -> dict[str, str]:
    """What a program of an account finds; in its graphical session as the image's as-user says."""
    root = account.pw_uid == 0
    found = {
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "SHELL": account.pw_shell or "/bin/sh",
        "PATH": ROOT_PATH if root else PATH,
        "LANG": "C.UTF-8",
    }
    try:
        with open("/etc/default/locale") as file:
            words = [line.strip().split("=", 1) for line in file if "=" in line]
        found.update({k: v.strip("\"'") for k, v in words if not k.startswith("#")})
    except OSError:
        pass
    if session:
        runtime = f"/run/user/{account.pw_uid}"
        found.update(
            DISPLAY=":0",
            XAUTHORITY=f"{account.pw_dir}/.Xauthority",
            XDG_RUNTIME_DIR=runtime,
            DBUS_SESSION_BUS_ADDRESS=f"unix:path={runtime}/bus",
            XDG_SESSION_TYPE="x11",
            XDG_CURRENT_DESKTOP="XFCE",
            XDG_SESSION_CLASS="user",
        )
    return found


def _set_up(request: dict[str, Any]) -> None:
    """Folders and files, each with its owner and mode, in order; then texts in files replaced."""
    for path, user, mode in request["folders"]:
        os.makedirs(path, exist_ok=True)
        _own(path, user, mode)
    for path, user, mode, text in request["files"]:
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "xb") as file:
            file.write(text.encode("latin-1"))
        _own(path, user, mode)
    for path, old, new in request["edits"]:
        with open(path, "r+") as file:
            text = file.read().replace(old, new)
            file.seek(0)
            file.write(text)
            file.truncate()


def _own(path: str, user: str, mode: int) -> None:
    account = pwd.getpwnam(user)
    os.chown(path, account.pw_uid, account.pw_gid)
    os.chmod(path, mode)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _tell(link: socket.socket, answer: dict[str, Any], fds: list[int]) -> None:
    try:
        socket.send_fds(link, [json.dumps(answer).encode()], fds, socket.MSG_DONTWAIT)
    except OSError:
        pass  # who asked is gone


def main() -> None:
    """Serve the inherited socket, and keep nothing else that was inherited."""
    os.umask(0o022)
    control = int(sys.argv[1])
    os.closerange(3, control)
    os.closerange(control + 1, 1024)
    Supervisor(socket.socket(fileno=control)).run()


if __name__ == "__main__":
    main()
