"""What every Process must do, as tests; a part of `cua_gym.contract.shell.ShellContract`."""

from __future__ import annotations

import secrets
import threading
import time

import pytest

from cua_gym.errors import ActionError
from cua_gym.machine.base import Process, Shell, Stream

__all__ = ["ProcessContract"]

_LONG_S = 60.0
"""No promise of speed: the time after which a test gives up."""


class ProcessContract:
    """Promises of `cua_gym.machine.base.Process`, one test each."""

    # pipes

    def test_output_while_it_runs(self, shell: Shell) -> None:
        """What is printed can be read at once, whole or in parts; a prompt needs no line end."""
        process = shell.start("printf 'one> '; read -r x; echo $x >&2; read -r x; exit 7")
        _await(process, b"one> ")
        assert (process.exit, process.wait(0)) == (None, False)
        assert (process.size("stdout"), process.size("stderr"), process.dropped) == (5, 0, 0)
        process.write(b"two\n")
        _await(process, b"two\n", "stderr")
        process.write(b"\n")
        assert process.wait(_LONG_S)
        assert process.exit == 7
        assert process.output("stdout", 1, 3) == b"ne>"
        assert process.output("stdout", 5) == b""
        assert not process.wait_output("stdout", 5, _LONG_S)
        process.close()
        assert process.output("stderr") == b"two\n"

    def test_input_by_pieces_then_its_end(self, shell: Shell) -> None:
        """Input is exact for every byte, arrives as it is written, and ends when it is told to."""
        process = shell.start(["cat"])
        process.write(b"first")
        _await(process, b"first")
        data = b"cua-gym-end:" + bytes(range(256)) * 4096
        for at in range(0, len(data), 100_000):
            process.write(data[at : at + 100_000])
        process.close_input()
        process.close_input()
        with pytest.raises(ActionError, match="closed"):
            process.write(b"x")
        assert process.wait(_LONG_S)
        assert (process.exit, process.output("stdout")) == (0, b"first" + data)
        process.close()

    def test_unread_input_holds_nobody_up(self, shell: Shell) -> None:
        """Writing to a program that does not read returns, and does not keep it from its end."""
        process = shell.start(["sleep", "61"])
        process.write(bytes(8 << 20))
        process.kill()
        assert process.wait(0)
        process.close()

    def test_unread_output_holds_nobody_up(self, shell: Shell) -> None:
        """A program may fill both streams while nobody reads them."""
        process = shell.start("head -c 5000000 /dev/zero & head -c 4000000 /dev/zero >&2; wait")
        assert process.wait(_LONG_S)
        assert (process.size("stdout"), process.size("stderr")) == (5_000_000, 4_000_000)
        assert process.output("stderr") == bytes(4_000_000)
        process.close()

    def test_ended_process(self, shell: Shell) -> None:
        """Keys for a program that has ended are the caller's error; the rest has nothing to do."""
        process = shell.start("kill -TERM $$", terminal=(80, 24))
        assert process.wait(_LONG_S)
        assert process.exit == 143
        with pytest.raises(ActionError, match="143"):
            process.write(b"x")
        with pytest.raises(ActionError, match="143"):
            process.resize(80, 25)
        process.kill()
        process.close()
        piped = shell.start(["true"])
        assert piped.wait(_LONG_S)
        piped.close_input()
        piped.close()
        assert (process.exit, piped.exit) == (143, 0)

    def test_impossible_starts(self, shell: Shell) -> None:
        """Sizes that no terminal has and what only pipes or only terminals can is refused."""
        for size in ((0, 24), (80, 1 << 16)):
            with pytest.raises(ActionError, match="columns"):
                shell.start(["true"], terminal=size)
        process = shell.start(["cat"])
        with pytest.raises(ActionError, match="no terminal"):
            process.resize(80, 24)
        with pytest.raises(ActionError):
            process.output("stdout", -1)
        process.close()

    # its end

    @pytest.mark.parametrize("terminal", [None, (80, 24)])
    def test_kill_from_another_thread(self, shell: Shell, terminal: tuple[int, int] | None) -> None:
        """Who waits for the end is told as soon as another thread kills; what came is kept."""
        process = shell.start("echo begun; sleep 61", terminal=terminal)
        _await(process, b"begun")
        killer = threading.Timer(0.1, process.kill)
        begun = time.monotonic()
        killer.start()
        assert process.wait(_LONG_S)
        assert time.monotonic() - begun < 40
        killer.join()
        process.kill()
        assert process.exit == 137
        assert process.output("stdout").strip() == b"begun"
        process.close()

    @pytest.mark.parametrize("terminal", [None, (80, 24)])
    def test_close_kills_the_tree(self, shell: Shell, terminal: tuple[int, int] | None) -> None:
        """Closing in the middle leaves nothing of a program, its sessions and orphans included."""
        marks = [str(7100 + secrets.randbelow(100_000) * 10 + i) for i in range(4)]
        process = shell.start(
            f"setsid -f sleep {marks[0]}; (env -i sleep {marks[1]} &); sleep {marks[2]} & "
            f"sh -c 'echo begun; sleep {marks[3]}; echo not'; echo never",
            terminal=terminal,
        )
        _await(process, b"begun")
        process.close()
        process.close()
        assert process.wait(0)
        assert process.exit == 137
        assert process.output("stdout").strip() == b"begun"
        end = time.monotonic() + _LONG_S
        while shell.run(["pgrep", "-f", "sleep (" + "|".join(marks) + ")$"]).stdout:
            assert time.monotonic() < end  # what was killed takes a moment to be gone

    def test_close_while_output_pours(self, shell: Shell) -> None:
        """A program that prints without end is closed like any other."""
        process = shell.start(["yes"], terminal=(80, 24))
        assert process.wait_output("stdout", 100_000, _LONG_S)
        process.close()
        size = process.size("stdout")
        assert process.output("stdout", size - 1) == process.output("stdout")[-1:]

    def test_nothing_stays_behind(self, shell: Shell) -> None:
        """Programs that ended or were closed leave no thread, nor do commands."""
        shell.run(["true"])
        before = threading.active_count()
        for _ in range(5):
            shell.start(["cat"]).close()
            process = shell.start(["true"], terminal=(80, 24))
            assert process.wait(_LONG_S)
            shell.run(["true"])
        end = time.monotonic() + _LONG_S
        while threading.active_count() > before:  # one that was told to end takes a moment
            assert time.monotonic() < end
            time.sleep(0.01)

    # terminals

    def test_terminal(self, shell: Shell) -> None:
        """A program is on its controlling terminal, of its size and kind; its streams are one."""
        process = shell.start(
            'tty; [ -O "$(tty)" ] && stty size <"$(tty)"; echo $TERM $A >/dev/tty; echo x >&2',
            terminal=(101, 31),
            env={"A": "b"},
        )
        assert process.wait(_LONG_S)
        name, *rest = process.output("stdout").split(b"\r\n")
        assert name.startswith(b"/dev/pts/")
        assert rest == [b"31 101", b"xterm-256color b", b"x", b""]
        assert (process.exit, process.output("stderr")) == (0, b"")
        process.close()

    def test_interactive_program(self, shell: Shell) -> None:
        """An interpreter prompts, answers, and ends when it is told to."""
        process = shell.start(["python3", "-q", "-i"], terminal=(80, 24))
        _await(process, b">>> ")
        process.write(b"6 * 7\n")
        _await(process, b"42\r\n")
        with pytest.raises(ActionError, match="Ctrl-D"):
            process.close_input()
        process.write(b"exit(3)\n")
        assert process.wait(_LONG_S)
        assert process.exit == 3
        process.close()

    def test_ctrl_c(self, shell: Shell) -> None:
        """Ctrl-C interrupts what is in the foreground, which may live on."""
        script = (  # no moment at which the key could be missed
            "from signal import *; signal(SIGINT, SIG_DFL); pthread_sigmask(SIG_BLOCK, [SIGINT]); "
            "print('ready', flush=True); sigwait([SIGINT]); "
            "print('caught', flush=True); pthread_sigmask(SIG_UNBLOCK, [SIGINT]); pause()"
        )
        process = shell.start(["python3", "-c", script], terminal=(80, 24))
        _await(process, b"ready")
        process.write(b"\x03")
        _await(process, b"caught")
        assert process.exit is None
        process.write(b"\x03")
        assert process.wait(_LONG_S)
        assert process.exit == 130
        process.close()

    def test_job_control(self, shell: Shell) -> None:
        """An interactive shell stops and continues its jobs."""
        process = shell.start(["bash", "--norc", "-i"], env={"PS1": "$ "}, terminal=(80, 24))
        _await(process, b"$ ")
        process.write(b"""sh -c 'while read -r x; do echo "<$x>"; done'\none\n""")
        _await(process, b"<one>")
        process.write(b"\x1a")
        _await(process, b"Stopped")
        process.write(b"fg\ntwo\n")
        _await(process, b"<two>")
        process.write(b"\x04exit 5\n")
        assert process.wait(_LONG_S)
        assert process.exit == 5
        process.close()

    def test_resize(self, shell: Shell) -> None:
        """A new size is told to the program at once."""
        process = shell.start(
            "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done",
            terminal=(80, 24),
        )
        _await(process, b"ready")
        process.resize(132, 43)
        _await(process, b"43 132")
        process.close()

    def test_stopped_terminal_can_be_killed(self, shell: Shell) -> None:
        """A program whose output was halted by Ctrl-S can be killed like any other."""
        process = shell.start("echo ready; read -r x; echo unseen", terminal=(80, 24))
        _await(process, b"ready")
        process.write(b"\x13\n")
        assert not process.wait(0.2)
        process.kill()
        assert process.exit == 137
        process.close()


def _await(process: Process, text: bytes, stream: Stream = "stdout") -> None:
    """Wait until a stream holds a text."""
    end = time.monotonic() + _LONG_S
    while text not in (output := process.output(stream)):
        if not process.wait_output(stream, len(output), end - time.monotonic()):
            pytest.fail(f"{text!r} never came in {process.output(stream)!r}; exit {process.exit}")
