"""Programs that are left running in a real computer."""

from __future__ import annotations

import pytest

from cua_gym.machine.base import Machine, Process

pytestmark = pytest.mark.vm

LONG_S = 120.0


def _await(process: Process, text: bytes) -> None:
    while text not in (output := process.output("stdout")):
        assert process.wait_output("stdout", len(output), LONG_S), (text, output)


def test_interactive_shell_of_the_desktop_account(shared: Machine) -> None:
    """A shell on a terminal is the account's own, in its session, with job control and sizes."""
    user = shared.spec.user
    shell = shared.shell.start(["bash", "-i"], terminal=(100, 30))
    _await(shell, b"$ ")
    shell.write(b'echo "<$(id -un) $(stat -c %U "$(tty)") $DISPLAY $TERM $(stty size)>"\n')
    _await(shell, f"<{user} {user} :0 xterm-256color 30 100>".encode())
    shell.write(b"""python3 -c 'print("<" + "up>", flush=True); import time; time.sleep(99)'\n""")
    _await(shell, b"<up>")
    shell.write(b"\x03")
    _await(shell, b"KeyboardInterrupt")
    shell.resize(90, 20)
    shell.write(b'echo "<$(stty size)>"\n')
    _await(shell, b"<20 90>")
    shell.write(b"exit 7\n")
    assert shell.wait(LONG_S)
    assert shell.exit == 7
    shell.close()


@pytest.mark.parametrize("terminal", [None, (80, 24)])
def test_frozen_program(shared: Machine, terminal: tuple[int, int] | None) -> None:
    """A program stops and goes on with its account, and can be killed while it stands still."""
    program = shared.shell.start(
        "i=0; while :; do echo $((i += 1)); sleep 0.1; done", terminal=terminal
    )
    try:
        assert program.wait_output("stdout", 10, LONG_S)
        shared.freeze()
        shared.shell.run(["true"], user="root")  # what was under way is here
        size = program.size("stdout")
        assert not program.wait_output("stdout", size, 2.0)
        shared.thaw()
        assert program.wait_output("stdout", size, LONG_S)
        shared.freeze()
        program.kill()
        assert program.exit == 137
    finally:
        shared.thaw()
        program.close()


@pytest.mark.parametrize(
    "name", ["uid", "gid", "number", "leaf", "home", "LD_DEBUG_OUTPUT", "LD_PRELOAD", "ENV"]
)
def test_variables_change_no_rights(shared: Machine, name: str) -> None:
    """What a caller sets is set for the desktop account's program, never for what starts it."""
    done = shared.shell.run("id -u; id -g; groups", env={name: "0", "LD_DEBUG": "files"})
    assert done.text.split() == ["1000", "1000", shared.spec.user], done


def test_folder_is_entered_by_the_account(shared: Machine) -> None:
    """A working folder that the account may not enter is an error of the command."""
    done = shared.shell.run("pwd", cwd="/root")
    assert done.exit != 0
    assert b"Permission denied" in done.stderr
