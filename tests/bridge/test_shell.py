"""The tools of the shell bridge that run programs: what was printed, how it ended, nothing left."""

from __future__ import annotations

import base64
import subprocess
import time
from typing import Any

import pytest

from cua_gym.bridge.jobs import KEPT, RUNNING
from cua_gym.bridge.shell import SHOWN_BYTES
from cua_gym.errors import MachineLost
from cua_gym.machine.process import Running
from tests.bridge.clients import facts_of, lines_of, refusal_of, text_of
from tests.bridge.conftest import Pair
from tests.bridge.test_transports import until

HOME = "/home/user"


def run(pair: Pair, command: str, **more: Any) -> dict[str, Any]:
    """What a command led to."""
    return facts_of(pair.shell.call("run", command=command, **more))


def whole(pair: Pair, answer: dict[str, Any], stream: str = "stdout") -> bytes:
    """All that a program printed, part by part, as an agent would ask for it."""
    data = b""
    while True:
        if stream in answer:
            data += answer[stream].encode()
        else:
            data += base64.b64decode(answer[f"{stream}_base64"])
        assert answer[f"{stream}_next"] == len(data)
        if len(data) == answer[f"{stream}_size"]:
            return data
        answer = facts_of(
            pair.shell.call("poll", job=answer["job"], **{f"{stream}_from": len(data)})
        )


def gone(seconds: str) -> bool:
    """Whether no ``sleep`` of so many seconds is a process of this machine."""
    return subprocess.run(["pgrep", "-xf", f"sleep {seconds}"], capture_output=True).returncode != 0


def test_output_and_status(quick: Pair) -> None:
    """Both streams apart, the exit status; a command that fails is an answer, no error."""
    answer = quick.shell.call("run", command="echo out; echo err >&2; exit 3")
    facts = facts_of(answer)
    assert (facts["stdout"], facts["stderr"], facts["exit"]) == ("out\n", "err\n", 3)
    assert text_of(answer) == "out\n\n[stderr]\nerr\n\n[exit 3]"


def test_a_signal_is_a_status(quick: Pair) -> None:
    """128 and the signal's number."""
    assert run(quick, "kill -9 $$")["exit"] == 137


@pytest.mark.parametrize("cwd", ["work", "~/work", f"{HOME}/work", "./work/../work/"])
def test_where_and_with_what_it_runs(quick: Pair, cwd: str) -> None:
    """A relative folder starts at the home folder; variables are added."""
    run(quick, "mkdir -p work")
    answer = run(quick, 'basename "$PWD"; echo "$A"', cwd=cwd, env={"A": "x y\n你"})
    assert answer["stdout"] == "work\nx y\n你\n"


def test_bytes_that_are_no_text_are_told_in_base64(quick: Pair) -> None:
    """Nothing is lost or made up."""
    answer = run(quick, r"printf '\xff\x00\x80'; printf '\xe4\xbd' >&2")
    assert base64.b64decode(answer["stdout_base64"]) == b"\xff\x00\x80"
    assert base64.b64decode(answer["stderr_base64"]) == b"\xe4\xbd"


def test_no_character_is_cut_in_two(quick: Pair) -> None:
    """Parts of a long text in three-byte characters are texts, and together the whole."""
    answer = run(quick, "yes 你 | head -n 50000 | tr -d '\\n'; printf x")
    assert answer["stdout_size"] == 150_001
    assert SHOWN_BYTES - 3 < answer["stdout_next"] <= SHOWN_BYTES
    assert whole(quick, answer).decode() == "你" * 50_000 + "x"


def test_ten_megabytes_on_both_streams(quick: Pair) -> None:
    """Nothing is held up; what was kept can be asked for, and what was not is counted."""
    answer = run(quick, "head -c 10485760 /dev/zero & head -c 10485760 /dev/zero >&2; wait")
    assert (answer["exit"], answer["timed_out"]) == (0, False)
    out, err = answer["stdout_size"], answer["stderr_size"]
    assert min(out, err) >= 4 << 20
    assert out + err + answer.get("dropped", 0) == 20 << 20
    said = text_of(quick.shell.call("poll", job=answer["job"], stdout_from=out - 1000))
    assert f"[{err - SHOWN_BYTES} more bytes: poll job" in said
    assert f"stderr_from={SHOWN_BYTES}]" in said
    beyond = quick.shell.call("poll", job=answer["job"], stdout_from=10**30, stderr_from=err)
    assert text_of(beyond) == "[exit 0]"


def test_a_command_whose_time_is_over(quick: Pair) -> None:
    """All of its tree is killed, and what it printed is told."""
    script = "echo before; sleep 63.25 & (setsid sleep 63.5 &) ; wait"
    for timeout_s in (0.5, 5, 30):  # a busy host may not have begun it by then
        answer = run(quick, script, timeout_s=timeout_s)
        if answer["stdout"]:
            break
    assert (answer["stdout"], answer["timed_out"], answer["exit"]) == ("before\n", True, 137)
    until(lambda: gone("63.25"))
    until(lambda: gone("63.5"))
    assert "killed" in text_of(quick.shell.call("run", command="sleep 9", timeout_s=0.1))


def test_no_input_is_waited_for(quick: Pair) -> None:
    """Standard input is at its end."""
    assert run(quick, "cat; read x; echo $?")["stdout"] == "1\n"


@pytest.mark.parametrize("tool", ["start", "run"])
def test_a_job_in_the_background(quick: Pair, tool: str) -> None:
    """It has a number at once, can be read while it runs, and is ended with all it started."""
    more = {"background": True} if tool == "run" else {}
    begun = quick.shell.call(tool, command="echo on; sleep 63.75 & wait", **more)
    job = facts_of(begun)["job"]
    assert text_of(begun) == f"job {job} runs"
    until(lambda: not gone("63.75"))  # which is started after the word
    polled = facts_of(quick.shell.call("poll", job=job, wait_s=0.3))
    while not polled["stdout"]:  # a busy host takes its time
        polled = facts_of(quick.shell.call("poll", job=job, wait_s=0.3))
    assert (polled["stdout"], polled["running"], polled["exit"]) == ("on\n", True, None)
    assert facts_of(quick.shell.call("kill", job=job))["exit"] == 137
    until(lambda: gone("63.75"))
    ended = facts_of(quick.shell.call("poll", job=job, stdout_from=3))
    assert (ended["stdout"], ended["running"], ended["exit"]) == ("", False, 137)


def test_poll_waits_for_the_end(quick: Pair) -> None:
    """As long as it was asked to, and not when it has ended."""
    job = facts_of(quick.shell.call("start", command="sleep 0.2; echo done"))["job"]
    assert facts_of(quick.shell.call("poll", job=job, wait_s=60))["stdout"] == "done\n"


def test_so_many_jobs_and_no_more(quick: Pair) -> None:
    """One too many is refused before it is started; finished ones are kept for a while."""
    started = [
        facts_of(quick.shell.call("start", command="sleep 63.875"))["job"] for _ in range(RUNNING)
    ]
    assert "kill one first" in refusal_of(quick.shell.call("run", command="touch too-many"))
    for job in started:
        facts_of(quick.shell.call("kill", job=job))
    assert "too-many" not in run(quick, "ls")["stdout"]
    assert f"there is no job {started[0]}" in refusal_of(quick.shell.call("poll", job=started[0]))
    assert facts_of(quick.shell.call("poll", job=started[-KEPT + 1]))["exit"] == 137


def speaking(pair: Pair, **words: Any) -> dict[str, Any]:
    """A terminal whose program has said something, however busy the host is."""
    opened = facts_of(pair.shell.call("pty_open", **words))
    while not opened["size"]:
        opened = facts_of(pair.shell.call("pty_read", pty=opened["pty"], wait_s=1))
    return opened


def test_a_program_on_a_terminal(quick: Pair) -> None:
    """Keys go in, the screen comes out, its size can be changed, Ctrl+C interrupts."""
    opened = speaking(quick, command="echo; cat -v", columns=90, rows=20)
    pty = opened["pty"]
    assert opened["running"] is True
    sent = facts_of(quick.shell.call("pty_send", pty=pty, text="你 ok\r"))
    assert "你 ok" in sent["text"]
    again = facts_of(quick.shell.call("pty_read", pty=pty, offset=opened["next"]))
    assert again["text"].startswith(sent["text"])
    facts_of(quick.shell.call("pty_resize", pty=pty, columns=40, rows=10))
    ended = facts_of(quick.shell.call("pty_send", pty=pty, text="\u0003"))
    while ended["running"]:  # a busy host takes its time
        ended = facts_of(quick.shell.call("pty_read", pty=pty, wait_s=1))
    assert (ended["running"], ended["exit"]) == (False, 130)
    facts_of(quick.shell.call("pty_close", pty=pty))


def test_a_terminal_has_the_size_it_was_given(quick: Pair) -> None:
    """Columns and rows; and the program is the terminal's own."""
    command = "stty size; test -t 0 && echo is a terminal"
    opened = facts_of(quick.shell.call("pty_open", command=command, columns=90, rows=20))
    while opened["running"]:  # a busy host takes its time
        opened = facts_of(quick.shell.call("pty_read", pty=opened["pty"], wait_s=1))
    assert opened["text"] == "20 90\r\nis a terminal\r\n"


def test_a_terminal_is_closed_with_all_that_runs_on_it(quick: Pair) -> None:
    """Nothing outlives it."""
    pty = facts_of(quick.shell.call("pty_open", command="sleep 64.25 & echo; sleep 64.5"))["pty"]
    facts_of(quick.shell.call("pty_close", pty=pty))
    until(lambda: gone("64.25"))
    until(lambda: gone("64.5"))


def test_half_a_character_on_a_terminal_is_waited_for(quick: Pair) -> None:
    """What came of it is told with the rest of it, never as a broken one."""
    command = r"stty -echo; printf '\xe4\xbd'; read x; printf '\xa0'; read x"
    opened = speaking(quick, command=command)
    assert (opened["text"], opened["next"]) == ("", 0)
    facts_of(quick.shell.call("pty_send", pty=opened["pty"], text="\r"))
    until(lambda: facts_of(quick.shell.call("pty_read", pty=opened["pty"]))["text"] == "你")
    facts_of(quick.shell.call("pty_close", pty=opened["pty"]))


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("run", {}, "command: Field required"),
        ("run", {"command": 1}, "command: "),
        ("run", {"command": "a\0b"}, "NUL"),
        ("run", {"command": "true", "cwd": "\0"}, "NUL"),
        ("run", {"command": "true", "cwd": "base64:!"}, "no base64"),
        ("run", {"command": "true", "env": {"A=B": "x"}}, "environment"),
        ("run", {"command": "true", "env": {"": "x"}}, "environment"),
        ("run", {"command": "true", "env": {"A": "\0"}}, "environment"),
        ("run", {"command": "true", "env": {"A": 1}}, "env.A: "),
        ("run", {"command": "true", "env": {"A": "x" * 300_000}}, "too long"),
        ("run", {"command": "true", "timeout_s": 0}, "timeout_s: "),
        ("run", {"command": "true", "timeout_s": "NaN"}, "timeout_s: "),
        ("run", {"command": "true", "timeout_s": True}, "timeout_s cannot be true"),
        ("run", {"command": "true", "timeout_s": 10**30}, "timeout_s: "),
        ("run", {"command": "true", "background": "perhaps"}, "background: "),
        ("poll", {"job": 10**30}, "there is no job"),
        ("poll", {"job": True}, "job cannot be true"),
        ("poll", {"job": 1, "stdout_from": -1}, "stdout_from: "),
        ("poll", {"job": 1, "wait_s": "NaN"}, "wait_s: "),
        ("kill", {"job": -1}, "there is no job"),
        ("pty_open", {"columns": 1}, "columns: "),
        ("pty_open", {"rows": 201}, "rows: "),
        ("pty_send", {"pty": 10**9, "text": ""}, "there is no job"),
        ("pty_read", {"pty": 10**9}, "there is no job"),
        ("pty_resize", {"pty": 10**9, "columns": 80, "rows": 24}, "there is no job"),
        ("pty_close", {"pty": 10**9}, "there is no job"),
        ("submit", {"answer": 5}, "answer: "),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told(
    quick: Pair, tool: str, arguments: dict[str, Any], why: str
) -> None:
    """A wrong argument is an answer that names it; the session goes on."""
    assert why in refusal_of(quick.shell.call(tool, **arguments))
    assert quick.served.session.episode.outcome is None


def test_keys_for_a_program_that_has_ended_or_has_no_terminal(quick: Pair) -> None:
    """Both are told; neither ends anything."""
    pty = facts_of(quick.shell.call("pty_open", command="true"))["pty"]
    until(lambda: not facts_of(quick.shell.call("pty_read", pty=pty))["running"])
    assert "ended" in refusal_of(quick.shell.call("pty_send", pty=pty, text="x"))
    job = facts_of(quick.shell.call("start", command="sleep 64.75"))["job"]
    assert "no terminal" in refusal_of(quick.shell.call("pty_resize", pty=job, columns=80, rows=24))
    facts_of(quick.shell.call("kill", job=job))


def test_a_command_longer_than_a_command_line(quick: Pair) -> None:
    """It runs, and stands in the record by its sum."""
    answer = run(quick, f"echo {'x' * 300_000} | wc -c")
    assert answer["stdout"] == "300001\n"
    recorded = lines_of(quick.served)[-1]["call"]["arguments"]["command"]
    assert recorded["characters"] == 300_013
    assert len(recorded["sha256"]) == 64


def test_no_shell_bridge_answers_with_a_picture(quick: Pair) -> None:
    """A task that allows only the shell shows no screen."""
    for tool in ("status", "list_dir"):
        assert [part.type for part in quick.shell.call(tool).content] == ["text"]


def test_a_program_that_cannot_be_stopped_brings_nobody_down(
    quick: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the machine cannot be told to stop it, the one who waits for it is told."""
    kill = Running.kill
    refused: list[Running] = []

    def lost(process: Running) -> None:
        kill(process)
        if process.exit == 137 and not refused:
            refused.append(process)
            raise MachineLost("cannot be told")

    call = quick.shell.begin("run", command="sleep 65.25")
    while gone("65.25"):
        time.sleep(0.01)
    monkeypatch.setattr(Running, "kill", lost)
    call.cancel()
    assert run(quick, "echo on")["stdout"] == "on\n"
    assert refused
    until(lambda: gone("65.25"))
