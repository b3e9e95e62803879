"""The live view over HTTP: who may look, and what is seen."""

from __future__ import annotations

import io
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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
from tests.bridge.clients import toy_episode, toy_of
from tests.bridge.watcher import Page, Watch

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
    take = live.Live._take

    def note(self: live.Live) -> live.Shot:
        taken.append(time.monotonic())  # before the look, from which the pause is counted
        return take(self)

    monkeypatch.setattr(live.Live, "_take", note)
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
