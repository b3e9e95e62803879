"""The live view: how a person takes over, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cua_gym import actions as a
from cua_gym.bridge import hold, view
from cua_gym.bridge.serve import Served
from tests.bridge.clients import lines_of, toy_episode, toy_of, toy_served
from tests.bridge.watcher import Page, Watch

# Taking over


def test_take_over_and_give_back(served: Served, page: Page) -> None:
    """A person's actions are steps by ``human`` over the view; the agent waits meanwhile."""
    assert page.act(a.Type("no")).status_code == 409
    state = page.hold(True).json()
    assert state["held"]
    assert state["mine"]
    with ThreadPoolExecutor() as pool:
        agent = pool.submit(served.session.episode.act, a.Type("B"))
        assert page.act(a.Click(120, 120)).json() == {"error": None, "over": False}
        assert page.act(a.Type("A")).status_code == 200
        assert toy_of(served).typed == "A"
        assert not agent.done()
        assert not page.hold(False).json()["held"]
        agent.result(20)
    assert toy_of(served).typed == "AB"
    assert page.act(a.Type("no")).status_code == 409
    click, typed, agents = lines_of(served)
    assert click["by"] == typed["by"] == "human"
    assert agents["by"] == "agent"
    assert click["action"] == a.action_to_dict(a.Click(120, 120))
    assert typed["call"] == {"bridge": "view", "tool": "type", "arguments": {"text": "A"}}
    # What a person does is not taken from what the agent may do.
    episode = served.session.episode
    assert (episode.steps, episode.human_steps) == (1, 2)


def test_an_impossible_action_of_a_person(served: Served, page: Page) -> None:
    """It is told, recorded as a step with its error, and ends nothing."""
    page.hold(True)
    assert "is off the" in page.act(a.Move(5000, 5)).json()["error"]
    assert page.state()["mine"]
    assert "action_error" in lines_of(served)[0]["info"]


def test_one_person_at_a_time(served: Served, page: Page, watch: Watch) -> None:
    """A second person sees that another has it, can do nothing, and gets it afterwards."""
    other = watch(served, "two")
    page.hold(True)
    refused = other.hold(True)
    assert refused.status_code == 409
    assert refused.json() == {"error": "another person has the machine"}
    assert other.act(a.Move(1, 1)).status_code == 409
    state = other.state()
    assert state["held"]
    assert not state["mine"]
    assert other.hold(False).json()["held"]
    assert page.hold(True).json()["mine"]
    page.hold(False)
    assert other.hold(True).json()["mine"]


def test_what_a_person_left_down_is_let_go(served: Served, page: Page) -> None:
    """Keys and buttons go up when the machine is given back, what the agent holds stays down."""
    served.session.episode.act(a.KeyDown("alt"))
    page.hold(True)
    for action in (a.KeyDown("shift"), a.MouseDown(), a.KeyDown("ctrl"), a.KeyUp("shift")):
        page.act(action)
    page.hold(False)
    keys, buttons = toy_of(served).held
    assert keys == {"alt"}
    assert not buttons
    ups = [line["action"] for line in lines_of(served)[-2:]]
    assert [up["type"] for up in ups] == ["key_up", "mouse_up"]


def test_a_page_that_goes_away(
    served: Served, page: Page, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    """The machine is held while the page asks for news, and given back soon after it stops."""
    monkeypatch.setattr(view, "HELD_WAIT_S", 0.1)
    now = [0.0]  # no busy host makes the page late
    monkeypatch.setattr(hold, "time", SimpleNamespace(monotonic=lambda: now[0]))
    page.hold(True)
    page.act(a.KeyDown("ctrl"))
    for _ in range(3):
        now[0] += 0.9 * hold.LAPSE_S
        assert page.news(10**6, page.state())["state"]["mine"]
    now[0] += 1.1 * hold.LAPSE_S
    other = watch(served, "two")
    other.until(lambda state: not state["held"])
    assert not toy_of(served).held[0]
    served.session.episode.act(a.Type("agent"))
    assert page.act(a.Move(1, 1)).status_code == 409


def test_ten_seconds_at_most() -> None:
    """A page asks often enough to be known as there, and the machine is back within 10 s."""
    assert 2 * view.HELD_WAIT_S < hold.LAPSE_S <= 9.0


def test_the_server_ends_while_a_person_has_it(tmp_path: Path, watch: Watch) -> None:
    """Nobody holds a machine whose view is gone."""
    with toy_episode(tmp_path) as episode:
        with Served(episode) as served:
            watch(served).hold(True)
            assert episode.turns.held
        assert not episode.turns.held
        episode.act(a.Type("agent"))


def test_give_back_while_another_call_runs(served: Served, page: Page, watch: Watch) -> None:
    """A person who waits for the agent's long call can give back at once."""
    with ThreadPoolExecutor() as pool:
        episode, stop = served.session.episode, hold.Stop()
        agent = pool.submit(episode.act, a.Wait(60), stop=stop)
        page.hold(True)
        mine = pool.submit(page.act, a.Move(1, 1))
        watch(served, "two").until(lambda state: state["held"])
        assert not page.hold(False).json()["held"]
        assert mine.result(20).status_code == 409
        assert not agent.done()
        stop.ask()
        assert agent.result(20).info["stopped"]


def test_a_person_submits(served: Served, page: Page) -> None:
    """It ends the attempt; the page says who did it, and the score only after the verdict."""
    word = served.session.episode.variation.params["word"]
    page.hold(True)
    page.act(a.Type(word))
    page.act(a.Key("ctrl+s"))
    assert page.act(a.Submit("done")).json()["over"]
    assert served.wait(20)
    state = page.until(lambda state: state["over"] and not state["held"])
    assert state["ending"] == "a person submitted: done"
    assert state["outcome"] is None
    assert page.hold(True).status_code == 409
    with ThreadPoolExecutor() as pool:
        verdict = pool.submit(page.news, 10**6, state)
        assert served.judged().score == 1.0
        outcome = verdict.result(20)["state"]["outcome"]
    assert outcome == {
        "kind": "scored",
        "score": 1.0,
        "success": True,
        "text": "scored 1.0 (success)",
    }


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda e: e.act(a.GiveUp("too hard")), "the agent gave up: too hard"),
        (lambda e: e.act(a.Submit()), "the agent submitted"),
        (lambda e: [e.act(a.Move(n, n)) for n in range(3)], "no steps are left"),
        (lambda e: (e.leave("the client went away"), e.evaluate()), "the client went away"),
    ],
)
def test_what_ended_it(tmp_path: Path, end: Callable[[Any], Any], words: str, watch: Watch) -> None:
    """The page says what ended the attempt, however it ended."""
    with toy_served(tmp_path, steps=3) as served:
        end(served.session.episode)
        page = watch(served)
        assert page.until(lambda state: state["over"])["ending"] == words


def test_the_last_poll_hears_the_verdict(tmp_path: Path, watch: Watch) -> None:
    """Whoever waits when the server ends is told how the episode stands."""
    with toy_episode(tmp_path) as episode, ThreadPoolExecutor() as pool:
        with Served(episode) as served:
            page = watch(served)
            episode.act(a.Submit())
            state = page.until(lambda state: state["over"])
            waiting = pool.submit(page.news, 10**6, state)
            served.judged()
        assert waiting.result(20)["state"]["outcome"]["kind"] == "scored"
