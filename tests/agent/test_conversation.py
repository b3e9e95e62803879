"""What a model is told and shown, and whose pixels its answers mean."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.actions import (
    Click,
    Key,
    Shell,
    Submit,
    Type,
    Wait,
)
from cua_gym.agent import conversation
from cua_gym.agent.sight import Sight
from cua_gym.errors import AgentError
from cua_gym.spaces import ToolPolicy
from tests.agent.conftest import KEY, Desk, Serve
from tests.agent.model_server import Trickle
from tests.agent.wires import CLICK, DONE, Anthropic, Body, Chat, Responses, Wire, image

# calls and their results


def bad_calls(wire: Wire) -> list[tuple[Body, str]]:
    """Calls that are wrong, and a word of what is told."""
    return [
        (wire.malformed(), ""),
        (wire.does(("click", {"x": 1280, "y": 10})), "(1280, 10)"),
        (wire.does(("key", {"combo": "ctrl+hyperdrive"})), "hyperdrive"),
        (wire.does(("teleport", {})), "teleport"),
        (wire.does(("submit", {"anser": "42"})), "anser"),
        (wire.does(("shell", {"command": "id"})), ""),
    ]


@pytest.mark.parametrize("kind", range(6))
def test_a_bad_call_is_told(wire: Wire, serve: Serve, kind: int) -> None:
    """What is malformed, unknown, off the screen or not allowed costs no step, but a word."""
    bad, word = bad_calls(wire)[kind]
    server = serve(bad, wire.does(DONE))
    assert Desk(type(wire).make(), tools="gui").act() == Submit("42")
    ((wrong, text),) = wire.results(server.asked[1].body)
    assert wrong
    assert word in text


def test_bad_calls_between_good_ones(wire: Wire, serve: Serve) -> None:
    """Only those in a row count."""
    serve(*[wire.malformed(), wire.malformed(), wire.does(CLICK)] * 3, wire.does(DONE))
    desk = Desk(type(wire).make(), screen=(1024, 768))
    assert [desk.act() for _ in range(4)] == [Click(10, 20)] * 3 + [Submit("42")]


@pytest.mark.parametrize("broken", ["breaks_off", "empty"])
def test_a_broken_answer_is_asked_for_again(wire: Wire, serve: Serve, broken: str) -> None:
    """Twice cut off or empty is forgiven, and leaves no trace in the conversation."""
    bad = getattr(wire, broken)()
    server = serve(bad, bad, wire.does(DONE))
    assert Desk(type(wire).make()).act() == Submit("42")
    assert server.asked[0].body == server.asked[2].body


def test_what_the_machine_refused_is_told(wire: Wire, serve: Serve) -> None:
    """An action error is its call's error, and what was to follow is not done."""
    server = serve(wire.does(("type", {"text": "☃"}), DONE), wire.does(DONE))
    desk = Desk(type(wire).make())
    assert desk.act() == Type("☃")
    assert desk.act(action_error="☃ cannot be typed here") == Submit("42")
    told = wire.results(server.asked[1].body)
    assert [wrong for wrong, _ in told] == [True, True]
    assert "☃ cannot be typed here" in told[0][1]
    assert told[1][1] == conversation.SKIPPED


def test_an_answers_actions_come_one_by_one(wire: Wire, serve: Serve) -> None:
    """One answer, several steps; the next request comes after the last, with one new picture."""
    server = serve(wire.does(CLICK, ("type", {"text": "a"}), ("key", {"combo": "ctrl+s"})),
                   wire.does(DONE))  # fmt: skip
    desk = Desk(type(wire).make(), screen=(1024, 768))
    assert [desk.act() for _ in range(3)] == [Click(10, 20), Type("a"), Key("ctrl+s")]
    assert len(server.asked) == 1
    assert desk.act() == Submit("42")
    assert len(wire.pictures(server.asked[1].body)) == 2


def test_looking_is_a_step(wire: Wire, serve: Serve) -> None:
    """A model that only looks lets no time pass, but comes to its limit all the same."""
    server = serve(wire.does(("screenshot", {})))
    desk = Desk(type(wire).make())
    for n in range(3):
        desk.screen[:] = n
        assert desk.act() == Wait(0.0)
    assert [image(p).getpixel((5, 5)) for p in wire.pictures(server.asked[2].body)] == [
        (0, 0, 0), (1, 1, 1), (2, 2, 2),
    ]  # fmt: skip


# faults


def faults(wire: Wire) -> list[tuple[Any, str]]:
    """What an endpoint can do wrong, and a word of the cause."""

    def said(status: int, message: str) -> Any:
        return status, {"type": "error", "error": {"type": "an_error", "message": message}}

    return [
        (said(401, f"Incorrect API key provided: {KEY}"), "Incorrect API key provided: ["),
        (said(404, "no such model"), "no such model"),
        (said(400, "bad tools"), "bad tools"),
        (said(429, "slow down"), "slow down"),
        (wire.overloaded, "Overloaded"),
        ("<html>Bad gateway</html>", "Invalid JSON"),
        ('{"id": "x", ', "Invalid JSON"),
        ([1, 2], "is none of a model"),
        ({}, "is none of a model"),
        (wire.wrong_types(), "is none of a model"),
    ]


@pytest.mark.parametrize("kind", range(10))
def test_a_fault_is_the_agents(wire: Wire, serve: Serve, kind: int) -> None:
    """An endpoint that refuses, is overloaded or talks nonsense is told in its own words."""
    reply, word = faults(wire)[kind]
    server = serve(reply)
    with pytest.raises(AgentError) as caught:
        Desk(type(wire).make()).act()
    assert word in str(caught.value)
    everything = "".join(traceback.format_exception(caught.value))
    assert KEY not in everything
    assert server.url not in everything
    tries = 3 if reply == wire.overloaded or (isinstance(reply, tuple) and reply[0] == 429) else 1
    assert len(server.asked) == tries


def test_no_choices(serve: Serve) -> None:
    """A completion without choices is none."""
    serve(Chat().says("x") | {"choices": []})
    with pytest.raises(AgentError, match="no choices"):
        Desk(Chat.make()).act()


def test_no_key(wire: Wire, serve: Serve, environment: pytest.MonkeyPatch) -> None:
    """Without a key nothing is asked."""
    server = serve(wire.says("hello"))
    environment.delenv("ANTHROPIC_API_KEY")
    environment.delenv("OPENAI_API_KEY")
    with pytest.raises(AgentError, match="api_key"):
        Desk(type(wire).make()).act()
    assert not server.asked


def test_an_answer_that_trickles(wire: Wire, serve: Serve, environment: pytest.MonkeyPatch) -> None:
    """An answer that never ends is given up at the bound of one `act`."""
    environment.setattr(conversation, "ACT_S", 0.4)
    serve(Trickle())
    with pytest.raises(AgentError, match="no answer"):
        Desk(type(wire).make()).act()


def test_the_attempts_own_time_runs_out(wire: Wire, serve: Serve) -> None:
    """A model still thinking at the attempt's end lets it end: it is graded for what it did."""
    answers: list[Any] = [Trickle()]  # however many questions were given up
    serve(wire.does(CLICK), lambda _: answers[-1])
    desk = Desk(type(wire).make(), screen=(1024, 768))
    assert desk.act() == Click(10, 20)
    assert desk.act(seconds_left=0.3) == Wait(0.0)
    answers.append(wire.does(DONE))
    assert desk.act() == Submit("42")


def test_the_attempts_own_time_runs_out_at_once(wire: Wire, serve: Serve) -> None:
    """One that never said a word is at fault, whosever time it was."""
    serve(Trickle())
    with pytest.raises(AgentError, match="no answer"):
        Desk(type(wire).make()).act(seconds_left=0.3)


def test_in_a_notebook(wire: Wire, serve: Serve) -> None:
    """Where an event loop runs already, as behind a notebook, a model is asked beside it."""
    serve(wire.does(DONE), Trickle())
    desk = Desk(type(wire).make())

    async def cell() -> list[Any]:
        return [desk.act(), desk.act(seconds_left=0.3)]

    assert asyncio.run(cell()) == [Submit("42"), Wait(0.0)]


# the shell


@pytest.mark.parametrize("tools", ["gui", "shell", "both"])
def test_tools_by_policy(wire: Wire, serve: Serve, tools: ToolPolicy) -> None:
    """No shell without the shell, no screen without the screen, endings always."""
    server = serve(wire.does(DONE))
    Desk(type(wire).make(), tools=tools).act()
    body = server.asked[0].body
    names = wire.tools(body)
    assert {"submit", "give_up"} <= names
    assert bool(names & {"bash", "shell"}) == (tools != "gui")
    assert bool(names & {"computer", "computer_toolset_20260801", "click"}) == (tools != "shell")
    assert len(wire.pictures(body)) == (tools != "shell")


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ({"exit": 0, "stdout": "a\nb\n", "stderr": ""}, "a\nb"),
        ({"exit": 0, "stdout": "", "stderr": ""}, "[exit status 0]"),
        ({"exit": 3, "stdout": "a\n", "stderr": "no\n"}, "a\nno\n[exit status 3]"),
        ({"exit": 137, "stdout": "a\n", "stderr": "", "timed_out": True},
         "a\n[its time ran out and it was killed]"),
        ({"exit": 0, "stdout": "x" * 5000 + "y" * 60_000, "stderr": ""},
         "x" * 4000 + "\n[57000 characters left out]\n" + "y" * 4000),
    ],
)  # fmt: skip
def test_shell_output(wire: Wire, serve: Serve, shell: dict[str, Any], said: str) -> None:
    """Output, errors and exit status go back, clipped from the middle."""
    server = serve(wire.does(("shell", {"command": "ls"})), wire.does(DONE))
    desk = Desk(type(wire).make(), tools="shell")
    action = desk.act()
    assert isinstance(action, Shell)
    assert action.command == "ls"
    desk.act(shell={"timed_out": False, **shell})
    ((_, text),) = wire.results(server.asked[1].body)
    assert text.strip("\n") == said


# a conversation's bounds


@pytest.fixture
def short(environment: pytest.MonkeyPatch) -> int:
    """Conversations of five answers."""
    environment.setattr(conversation, "MOST_TOLD", 5)
    return 5


def test_a_prompt_is_bounded(wire: Wire, serve: Serve, short: int) -> None:
    """However long an attempt is, a request's pictures are few and it does not grow for ever."""
    count = 4 * short - 1
    server = serve(*[wire.does(("type", {"text": f"word {n}"})) for n in range(count)])
    desk = Desk(type(wire).make(), screen=(320, 240))
    for n in range(count):
        assert desk.act() == Type(f"word {n}")
    assert max(len(wire.pictures(asked.body)) for asked in server.asked) == short
    # A new conversation begins with what was done so far and the newest picture.
    texts = [wire.first_text(asked.body) for asked in server.asked]
    assert len(set(texts)) == 4
    assert all(text.startswith("Tidy up.") for text in texts)
    for n in (short, 2 * short, 3 * short):
        assert f"word {n - 1}" in texts[n]
        assert len(wire.pictures(server.asked[n].body)) == 1
    assert server.asked[4 * short - 2].size < 1.3 * server.asked[2 * short - 1].size


def test_the_report_is_bounded(wire: Wire, serve: Serve, short: int) -> None:
    """Of what was done long ago, the oldest is left out."""
    text = "long " * 1000
    server = serve(*[wire.does(("type", {"text": f"{n} {text}"})) for n in range(2 * short + 1)])
    desk = Desk(type(wire).make(), screen=(320, 240))
    for _ in range(2 * short + 1):
        desk.act()
    first = wire.first_text(server.asked[2 * short].body)
    assert len(first) < conversation.MOST_REPORT + 1000
    assert "[what came before is left out]" in first
    assert f"{2 * short - 1} long" in first


# pixels


@pytest.mark.parametrize(
    ("kind", "screen", "shown"),
    [
        (Anthropic, (1280, 800), (1280, 800)),
        (Anthropic, (1920, 1080), (1456, 819)),  # as the provider's own table has it
        (Anthropic, (1075, 1520), (924, 1307)),  # too
        (Responses, (1920, 1080), (1920, 1080)),
        (Responses, (2560, 1440), (2048, 1152)),
        (Chat, (1280, 800), (1229, 768)),
    ],
)
def test_the_picture_is_one_that_nobody_shrinks(
    serve: Serve, kind: Any, screen: tuple[int, int], shown: tuple[int, int]
) -> None:
    """A screen too large for the provider is made smaller here, and its size is said."""
    server = serve(kind().does(DONE))
    Desk(kind.make(), screen=screen).act()
    (picture,) = kind().pictures(server.asked[0].body)
    assert image(picture).size == shown
    text = kind().first_text(server.asked[0].body)
    assert f"{shown[0]}x{shown[1]} pixels" in text
    assert "50 actions and 600 seconds left" in text


def test_a_click_hits_what_the_model_saw(wire: Wire, serve: Serve) -> None:
    """A 10 pixel target in each corner, found in the picture, is hit in its middle."""
    width, height = 2560, 1440

    def click(body: Body) -> Body:
        bright = np.argwhere(np.asarray(image(wire.pictures(body)[-1]).convert("L")) > 127)
        y, x = (int(v) for v in (bright.min(0) + bright.max(0)) // 2)
        return wire.does(("click", {"x": x, "y": y}))

    serve(click)
    desk = Desk(type(wire).make(), screen=(width, height))
    for left, top in ((0, 0), (width - 10, 0), (0, height - 10), (width - 10, height - 10)):
        desk.screen[:] = 0
        desk.screen[top : top + 10, left : left + 10] = 255
        action = desk.act()
        assert isinstance(action, Click)
        assert abs(action.x - (left + 4.5)) <= 2
        assert abs(action.y - (top + 4.5)) <= 2


@given(
    st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    st.sampled_from([Anthropic, Responses, Chat]),
)
def test_every_screen_has_a_size_that_fits(screen: tuple[int, int], kind: Any) -> None:
    """The size fits, keeps the shape, and no screen that fits is touched."""
    fits = kind.make().fits
    width, height = Sight(screen, fits).size
    assert fits(width, height)
    assert (width, height) == screen or not fits(*screen)
    assert width <= screen[0]
    assert height <= screen[1]
    assert abs(width / screen[0] - height / screen[1]) <= 1 / min(screen)
