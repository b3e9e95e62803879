"""What every client can rely on, whichever way it came."""

from __future__ import annotations

import base64
import subprocess
import threading
import time

import numpy as np
import pytest
from mcp.shared.exceptions import MCPError

from cua_gym.bridge import tools
from cua_gym.machine.base import Frame
from tests.bridge.clients import facts_of, lines_of, picture_of, refusal_of, text_of, toy_of
from tests.bridge.conftest import Pair

EVERY = {"submit", "give_up", "status"}
DESKTOP = {
    "screenshot", "move", "click", "mouse_down", "mouse_up", "drag", "scroll", "type", "key",
    "key_down", "key_up", "wait", "cursor_position", "screen_size", "windows",
    "accessibility_tree", "marks",
    "clipboard_get", "clipboard_set",
}  # fmt: skip
SHELL = {
    "run", "start", "poll", "kill", "pty_open", "pty_send", "pty_read", "pty_resize", "pty_close",
    "read_file", "write_file", "edit_file", "list_dir", "stat", "upload", "download",
}  # fmt: skip
MIB = 1 << 20


def running(seconds: str) -> bool:
    """Whether a ``sleep`` of so many seconds is a process of this machine."""
    return subprocess.run(["pgrep", "-xf", f"sleep {seconds}"], capture_output=True).returncode == 0


def until(condition: object, seconds: float = 20.0) -> None:
    """Wait for something that must come about."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


def test_each_bridge_has_its_tools_and_those_of_the_other_are_unknown(pair: Pair) -> None:
    """A desktop client finds no command to run, a shell client no screen."""
    assert set(pair.desktop.tools()) == DESKTOP | EVERY
    assert set(pair.shell.tools()) == SHELL | EVERY
    assert "no tool is called 'run'" in refusal_of(pair.desktop.call("run", command="id"))
    assert "no tool is called 'screenshot'" in refusal_of(pair.shell.call("screenshot"))


def test_a_client_is_told_what_the_task_is(pair: Pair) -> None:
    """The server's own words have the instruction, and how to end."""
    told = pair.desktop.client.instructions or ""
    assert pair.served.session.episode.variation.instruction in told
    assert "submit" in told


def test_an_answer_has_picture_text_and_facts(pair: Pair) -> None:
    """An acting tool shows the frame after it, and says which one it is."""
    answer = pair.desktop.call("click", x=150, y=120)
    facts = facts_of(answer)
    assert picture_of(answer).mime_type == "image/png"
    assert facts["cursor"] == [150, 120]
    assert facts["frame"] == toy_of(pair.served).serial
    assert text_of(answer) == f"frame {facts['frame']}"


def test_twenty_pictures_stay_below_what_a_client_takes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture is image content, and no answer reaches 1 MiB, whatever is on the screen."""
    toy = toy_of(pair.served)
    noise = np.random.default_rng(7).integers(0, 256, (480, 640, 3), np.uint8)
    for number in range(20):
        if number == 17:
            shot = Frame(noise, (0, 0), time.monotonic(), toy.serial)
            monkeypatch.setattr(toy, "grab", lambda out=None, shot=shot: shot)
        answer = pair.desktop.call("screenshot")
        assert picture_of(answer).type == "image"
        assert len(base64.b64decode(picture_of(answer).data)) < len(answer.model_dump_json()) < MIB


def test_a_text_of_a_megabyte_is_refused_or_taken_whole(pair: Pair) -> None:
    """Long arguments arrive: typing refuses them by its own limit, a file takes them."""
    text = "ä" * 500_000
    assert "at most 5000" in refusal_of(pair.desktop.call("type", text=text))
    assert facts_of(pair.shell.call("write_file", path="long", content=text))["bytes"] == 1_000_000


@pytest.mark.parametrize("tool", ["desktop", "shell"])
def test_a_request_beyond_the_limit_is_an_error_and_no_end(pair: Pair, tool: str) -> None:
    """What is too long for a request is refused; the next call is answered."""
    caller = getattr(pair, tool)
    try:
        refusal_of(caller.call("give_up", reason="x" * (5 * MIB)))
    except MCPError:
        pass  # over HTTP the protocol's own error; the stdio end makes an answer of it
    facts_of(caller.call("status"))


def test_a_cancelled_command_is_gone_and_the_next_call_works(pair: Pair) -> None:
    """The program is killed, the turn is free, and the record says that it was stopped."""
    call = pair.shell.begin("run", command="sleep 61.25; echo never")
    until(lambda: running("61.25"))
    call.cancel()
    until(lambda: not running("61.25"))
    assert facts_of(pair.shell.call("run", command="echo next"))["stdout"] == "next\n"
    stopped = next(line for line in reversed(lines_of(pair.served)) if "sleep" in str(line["call"]))
    assert stopped["info"]["shell"]["stopped"] is True


def test_a_cancelled_wait_ends(pair: Pair) -> None:
    """Somebody who no longer wants to wait does not hold up who comes next."""
    call = pair.desktop.begin("wait", seconds=60)
    until(lambda: pair.served.session.episode.turns._driving)
    call.cancel()
    before = time.monotonic()
    facts_of(pair.desktop.call("screenshot"))
    assert time.monotonic() - before < 30
    waits = [line for line in lines_of(pair.served) if (line["call"] or {}).get("tool") == "wait"]
    assert waits[-1]["info"]["stopped"] is True


def test_cancelled_calls_that_wait_for_their_turn_are_never_done(pair: Pair) -> None:
    """What was cancelled before it began leaves no trace, and nobody waits for it."""
    first = pair.shell.begin("run", command="sleep 61.5")
    until(lambda: running("61.5"))
    waiting = [pair.shell.begin("run", command="touch never") for _ in range(3)]
    until(lambda: len(pair.served.session.episode.turns._waiting) == 3)
    for call in waiting:
        call.cancel()
    until(lambda: not pair.served.session.episode.turns._waiting)
    first.cancel()
    names = facts_of(pair.shell.call("run", command="ls"))["stdout"].split()
    assert "never" not in names


def test_one_client_may_ask_many_things_at_once(pair: Pair) -> None:
    """None is refused, each is done alone, and the record has them in the order of their doing."""
    script = 'mkdir lock || exit 9; sleep 0.01; rmdir lock; echo "$N"'
    before = len(lines_of(pair.served))
    calls = [pair.shell.begin("run", command=script, env={"N": str(n)}) for n in range(6)]
    answers = [facts_of(call.result(60)) for call in calls]
    assert [answer["exit"] for answer in answers] == [0] * 6
    assert [answer["stdout"] for answer in answers] == [f"{n}\n" for n in range(6)]
    lines = lines_of(pair.served)[before:]
    in_order = sorted(answers, key=lambda answer: -answer["steps_left"])
    assert [line["info"]["shell"]["stdout"] for line in lines] == [a["stdout"] for a in in_order]
    assert [line["step"] for line in lines] == list(range(before + 1, before + 7))


def test_more_calls_than_threads_can_be_cancelled(quick: Pair) -> None:
    """Calls that wait for their turn never keep a cancellation from being heard."""
    first = quick.shell.begin("run", command="sleep 61.75")
    until(lambda: running("61.75"))
    waiting = [quick.shell.begin("status") for _ in range(tools.CALLS + 20)]
    until(lambda: len(quick.served.session.episode.turns._waiting) >= tools.CALLS - 1)
    first.cancel()
    for call in waiting:
        facts_of(call.result(60))
    until(lambda: not running("61.75"))


def test_a_long_call_tells_progress(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asked hears that a long call still runs, and can go on afterwards."""
    monkeypatch.setattr(tools, "PROGRESS_S", 0.05)
    told: list[str] = []
    enough = threading.Event()

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")
        if len(told) == 3:
            enough.set()

    async def call() -> object:
        return await pair.shell.client.call_tool(
            "run", {"command": "sleep 61.125"}, progress_callback=progress
        )

    long = pair.shell.portal.start_task_soon(call)
    assert enough.wait(20)
    long.cancel()
    assert told[0].startswith("run has run for")
    assert facts_of(pair.shell.call("run", command="echo on"))["stdout"] == "on\n"


def test_nothing_of_all_this_ended_the_episode(pair: Pair) -> None:
    """Faults of a client are answered; they are no fault of ours and no end."""
    facts_of(pair.desktop.call("screenshot"))
    assert pair.served.session.episode.outcome is None
    assert not pair.served.session.ended.is_set()
