"""What every Shell must do, as tests.

Subclass `ShellContract` and give it a fixture named ``shell``: a connected `Shell` of a POSIX
machine, its desktop account's home folder writable. Everything is done below a new folder in that
home, which is removed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cua_gym.contract.process import ProcessContract
from cua_gym.errors import ActionError, OutOfSpace
from cua_gym.machine.base import Completed, Shell

__all__ = ["ShellContract"]

ODD_NAME = b"odd \xff \n'\"$(x)`\\*.txt".decode("utf-8", "surrogateescape")
"""A name with everything that quoting and decoding get wrong."""


class ShellContract(ProcessContract):
    """Promises of `cua_gym.machine.base.Shell`, one test each."""

    @pytest.fixture
    def folder(self, shell: Shell) -> Iterator[str]:
        """A new folder in the desktop account's home."""
        home = shell.run(["sh", "-c", 'printf %s "$HOME"']).text
        path = f"{home}/contract-{secrets.token_hex(4)}"
        done = shell.run(["mkdir", path])
        assert done.exit == 0, done
        yield path
        shell.remove(path)

    # commands

    def test_output_and_status(self, shell: Shell) -> None:
        """Both streams and the exit status come back, apart from each other."""
        done = shell.run("printf out; printf err >&2; exit 7")
        assert done == Completed(7, b"out", b"err")

    def test_sequence_is_not_parsed(self, shell: Shell) -> None:
        """The words of a sequence arrive as they are; nothing is expanded or split."""
        words = ["$HOME", "a  b", "`id`", "'", '"', "\\", "*", "", "--", "-n", "a\nb", ODD_NAME]
        done = shell.run(["printf", r"%s\0", *words])
        sent = [word.encode("utf-8", "surrogateescape") for word in words]
        assert done.stdout.split(b"\0")[:-1] == sent

    def test_string_goes_to_bash(self, shell: Shell) -> None:
        """A string is a bash script, quotes and all."""
        done = shell.run("""a=(1 2 3); [[ ${#a[@]} == 3 ]] && echo "it's $((a[2] * 2))" """)
        assert done.stdout == b"it's 6\n"

    def test_long_script(self, shell: Shell) -> None:
        """A script longer than any command line runs all the same."""
        script = "x=0\n" + "x=$((x + 1)) # '\"\n" * 20_000 + "echo $x\n"
        assert shell.run(script).stdout == b"20000\n"

    def test_nul_is_refused(self, shell: Shell) -> None:
        """A NUL in a command is the caller's error, said before anything runs."""
        with pytest.raises(ActionError):
            shell.run("echo a\0b")

    def test_both_streams_beyond_any_window(self, shell: Shell) -> None:
        """10 MiB on each stream at once neither deadlocks nor loses a byte."""
        done = shell.run("head -c 10485760 /dev/zero & head -c 10485760 /dev/zero >&2; wait")
        assert (done.exit, done.timed_out) == (0, False)
        assert (len(done.stdout), len(done.stderr)) == (10485760, 10485760)

    def test_every_line(self, shell: Shell) -> None:
        """Output larger than a window is whole although the status is known early."""
        done = shell.run("seq 1 600000")
        assert done.stdout.count(b"\n") == 600000
        assert done.stdout.endswith(b"\n600000\n")

    def test_multibyte_text(self, shell: Shell) -> None:
        """Characters that straddle packets stay whole."""
        done = shell.run("printf '你%.0s' $(seq 50000)")
        assert done.text == "你" * 50000

    def test_standard_input(self, shell: Shell) -> None:
        """Standard input is exact for every byte, and ends."""
        data = bytes(range(256)) * 8192
        done = shell.run(["sha256sum"], stdin=data)
        assert done.text.split()[0] == hashlib.sha256(data).hexdigest()

    def test_no_standard_input(self, shell: Shell) -> None:
        """Without given bytes standard input is at its end; nothing waits for a person."""
        assert shell.run(["cat"], timeout_s=20) == Completed(0, b"", b"")

    def test_unread_standard_input(self, shell: Shell) -> None:
        """A command that does not read its input still ends."""
        done = shell.run(["true"], stdin=bytes(8 << 20))
        assert (done.exit, done.timed_out) == (0, False)

    def test_no_terminal(self, shell: Shell) -> None:
        """There is no terminal to ask on, so a password prompt fails at once."""
        done = shell.run("read -r x </dev/tty", timeout_s=20)
        assert done.exit != 0
        assert not done.timed_out

    def test_environment_and_folder(self, shell: Shell, folder: str) -> None:
        """``env`` and ``cwd`` reach the command, any bytes in them."""
        value = "a b\n" + ODD_NAME
        done = shell.run('printf %s "$WHAT"; pwd >&2', env={"WHAT": value}, cwd=folder)
        assert done.stdout == value.encode("utf-8", "surrogateescape")
        assert done.stderr.decode().strip() == folder

    def test_an_environment_that_no_kernel_takes(self, shell: Shell) -> None:
        """It is the caller's error, and the next command goes."""
        with pytest.raises(ActionError):
            shell.run("true", env={"WHAT": "x" * 200_000})
        assert shell.run("echo on").text == "on\n"

    def test_missing_program(self, shell: Shell) -> None:
        """A program that does not exist is a result, 127, not an error."""
        done = shell.run(["no-such-program-here"])
        assert done.exit == 127
        assert done.stderr

    def test_signal(self, shell: Shell) -> None:
        """A command killed by signal n exits with 128 + n and no remark in its streams."""
        assert shell.run("kill -TERM $$") == Completed(143, b"", b"")

    def test_timeout_kills_the_tree(self, shell: Shell) -> None:
        """When time is up nothing of the command lives on, and its output until then is kept."""
        marks = [str(6100 + secrets.randbelow(100_000) * 10 + i) for i in range(4)]
        script = (
            f"echo begun; (setsid sleep {marks[0]} &) ; setsid -f sleep {marks[1]}; "
            f"(env -i sleep {marks[3]} >/dev/null 2>&1 &) ; "
            f"nohup sh -c 'sleep {marks[2]}' >/dev/null 2>&1 & wait; sleep 61"
        )
        begun = time.monotonic()
        done = shell.run(script, timeout_s=2)
        assert done.timed_out
        assert done.stdout == b"begun\n"
        assert time.monotonic() - begun < 40
        alive = ["pgrep", "-f", "sleep (" + "|".join(marks) + ")$"]
        while shell.run(alive).stdout:  # what was killed takes a moment to be gone on a busy host
            assert time.monotonic() - begun < 60

    def test_background_job_lives_on(self, shell: Shell, folder: str) -> None:
        """A job with redirected output outlives its command, which ends at once."""
        begun = time.monotonic()
        done = shell.run(
            "nohup sleep 300 >/dev/null 2>&1 & echo $! > pid; echo started", cwd=folder
        )
        assert done == Completed(0, b"started\n", b"")
        assert time.monotonic() - begun < 60
        pid = shell.run(["cat", "pid"], cwd=folder).text.strip()
        assert shell.run(["kill", "-0", pid]).exit == 0
        shell.run(["kill", pid])

    def test_job_that_holds_the_output(self, shell: Shell) -> None:
        """A job that inherited the output does not keep its command from ending."""
        done = shell.run("sleep 61 & echo $!", timeout_s=50)
        assert (done.exit, done.timed_out) == (0, False)
        shell.run(["kill", done.text.strip()])

    def test_commands_at_once(self, shell: Shell) -> None:
        """Several commands run side by side, their outputs apart."""
        results: dict[int, Completed] = {}

        def work(i: int) -> None:
            results[i] = shell.run(f"sleep 0.2; seq {i} 20000 | sha256sum; echo {i}")

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [results[i].text.split()[-1] for i in range(6)] == [str(i) for i in range(6)]

    # files

    def test_write_then_read(self, shell: Shell, folder: str) -> None:
        """A file comes back byte for byte, its folders made, any name, parts on request."""
        data = os.urandom(3_000_001)
        path = f"{folder}/a/b/{ODD_NAME}"
        shell.write(path, data)
        assert shell.read(path) == data
        assert shell.read(path, offset=1_000_003, limit=777) == data[1_000_003:1_000_780]
        assert shell.read(path, offset=3_000_000) == data[-1:]
        assert shell.read(path, offset=4_000_000) == b""
        assert shell.read(path, limit=0) == b""
        shell.write(path, b"")
        assert shell.read(path) == b""
        assert [entry.name for entry in shell.list(f"{folder}/a/b")] == [ODD_NAME]

    def test_owner_and_mode(self, shell: Shell, folder: str) -> None:
        """What is written belongs to the desktop account, made folders too, in the asked mode."""
        shell.write(f"{folder}/new/deep/x.sh", b"#!/bin/sh\necho ran\n", mode=0o750)
        me = shell.run(["id", "-u"]).text.strip()
        done = shell.run(["stat", "-c", "%u", "new", "new/deep", "new/deep/x.sh"], cwd=folder)
        assert done.text.split() == [me] * 3
        assert shell.stat(f"{folder}/new/deep/x.sh").mode == 0o750
        assert shell.run(["new/deep/x.sh"], cwd=folder).stdout == b"ran\n"

    def test_missing_and_wrong_kinds(self, shell: Shell, folder: str) -> None:
        """Errors are those of local files."""
        shell.write(f"{folder}/file", b"x")
        with pytest.raises(FileNotFoundError):
            shell.read(f"{folder}/none")
        with pytest.raises(FileNotFoundError):
            shell.stat(f"{folder}/none")
        with pytest.raises(FileNotFoundError):
            shell.list(f"{folder}/none")
        with pytest.raises(FileNotFoundError):
            shell.get_dir(f"{folder}/none", Path("never-made"), limit_bytes=1)
        with pytest.raises(IsADirectoryError):
            shell.read(folder)
        with pytest.raises(IsADirectoryError):
            shell.write(folder, b"x")
        with pytest.raises(NotADirectoryError):
            shell.list(f"{folder}/file")
        with pytest.raises(NotADirectoryError):
            shell.write(f"{folder}/file/below", b"x")
        with pytest.raises(ValueError, match="absolute"):
            shell.read("relative")
        assert [entry.name for entry in shell.list(folder)] == ["file"]

    def test_pipe_is_refused(self, shell: Shell, folder: str) -> None:
        """Reading a pipe is an error, not a wait without end."""
        shell.run(["mkfifo", "pipe"], cwd=folder)
        with pytest.raises(OSError, match="not a regular file"):
            shell.read(f"{folder}/pipe")
        assert shell.stat(f"{folder}/pipe").kind == "other"

    def test_list_and_stat(self, shell: Shell, folder: str) -> None:
        """Every entry is listed, sorted, undecodable names too; links are told, not followed."""
        shell.run("touch $'\\xff' ok; mkdir d; ln -s /etc/passwd l; ln -s none m", cwd=folder)
        entries = {entry.name: entry.kind for entry in shell.list(folder)}
        assert list(entries) == ["d", "l", "m", "ok", "\udcff"]
        assert entries == {"d": "dir", "l": "link", "m": "link", "ok": "file", "\udcff": "file"}
        assert shell.read(f"{folder}/\udcff") == b""
        assert shell.stat(f"{folder}/l").kind == "link"

    def test_remove(self, shell: Shell, folder: str) -> None:
        """Folders go with all they hold, links go without what they point at, absent is fine."""
        shell.write(f"{folder}/keep/x", b"x")
        shell.write(f"{folder}/gone/y", b"y")
        shell.run(["ln", "-s", f"{folder}/keep", "gone/link"], cwd=folder)
        shell.run(["ln", "-s", f"{folder}/keep", "link"], cwd=folder)
        shell.remove(f"{folder}/gone")
        shell.remove(f"{folder}/link/")
        shell.remove(f"{folder}/never-was")
        assert [entry.name for entry in shell.list(folder)] == ["keep"]
        assert shell.read(f"{folder}/keep/x") == b"x"

    def test_write_replaces_a_link(self, shell: Shell, folder: str) -> None:
        """Writing where a link stands replaces the link and leaves what it pointed at."""
        shell.write(f"{folder}/old", b"old")
        shell.run(["ln", "-s", "old", "link"], cwd=folder)
        shell.write(f"{folder}/link", b"new")
        assert shell.read(f"{folder}/old") == b"old"
        assert shell.stat(f"{folder}/link").kind == "file"

    # folders

    def test_folders_there_and_back(self, shell: Shell, folder: str, tmp_path: Path) -> None:
        """A folder sent and fetched is the same; its files belong to the desktop account."""
        source = tmp_path / "source"
        (source / "deep" / "er").mkdir(parents=True)
        (source / "deep" / "er" / ODD_NAME).write_bytes(os.urandom(200_000))
        (source / "empty").mkdir()
        (source / "run.sh").write_bytes(b"#!/bin/sh\necho ran\n")
        (source / "run.sh").chmod(0o755)
        shell.put_dir(source, f"{folder}/x/y")
        assert shell.run(["./run.sh"], cwd=f"{folder}/x/y").stdout == b"ran\n"
        me = shell.run(["id", "-u"]).text.strip()
        assert shell.run(["stat", "-c", "%u", "x", "x/y/deep"], cwd=folder).text.split() == [me] * 2
        target = tmp_path / "target"
        shell.get_dir(f"{folder}/x/y", target, limit_bytes=1_000_000)
        assert _tree(target) == _tree(source)

    def test_fetched_links_are_inert(self, shell: Shell, folder: str, tmp_path: Path) -> None:
        """Links and pipes are written down, never made; hard-linked files come as files."""
        shell.run(
            "ln -s /etc/passwd leak; mkfifo pipe; echo 1 > a; ln a b; echo x > .links.json",
            cwd=folder,
        )
        target = tmp_path / "target"
        shell.get_dir(folder, target, limit_bytes=1000)
        records = json.loads((target / ".links.json").read_text())
        assert {(record["name"], record["kind"]) for record in records} == {
            ("leak", "link"),
            ("pipe", "special"),
            (".links.json", "refused"),
        }
        assert {"name": "leak", "kind": "link", "target": "/etc/passwd"} in records
        assert {path.name for path in target.iterdir()} == {"a", "b", ".links.json"}

    def test_fetch_limit(self, shell: Shell, folder: str, tmp_path: Path) -> None:
        """A folder beyond the limit, be it a sparse terabyte, is refused and leaves nothing."""
        shell.run(["truncate", "-s", "1T", "huge"], cwd=folder)
        with pytest.raises(OutOfSpace, match="1000000"):
            shell.get_dir(folder, tmp_path / "target", limit_bytes=1_000_000)
        assert not (tmp_path / "target").exists()


def _tree(root: Path) -> dict[str, tuple[int, bytes]]:
    mask = os.umask(0)  # what it takes away from a fetched file, it need not have from a made one
    os.umask(mask)
    return {
        str(path.relative_to(root)): (
            path.stat().st_mode & ~mask,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in root.rglob("*")
    }
