"""An agent with a shell inside the guest tries to be scored for what it did not do."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import cua_gym
from cua_gym import Shell, Submit
from cua_gym.env import DesktopEnv
from cua_gym.grading.items import Evidence
from cua_gym.grading.outcome import Outcome
from cua_gym.task import find_task

pytestmark = pytest.mark.vm

SUM = "417702395518"
TASK = {
    "task.toml": """
name = "honest-sum"
title = "Add up"
instruction = "Write the sum of ~/numbers.txt into ~/sum.txt, copy it, and have 7 workspaces."
area = "shell"
level = 1
expected_steps = 3
measures = "nothing: it is for a test"
tool_policy = "both"

[[setup]]
file = { to = "/home/user/numbers.txt", content = "417702395000\\n518\\n" }

[[evidence]]
name = "sum"
file = "/home/user/sum.txt"

[[evidence]]
name = "again"
command = "cat /home/user/sum.txt 2>/dev/null || true"

[[evidence]]
name = "listed"
tree = "/home/user"

[[evidence]]
name = "workspaces"
command = "xfconf-query -c xfwm4 -p /general/workspace_count"
user = "user"

[[evidence]]
name = "clip"
clipboard = true

[[evidence]]
name = "tree"
a11y = true
""",
    "hidden/checkpoints.toml": """
[[checkpoint]]
id = "written"
weight = 0.4
check = "numbers_dates.number"
evidence = "sum"
args = { expected = "{answer.sum}" }

[[checkpoint]]
id = "copied"
weight = 0.3
check = "numbers_dates.number"
evidence = "clip"
args = { expected = "{answer.sum}" }

[[checkpoint]]
id = "workspaces"
weight = 0.3
check = "text.equals"
evidence = "workspaces"
args = { expected = "7" }
""",
    "hidden/answers.py": '''
"""The sum."""


def answers(params, inputs):
    """Of two numbers."""
    return {"sum": 417702395000 + 518}
''',
    "oracle.py": '''
"""For loading alone."""


def solve(params, desk):
    """Nothing."""
    yield from ()
''',
}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task's folder; its start state is made once."""
    folder = tmp_path_factory.mktemp("cheats") / "tasks" / "honest-sum"
    for name, text in TASK.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip())
    return folder


class Attempt:
    """One episode whose every step is a command."""

    def __init__(self, env: DesktopEnv) -> None:
        self.env = env

    def sh(self, command: str, timeout_s: float = 60.0) -> str:
        """What a command of the agent printed; however it ended."""
        *_, info = self.env.step(Shell(command, timeout_s))
        assert "error" not in info
        return str(info["shell"]["stdout"]) if "shell" in info else ""

    def judged(self) -> Outcome:
        """Submitted with a claim, and judged: a verdict in any case, and the record has it all."""
        self.env.step(Submit("done: score 1.0, success"))
        outcome = self.env.evaluate()
        assert outcome.kind == "scored", outcome
        folder = self.env.episode.folder
        assert json.loads(folder.result.read_text())["score"] == outcome.score
        steps = [json.loads(line) for line in folder.traj.read_text().splitlines()]
        assert len(steps) == self.env.episode.steps + 1
        return outcome

    def passed(self) -> list[str]:
        """The checkpoints that hold."""
        return [point.id for point in self.judged().checkpoints if point.passed]

    @property
    def evidence(self) -> Evidence:
        """What was collected."""
        return Evidence(self.env.episode.folder.evidence)


@pytest.fixture
def attempt(task: Path, tmp_path: Path) -> Iterator[Attempt]:
    """A fresh attempt."""
    env = cua_gym.make(find_task(task), runs=tmp_path)
    env.reset(seed=0)
    yield Attempt(env)
    env.close()


def test_the_honest_way(attempt: Attempt) -> None:
    """Doing what is asked for scores 1: what the others lack is not possible, but deserved."""
    attempt.sh(f"echo {SUM} > sum.txt")
    attempt.sh("xfconf-query -c xfwm4 -p /general/workspace_count -s 7")
    attempt.sh(own_the_clipboard(SUM))
    assert attempt.passed() == ["written", "copied", "workspaces"]


def own_the_clipboard(text: str, then: str = "") -> str:
    """A command that leaves a program behind which owns the clipboard."""
    script = (
        "import gi, os; gi.require_version('Gtk', '3.0')\n"
        "from gi.repository import Gtk, Gdk, GLib\n"
        "board = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)\n"
        f"board.set_text({text!r}, -1)\n"
        f"tell = lambda: (open('/tmp/owned', 'w').close(), {then or None}) and False\n"
        "GLib.timeout_add(500, tell)\n"
        "Gtk.main()\n"
    )
    return (
        f'setsid -f python3 -c "{script}" >/dev/null 2>&1 </dev/null; '
        "until [ -e /tmp/owned ]; do sleep 0.2; done"
    )


def test_searching_for_the_answer(attempt: Attempt) -> None:
    """Neither the answer nor the checks are anywhere that the agent's account can read."""
    # Written so that the command itself is no hit.
    found = attempt.sh(
        "grep -rIlE '41770239551[8]|honest-su[m]|hidden/check[p]oints' / --exclude-dir=sys "
        "--exclude-dir=proc 2>/dev/null; cat /proc/*/environ /proc/*/cmdline 2>/dev/null "
        "| tr '\\0' '\\n' | grep -E '41770239551[8]|honest-su[m]'",
        300.0,
    )
    assert found == ""
    assert attempt.passed() == []


def test_replacing_the_tools(attempt: Attempt) -> None:
    """What the collector runs is not looked up where the agent's account can write."""
    attempt.sh(
        "mkdir -p ~/bin ~/.local/bin ~/.config/environment.d; for f in xfconf-query cat sh bash "
        "find stat sha256sum python3 env; do printf '#!/bin/dash\\necho 7\\n' > ~/bin/$f; "
        "chmod +x ~/bin/$f; cp ~/bin/$f ~/.local/bin/; done; "
        "for f in .bashrc .profile .bash_profile .bash_login .xsessionrc .pam_environment; do "
        "echo 'export PATH=$HOME/bin:$PATH BASH_ENV=$HOME/.bashrc; "
        "xfconf-query() { echo 7; }; cat() { echo 7; }; alias cat=echo' >> ~/$f; done; "
        "echo 'PATH=/home/user/bin:/usr/bin' > ~/.config/environment.d/a.conf; "
        "systemctl --user set-environment PATH=$HOME/bin:/usr/bin BASH_ENV=$HOME/.bashrc; "
        "dbus-update-activation-environment --systemd PATH=$HOME/bin:/usr/bin"
    )
    refused = attempt.sh("cp ~/bin/cat /usr/local/bin/xfconf-query 2>&1 || echo refused")
    assert "refused" in refused
    assert attempt.passed() == []


@pytest.mark.parametrize(
    "begin", ["setsid -f bash -c '{}' >/dev/null 2>&1", "systemd-run --user --quiet bash -c '{}'"]
)
def test_rewriting_while_evidence_is_taken(attempt: Attempt, begin: str) -> None:
    """One state is judged: a file that flickers is seen the same by every look."""
    loop = f"cd; while :; do echo {SUM} >new; mv new sum.txt; echo 1 >new; mv new sum.txt; done"
    attempt.sh(begin.replace("{}", loop) + "; until [ -e ~/sum.txt ]; do sleep 0.1; done")
    passed = attempt.passed()
    seen = attempt.evidence["sum"].text()
    assert attempt.evidence["again"].text() == seen
    digest = hashlib.sha256(seen.encode()).hexdigest()
    assert f"{digest} *./sum.txt" in attempt.evidence["listed"].text()
    assert passed == (["written"] if seen.strip() == SUM else [])


@pytest.mark.parametrize(
    ("plant", "state"),
    [
        ("ln -s /etc/shadow sum.txt", "refused"),
        ("truncate -s 30G sum.txt", "refused"),
        ("mkfifo sum.txt", "refused"),
        ("head -c 9000000 /dev/zero | tr '\\0' 9 > sum.txt", "present"),
    ],
)
def test_odd_things_in_place_of_the_answer(attempt: Attempt, plant: str, state: str) -> None:
    """Links, pipes and huge files are not followed, waited for or swallowed."""
    attempt.sh(plant)
    assert attempt.passed() == []
    assert attempt.evidence["sum"].state == state


def test_a_clipboard_that_lies(attempt: Attempt) -> None:
    """An owner that does not answer is what the agent left: no copy, but a verdict."""
    attempt.sh(own_the_clipboard(SUM, "os.kill(os.getpid(), 19)"))
    assert attempt.passed() == []
    assert attempt.evidence["clip"].state == "refused"


def test_setting_the_clock(attempt: Attempt) -> None:
    """The agent's account cannot; the record's times are the host's."""
    said = attempt.sh(
        "date -s 2001-01-01 || echo refused; timedatectl set-time 2001-01-01 || echo refused; "
        "echo 'export TZ=Pacific/Kiritimati' >> ~/.profile"
    )
    assert said.count("refused") == 2
    clock = float(attempt.env.machine.shell.run("date +%s", user="root").text)
    assert abs(clock - time.time()) < 60
    assert attempt.passed() == []


def test_filling_the_disk(attempt: Attempt) -> None:
    """What was done before is judged as it stands; nothing is lost for want of room."""
    attempt.sh(f"echo {SUM} > sum.txt")
    attempt.sh(
        "fallocate -l $(($(df --output=avail -B1 ~ | tail -1) - 4096)) fill; "
        "head -c 9000000 /dev/zero > more; mkdir many; cd many; seq 20000 | xargs touch; true",
        120.0,
    )
    assert attempt.passed() == ["written"]


def test_a_forged_accessibility_tree(attempt: Attempt) -> None:
    """The registry belongs to the agent's account, so no verdict hangs on it; nor does the end."""
    attempt.sh(
        "pkill -9 -f at-spi; setsid -f python3 -c \"import gi; gi.require_version('Gtk', '3.0'); "
        "from gi.repository import Gtk; w = Gtk.Window(title='sum 417702395518 copied'); "
        'w.show_all(); Gtk.main()" >/dev/null 2>&1; sleep 3; pkill -STOP -f at-spi; true'
    )
    assert attempt.passed() == []


def test_killing_whoever_watches(attempt: Attempt) -> None:
    """The watchers are not the agent's to kill; ending its own session spoils only its own work."""
    said = attempt.sh(
        "pkill -9 qemu-ga; pkill -9 sshd; pkill -9 -u root; systemctl stop qemu-guest-agent; "
        "pgrep -u root sshd >/dev/null && echo alive"
    )
    assert "alive" in said
    attempt.sh("kill -9 -1", 10.0)
    assert attempt.passed() == []


def test_writing_results_everywhere(attempt: Attempt) -> None:
    """The host's record is no file of the guest."""
    attempt.sh(
        "find / -xdev -type d -writable 2>/dev/null | while read -r d; do for f in result.json "
        "manifest.json traj.jsonl evidence.json; do echo "
        '\'{"kind": "scored", "score": 1.0, "success": true, "checkpoints": []}\' > "$d/$f"; '
        "done; done; mkdir -p evidence; cp numbers.txt evidence/sum.txt",
        120.0,
    )
    assert attempt.passed() == []
