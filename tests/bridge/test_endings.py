"""How an attempt ends over the bridges: with a typed outcome, and nothing told of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.session import ClientSession

from cua_gym.bridge import desktop, serve
from cua_gym.bridge.serve import Served
from cua_gym.bridge.session import Call
from cua_gym.bridge.tools import Reply
from cua_gym.errors import MachineLost
from cua_gym.machine.base import Frame
from cua_gym.turns import Stop
from tests.bridge.clients import (
    HTTP,
    WAYS,
    Way,
    connect,
    facts_of,
    lines_of,
    refusal_of,
    text_of,
    toy_of,
    toy_served,
)
from tests.bridge.test_transports import running, until


def result_of(served: Served) -> dict[str, Any]:
    """What was written down at the end."""
    result: dict[str, Any] = json.loads(served.session.episode.folder.result.read_text())
    return result


def word_of(served: Served) -> str:
    """What the task wants typed."""
    return str(served.session.episode.variation.params["word"])


@pytest.mark.parametrize("way", WAYS)
def test_a_task_is_done_and_judged(served: Served, way: Way) -> None:
    """Every answer arrives, the last one too; then it is over for both bridges, and scored."""
    with connect(served, "desktop", way) as one, connect(served, "shell", "modern") as other:
        facts_of(one.call("type", text=word_of(served)))
        facts_of(one.call("key", combo="ctrl+s"))
        assert text_of(other.call("read_file", path="note.txt")) == word_of(served)
        answer = one.call("submit", answer="an answer")
        assert facts_of(answer) == {"over": True}
        assert served.wait(20)
        for caller, tool in ((one, "screenshot"), (other, "list_dir"), (one, "submit")):
            assert "over" in refusal_of(caller.call(tool))
    outcome = served.judged()
    assert (outcome.kind, outcome.score, outcome.success) == ("scored", 1.0, True)
    submission = result_of(served)["submission"]
    assert submission == {"kind": "submit", "answer": "an answer", "reason": None}


@pytest.mark.parametrize("bridge", ["desktop", "shell"])
def test_either_bridge_can_end_it(served: Served, bridge: Any) -> None:
    """Giving up is judged by what stands, with its reason kept."""
    with connect(served, bridge, "modern") as caller:
        facts_of(caller.call("give_up", reason="no such word"))
    assert served.judged().score == 0.0
    assert result_of(served)["submission"] == {
        "kind": "give_up", "answer": None, "reason": "no such word",
    }  # fmt: skip


@pytest.mark.parametrize("way", HTTP)
def test_an_answer_is_waited_for_before_the_tokens_are_void(
    served: Served, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever submits while the server already wants to judge gets his answer, if he is slow too.

    A client asks for the tools to check its first answer by.
    """
    ask = ClientSession.list_tools

    async def late(*words: Any, **more: Any) -> Any:
        await anyio.sleep(3 * serve.QUIET_S)
        return await ask(*words, **more)

    monkeypatch.setattr(ClientSession, "list_tools", late)
    monkeypatch.setattr(serve, "LAST_WORDS_S", 20.0)
    with connect(served, "desktop", way) as one:
        submitted = one.begin("submit")
        served.wait()
        served.revoke()
        facts_of(submitted.result(30))


@pytest.mark.parametrize("way", HTTP)
def test_the_last_step_of_a_limit_says_so(tmp_path: Path, way: Way) -> None:
    """It is done and shown; afterwards nothing is, and the attempt is graded."""
    with toy_served(tmp_path, steps=3) as served:
        with connect(served, "desktop", way) as one, connect(served, "shell", way) as other:
            assert facts_of(one.call("move", x=1, y=1))["steps_left"] == 2
            facts_of(one.call("screenshot"))
            assert facts_of(other.call("run", command="true"))["steps_left"] == 1
            answer = one.call("move", x=2, y=2)
            assert facts_of(answer)["limit"] == "steps"
            assert "the episode is over" in text_of(answer)
            assert "over" in refusal_of(other.call("run", command="touch late"))
        assert not toy_of(served).shell.host_path("/home/user/late").exists()
        assert served.judged().kind == "scored"
        assert result_of(served)["submission"]["reason"] == "steps"


@pytest.mark.parametrize("way", HTTP)
def test_when_the_time_is_over_a_call_under_way_is_stopped(tmp_path: Path, way: Way) -> None:
    """Its program is killed, its answer says why, and the attempt is graded soon after."""
    with toy_served(tmp_path, seconds=1.5) as served, connect(served, "shell", way) as one:
        answer = one.call("run", command="sleep 67.25")
        until(lambda: not running("67.25"))
        assert "limit" in answer.model_dump_json() or answer.is_error
        assert served.wait(20)
        assert served.judged().kind == "scored"
        assert result_of(served)["submission"]["reason"] == "seconds"


def test_the_time_ends_for_a_client_that_does_nothing(tmp_path: Path) -> None:
    """And for one that never came."""
    with toy_served(tmp_path, seconds=0.3) as served:
        assert served.wait(20)
        assert served.judged().kind == "scored"
        assert result_of(served)["submission"] == {
            "kind": "limit", "answer": None, "reason": "seconds",
        }  # fmt: skip


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), AssertionError(), OSError("x")])
def test_a_fault_of_ours_judges_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The attempt is unscored, with the cause and the traceback kept; the caller is told."""

    def click(call: Call, x: int, y: int) -> Reply:
        """Fails."""
        raise error

    tools = tuple(click if tool.__name__ == "click" else tool for tool in desktop.TOOLS)
    monkeypatch.setitem(serve._TOOLS, "desktop", tools)
    with toy_served(tmp_path) as served, connect(served, "desktop", "modern") as one:
        assert "a fault of ours" in refusal_of(one.call("click", x=1, y=1))
        assert served.wait(20)
        outcome = served.judged()
        assert (outcome.kind, outcome.reason, outcome.phase) == ("unscored", "bridge", "act")
        assert type(error).__name__ in (outcome.cause or "")
        assert "Traceback" in served.session.episode.folder.log.read_text()
        assert result_of(served)["score"] is None


@pytest.mark.parametrize(
    "lose", [lambda toy: setattr(toy, "fault", MachineLost("it went away")), lambda toy: None]
)
def test_a_machine_that_is_lost_during_a_call(
    served: Served, monkeypatch: pytest.MonkeyPatch, lose: Callable[[Any], None]
) -> None:
    """The caller is told, and the attempt is unscored by the machine, whoever noticed first."""
    toy = toy_of(served)
    if lose(toy) is None and toy.fault is None:

        def lost(out: object = None) -> Frame:
            toy.fault = MachineLost("it went away")
            raise toy.fault

        monkeypatch.setattr(toy, "grab", lost)
    with connect(served, "desktop", "modern") as one:
        assert "no fault of yours" in refusal_of(one.call("click", x=1, y=1))
        assert served.wait(20)
    outcome = served.judged()
    assert (outcome.kind, outcome.reason) == ("unscored", "machine")
    assert "it went away" in (outcome.cause or "")


def test_a_machine_that_is_lost_between_calls(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is noticed without anybody asking, even under a command that cannot be killed any more."""
    monkeypatch.setattr(serve, "_HEALTH_S", 0.0)
    with connect(served, "shell", "modern") as one:
        call = one.begin("run", command="sleep 67.5")
        until(lambda: running("67.5"))
        toy_of(served).fault = MachineLost("it went away")
        assert served.wait(20)
        assert "no fault of yours" in refusal_of(call.result(30))
        assert "over" in refusal_of(one.call("run", command="true"))
    outcome = served.judged()
    assert (outcome.kind, outcome.reason) == ("unscored", "machine")
    until(lambda: not running("67.5"))


def test_no_answer_tells_a_score(served: Served) -> None:
    """Neither before the end nor while it is judged."""
    with connect(served, "desktop", "modern") as one, connect(served, "shell", "modern") as other:
        said = [caller.call("status").model_dump_json() for caller in (one, other)]
        said.append(one.call("submit").model_dump_json())
        outcome = served.session.episode.evaluate()
        said.append(one.call("status").model_dump_json())
    words = ("score", "success", "checkpoint", "passed", str(outcome))
    assert not [word for word in words for text in said if word in text.lower()]


def test_status_says_how_the_attempt_stands(served: Served) -> None:
    """The task, what is left of it, the tools, and whether a person has the machine."""
    with connect(served, "shell", "modern") as one:
        facts = facts_of(one.call("status"))
        assert facts["instruction"] == served.session.episode.variation.instruction
        assert (facts["steps_left"], facts["tools"]) == (100_000, "both")
        assert 0 < facts["seconds_left"] < 600
        assert facts["person_has_the_machine"] is False


def test_everything_stands_in_one_record_in_order(served: Served) -> None:
    """Calls of both bridges, with their arguments, frames that exist, and who it was."""
    with connect(served, "desktop", "modern") as one, connect(served, "shell", "legacy") as other:
        facts_of(one.call("click", x=3, y=4))
        facts_of(other.call("run", command="echo hi"))
        refusal_of(one.call("move", x=999, y=1))
        facts_of(one.call("screenshot"))
        facts_of(other.call("write_file", path="a", content="b"))
        facts_of(one.call("submit"))
    lines = lines_of(served)
    told = [(line["call"]["bridge"], line["call"]["tool"]) for line in lines]
    assert told == [
        ("desktop", "click"), ("shell", "run"), ("desktop", "move"), ("desktop", "screenshot"),
        ("shell", "write_file"), ("desktop", "submit"),
    ]  # fmt: skip
    assert lines[0]["call"]["arguments"] == {"x": 3, "y": 4}
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert {line["by"] for line in lines} == {"agent"}
    assert [line["action"] and line["action"]["type"] for line in lines] == [
        "click", "shell", "move", None, None, "submit",
    ]  # fmt: skip
    assert "off the" in lines[2]["info"]["action_error"]
    assert lines[1]["info"]["shell"]["stdout"] == "hi\n"
    assert [line["terminated"] for line in lines] == [False] * 5 + [True]
    assert served.judged().kind == "scored"
    served.session.episode.close()  # the last pictures are written beside
    assert len(list(served.session.episode.folder.frames.iterdir())) == 7
    assert result_of(served)["steps"] == 5  # the screenshot is none


def test_a_person_makes_the_agent_wait(served: Served) -> None:
    """Meanwhile nothing of the agent is done; afterwards it is, in its order."""
    turns = served.session.episode.turns
    with connect(served, "shell", "modern") as one:
        turns.take_over()
        call = one.begin("run", command="echo waited")
        until(lambda: len(turns._waiting) == 1)
        assert not call.done()
        turns.give_back()
        assert facts_of(call.result(30))["stdout"] == "waited\n"


def test_a_call_that_a_person_makes_wait_too_long(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told so, nothing was done, and it can be tried again."""
    monkeypatch.setattr("cua_gym.bridge.session.PATIENCE_S", 0.05)
    with connect(served, "shell", "modern") as one:
        served.session.episode.turns.take_over()
        assert "a person" in refusal_of(one.call("run", command="touch never"))
        served.session.episode.turns.give_back()
        assert facts_of(one.call("run", command="ls never"))["exit"] == 2


def test_a_call_that_begins_while_it_ends_is_stopped(served: Served) -> None:
    """However it falls between the two, no call outlives the end."""
    session = served.session
    for _ in range(20):
        session.ended.clear()
        ending = threading.Thread(target=session.end)
        ending.start()
        stop = Stop()
        session.call("shell", "run", {}, stop)
        ending.join()
        assert stop.asked


def test_nothing_of_an_episode_is_left(tmp_path: Path) -> None:
    """Programs that an agent left behind end with it, and so do the server's threads."""
    before = threading.active_count()
    with toy_served(tmp_path) as served:
        with connect(served, "shell", "modern") as one:
            facts_of(one.call("start", command="sleep 67.75"))
            facts_of(one.call("run", command="setsid sleep 67.875 >/dev/null 2>&1 &"))
            facts_of(one.call("upload", path="x", data_base64="QQ==", last=False))
            facts_of(one.call("submit"))
        served.judged()
    until(lambda: not running("67.75"))
    until(lambda: not running("67.875"))
    until(lambda: threading.active_count() <= before)
    served.close()
