"""The live view over HTTP: who may look, what is seen, and how a person takes over."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cua_gym import actions as a
from cua_gym.bridge import hold, live, view
from cua_gym.bridge.brief import LONGEST, brief
from cua_gym.bridge.serve import Served
from cua_gym.errors import MachineLost
from tests.bridge.clients import lines_of, toy_episode, toy_of, toy_served

Watch = Callable[..., "Page"]


class Page:
    """What a page asks, without the page."""

    def __init__(self, served: Served, who: str = "one") -> None:
        token = served.session.token("view")
        headers = {"Authorization": f"Bearer {token}", view.VIEWER: who}
        self.http = httpx2.Client(
            base_url=f"{served.origin}/view/", headers=headers, timeout=30, trust_env=False
        )

    def get(self, path: str, **query: Any) -> httpx2.Response:
        """Ask for something."""
        return self.http.get(path, params=query)

    def state(self) -> dict[str, Any]:
        """How the episode stands."""
        state: dict[str, Any] = self.get("state").json()
        return state

    def news(self, after: int, state: dict[str, Any]) -> dict[str, Any]:
        """Wait for a step after number ``after`` or another state than ``state``."""
        news: dict[str, Any] = self.get("steps", after=after, seen=state["version"]).json()
        return news

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a state."""
        state = self.state()
        while not condition(state):
            state = self.news(10**6, state)["state"]
        return state

    def until_steps(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many steps."""
        steps: list[dict[str, Any]] = []
        while len(steps) < count:
            steps = self.get("steps", after=-1).json()["steps"]
        return steps

    def hold(self, held: bool) -> httpx2.Response:
        """Take over or give back."""
        return self.http.post("hold", json={"held": held})

    def act(self, action: a.Action) -> httpx2.Response:
        """Do something."""
        return self.http.post("act", json={"action": a.action_to_dict(action)})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """The toy episode, served."""
    with toy_served(tmp_path) as served:
        yield served


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Makes watchers, who go away in the end."""
    with ExitStack() as stack:

        def come(served: Served, who: str = "one") -> Page:
            page = Page(served, who)
            stack.callback(page.http.close)
            return page

        yield come


@pytest.fixture
def page(served: Served, watch: Watch) -> Page:
    """One who watches."""
    return watch(served)


# Who may look


def test_page_without_token(served: Served) -> None:
    """The page itself needs no token, holds no secret, and may run and load nothing foreign."""
    answer = httpx2.get(served.url("view"), trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert served.session.token("view") not in answer.text
    assert served.session.episode.variation.instruction not in answer.text
    rules = dict(
        rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; ")
    )
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert rules["connect-src"] == "'self'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in str(rules)
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    for written in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert written not in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in answer.text


def test_everything_below_needs_the_token(served: Served) -> None:
    """No token, a bridge's token, or one in the query or a cookie open nothing."""
    token = served.session.token("view")
    foreign = {"Authorization": f"Bearer {served.session.token('desktop')}"}
    with httpx2.Client(base_url=f"{served.url('view')}/", trust_env=False) as http:
        for path in ("state", "steps", "frame", "frames/0", "hold", "act", "else"):
            method = "POST" if path in ("hold", "act") else "GET"
            for headers in ({}, foreign, {"Authorization": token}, {"Cookie": f"token={token}"}):
                refused = http.request(method, path, headers=headers, params={"token": token})
                assert refused.status_code == 401


def test_rebound_and_foreign_pages_are_refused(served: Served, watch: Watch) -> None:
    """A foreign Host or Origin is refused even with the token, for the bare page too."""
    page = watch(served)
    for name, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
        assert page.http.get("state", headers={name: value}).status_code == 403
        bare = httpx2.get(served.url("view"), headers={name: value}, trust_env=False)
        assert bare.status_code == 403
    assert page.http.get("state", headers={"Origin": served.origin}).status_code == 200


def test_wrong_requests_are_told(page: Page) -> None:
    """What is no number, no JSON, no action or too long is refused with a reason."""
    assert page.get("frame", after="x").status_code == 400
    assert page.get("steps", after="1.5").status_code == 400
    assert page.http.post("hold", content=b"{").status_code == 400
    assert page.http.post("hold", json={"held": 1}).status_code == 400
    assert page.http.post("act", json=[]).status_code == 400
    assert page.http.post("act", content=b"[" * 300_000).status_code == 413
    assert page.http.post("act", content=b"[" * 200_000).status_code == 400
    assert page.get("hold").status_code == 405
    answer = page.http.post("act", json={"action": {"type": "fly"}})
    assert answer.status_code == 400
    assert "unknown action type 'fly'" in answer.json()["error"]


# What is seen


def test_state(served: Served, page: Page) -> None:
    """Task, limits and who has the machine; nothing of a score."""
    state = page.state()
    episode = served.session.episode
    assert state["task"] == "type-word"
    assert state["instruction"] == episode.variation.instruction
    assert state["screen"] == [640, 480]
    assert state["steps_left"] == state["max_steps"] == episode.max_steps
    assert 0 < state["seconds_left"] <= 600
    assert [state[k] for k in ("held", "mine", "over")] == [False] * 3
    assert state["outcome"] is None


def test_frame(served: Served, page: Page) -> None:
    """The picture is the screen of now, lossless; the next comes when the screen changes."""
    first = page.get("frame", after=-1)
    assert first.headers["content-type"] == "image/png"
    assert first.headers["x-screen"] == "640,480"
    machine = toy_of(served)
    seen = np.asarray(Image.open(io.BytesIO(first.content)))
    assert np.array_equal(seen, machine.grab().rgb)
    serial = int(first.headers["x-serial"])
    assert serial == machine.serial
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(page.get, "frame", after=serial)
        served.session.episode.act(a.Move(300, 200))
        later = waiting.result(20)
    assert later.status_code == 200
    assert int(later.headers["x-serial"]) > serial
    assert later.headers["x-cursor"] == "300,200"


def test_a_still_screen_is_left_alone(
    page: Page, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A poll ends without a picture when nothing has changed, and was looked for now and then."""
    monkeypatch.setattr(view, "WAIT_S", 0.5)
    machine, waits = toy_of(served), []
    real = machine.wait_change

    def wait(after: int, timeout_s: float) -> bool:
        waits.append(timeout_s)
        return real(after, timeout_s)

    monkeypatch.setattr(machine, "wait_change", wait)
    serial = page.get("frame").headers["x-serial"]
    answer = page.get("frame", after=serial)
    assert (answer.status_code, answer.content) == (204, b"")
    assert page.get("frame", after=10**12).status_code == 204
    assert len(waits) <= 2 * (0.5 / live.EVERY_S + 1)
    assert max(waits) <= live.GLANCE_S


def test_many_watch_one_picture(
    served: Served, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    """For many viewers a picture is encoded once; none is while nobody asks."""
    encoded = []
    real = live.encode

    def count(*args: Any, **more: Any) -> Any:
        encoded.append(1)
        return real(*args, **more)

    monkeypatch.setattr(live, "encode", count)
    pages = [watch(served, str(n)) for n in range(12)]
    serial = served.session.episode.machine.screen.serial
    with ThreadPoolExecutor(12) as pool:
        first = list(pool.map(lambda page: page.get("frame"), pages))
        assert {r.headers["x-serial"] for r in first} == {str(serial)}
        assert len(encoded) == 1
        waiting = [pool.submit(page.get, "frame", after=serial) for page in pages]
        served.session.episode.act(a.Move(9, 9))
        later = [poll.result(20) for poll in waiting]
    assert {r.headers["x-cursor"] for r in later} == {"9,9"}
    assert len(encoded) == 2
    for x in range(20):
        served.session.episode.act(a.Move(x, 1))
    assert len(encoded) == 2


def test_pictures_are_paced(served: Served, page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen that never rests is looked at again only after a pause."""
    taken = []
    real = live.encode

    def note(*args: Any, **more: Any) -> Any:
        taken.append(time.monotonic())
        return real(*args, **more)

    monkeypatch.setattr(live, "encode", note)
    machine, over = toy_of(served), threading.Event()

    def restless() -> None:
        x = 0
        while not over.wait(0.001):
            x = (x + 1) % 600
            machine.pointer(x, 5)

    with ThreadPoolExecutor() as pool:
        moving = pool.submit(restless)
        serial = -1
        for _ in range(5):
            serial = int(page.get("frame", after=serial).headers["x-serial"])
        over.set()
        moving.result()
    gaps = np.diff(taken)
    assert len(gaps) == 4  # each was sent
    assert min(gaps) >= live.EVERY_S * 0.99


def test_slow_viewers_hold_up_nobody(tmp_path: Path, watch: Watch) -> None:
    """With polls open and unread everywhere an agent acts, and the server ends."""
    with toy_episode(tmp_path) as episode:
        with Served(episode) as served:
            page = watch(served)
            paths = ("frame?after=999999", "frame", "steps?after=999999")
            polls = [threading.Thread(target=_poll, args=(page, path)) for path in paths * 20]
            for poll in polls:
                poll.start()
            for x in range(20):
                assert episode.act(a.Move(x, x)).info["settled"]
        assert not [t for t in threading.enumerate() if t.name == "cua-gym-bridges"]
        for poll in polls:
            poll.join(20)
            assert not poll.is_alive()


def _poll(page: Page, path: str) -> None:
    try:
        page.http.get(path)
    except httpx2.HTTPError:
        pass  # the server ended first


def test_steps(served: Served, page: Page) -> None:
    """Steps come as they are made, in short, with errors marked."""
    news = page.news(-1, page.state())
    assert [step["what"] for step in news["steps"]] == ["start"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(page.news, 0, news["state"])
        served.session.episode.act(a.Click(9, 8, count=2))
        (step,) = waiting.result(20)["steps"]
    assert step | {"elapsed_s": 0} == {
        "step": 1, "elapsed_s": 0, "by": "agent", "bridge": None, "what": "click",
        "how": "(9, 8) count=2", "error": None, "end": None,
    }  # fmt: skip
    served.session.episode.act(a.Click(9999, 8))
    served.session.episode.act(a.Drag(((1, 2), (3, 4), (5, 6))))
    wrong, drag = page.until_steps(4)[2:]
    assert "is off the 640x480 screen" in wrong["error"]
    assert drag["how"] == "(1, 2) → (5, 6)"


def test_recorded_pictures(served: Served, page: Page) -> None:
    """The picture of a step is the file in the record, byte by byte."""
    served.session.episode.act(a.Click(120, 120))
    page.news(0, page.state())
    answer = page.get("frames/1")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content == served.session.episode.folder.frame(1).read_bytes()
    assert page.get("frames/2").status_code == 404
    assert page.get("frames/..%2f..%2fepisode.json").status_code == 404


def test_a_lost_machine(served: Served, page: Page) -> None:
    """Without a machine there is no picture but a reason, and the page learns of the end."""
    toy_of(served).fault = MachineLost("the toy was trodden on")
    answer = page.get("frame")
    assert answer.status_code == 503
    assert "trodden on" in answer.json()["error"]
    page.until(lambda state: state["over"])
    assert served.session.episode.evaluate().kind == "unscored"
    assert "trodden on" in page.state()["outcome"]["text"]


@given(
    record=st.fixed_dictionaries({
        "step": st.integers(0), "elapsed_s": st.floats(0, 1e6), "by": st.sampled_from(["agent"]),
        "action": st.none() | st.fixed_dictionaries({"type": st.text(), "text": st.text()}),
        "call": st.fixed_dictionaries({
            "bridge": st.just("shell"), "tool": st.text(),
            "arguments": st.dictionaries(st.text(), st.text() | st.lists(st.integers())),
        }),
        "terminated": st.booleans(), "truncated": st.booleans(),
        "info": st.dictionaries(st.sampled_from(["action_error", "limit"]), st.text()),
    })
)  # fmt: skip
def test_any_step_in_short(record: dict[str, Any]) -> None:
    """Whatever was recorded becomes a few short texts that travel as JSON."""
    told = brief(record)
    assert json.loads(json.dumps(told)) == told
    assert all(len(v) <= LONGEST for v in told.values() if isinstance(v, str))


def test_odd_text_travels(served: Served, page: Page) -> None:
    """Markup and lone surrogates in a step stay text."""
    odd = "</script><img src=x onerror=alert(1)>\udcff\u202e"
    call = served.session.call("shell", "run", {"command": odd}, hold.Stop())
    call.use(lambda machine: {}, acts=True)
    answer = page.get("steps", after=0)
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.json()["steps"][0]["how"]) == odd


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
    monkeypatch.setattr(hold, "LAPSE_S", 1.0)
    page.hold(True)
    page.act(a.KeyDown("ctrl"))
    begun = time.monotonic()
    while time.monotonic() < begun + 1.5 * hold.LAPSE_S:
        assert page.news(10**6, page.state())["state"]["mine"]
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
