"""The live view's page in a real browser: what it shows, and a person's hands on it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cua_gym import actions as a
from cua_gym.bridge import hold, view
from cua_gym.bridge.serve import Served
from tests.bridge.browser import chromium, holds, launched, open_view, spot, take_over, until
from tests.bridge.clients import lines_of, toy_of, toy_served

pytestmark = pytest.mark.slow

HOSTILE = "</script><img src=x onerror='hacked=1'><b>bold</b>\u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests; each has a profile of its own in it."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def _patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that takes presses, turns and letters for one action, though they come slowly.

    A busy host has them come a second apart.
    """
    folder = tmp_path / "page"
    folder.mkdir()
    for file in resources.files("cua_gym.bridge").iterdir():
        if file.name.startswith("view"):
            text = file.read_text("utf-8")
            slow = re.sub(r"(MERGE|REST|TYPE|WHEEL)_MS = \d+", r"\1_MS = 1000", text)
            (folder / file.name).write_text(slow, "utf-8")
    monkeypatch.setattr(view, "resources", SimpleNamespace(files=lambda _: folder))


@pytest.fixture
def served(tmp_path: Path, _patient: None) -> Iterator[Served]:
    """The toy episode, served."""
    with toy_served(tmp_path) as served:
        yield served


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """The page, opened."""
    with open_view(browser, served) as page:
        yield page


@pytest.fixture
def held(page: Page) -> Page:
    """The page of a person who has taken over."""
    take_over(page)
    return page


def done(served: Served, count: int) -> list[dict[str, Any]]:
    """The first ``count`` recorded actions of persons, waited for; there are no more."""

    def actions() -> list[dict[str, Any]]:
        return [line["action"] for line in lines_of(served) if line["by"] == "human"]

    until(lambda: len(actions()) >= count, f"{count} actions: {actions()}")
    assert len(actions()) == count
    return actions()


def pixel(page: Page, x: int, y: int) -> list[int]:
    """A pixel of the shown picture."""
    colour: list[int] = page.evaluate(f"[...brush.getImageData({x}, {y}, 1, 1).data].slice(0, 3)")
    return colour


# What is shown


def test_what_is_shown(page: Page, served: Served) -> None:
    """Screen, instruction, limits, steps and who drives; the token leaves the address bar."""
    expect(page.locator("#instruction")).to_have_text(served.session.episode.variation.instruction)
    expect(page.locator("#status")).to_have_text("The agent has the machine")
    expect(page).to_have_title("type-word · cua-gym")
    assert page.url == served.url("view")
    assert pixel(page, 120, 120) == [200, 0, 0]
    served.session.episode.act(a.Click(120, 120))
    expect(page.locator("#steps li").nth(1)).to_have_text("1click(120, 120)agent")
    holds(page, "brush.getImageData(150, 130, 1, 1).data[1] === 160")
    left = page.locator("#time-left").inner_text()
    expect(page.locator("#time-left")).not_to_have_text(left)
    served.session.episode.act(a.Click(9999, 1))
    expect(page.locator("#steps .error")).to_contain_text("is off the 640x480 screen")
    page.reload()
    expect(page.locator("#steps li")).to_have_count(3)
    assert page.context.cookies() == []


def test_hostile_text_is_text(page: Page, served: Served) -> None:
    """Markup typed by an agent or named by a guest stays what it is."""
    served.session.episode.act(a.Type(HOSTILE))
    served.session.episode.act(a.Key(HOSTILE))
    expect(page.locator("#steps li")).to_have_count(3)
    assert "<img src=x onerror='hacked=1'>" in page.locator("#steps").inner_text()
    assert page.locator("#steps img, #steps script, #steps .how b").count() == 0
    assert page.evaluate("typeof hacked") == "undefined"


def test_recorded_frames(page: Page, served: Served) -> None:
    """A step's recorded picture is shown on a click, and the live one after it."""
    served.session.episode.act(a.Click(120, 120))
    holds(page, "brush.getImageData(150, 130, 1, 1).data[1] === 160")
    page.click("#steps li:first-child button")
    holds(page, "brush.getImageData(150, 130, 1, 1).data[1] === 0")
    expect(page.locator("#recorded-step")).to_have_text("Recorded at step 0")
    expect(page.locator("[aria-current]")).to_have_count(1)
    page.click("#live")
    holds(page, "brush.getImageData(150, 130, 1, 1).data[1] === 160")


def test_without_a_valid_token(browser: Browser, served: Served) -> None:
    """Who has no token is told so and sees nothing."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{served.url('view')}#wrong")
    expect(page.locator("#status")).to_have_text("This link is not valid any more")
    expect(page.locator("#take")).to_be_disabled()
    context.close()


def test_accessible(page: Page) -> None:
    """Buttons have names, status is told, and the keyboard alone can take over and give back."""
    buttons = page.get_by_role("button").all()
    assert all(button.inner_text().strip() for button in buttons)
    expect(page.get_by_role("status")).to_be_visible()
    page.locator("#take").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#keys")).to_be_focused()
    page.keyboard.down("Control")
    page.keyboard.down("Alt")
    page.keyboard.up("Alt")
    page.keyboard.up("Control")
    expect(page.locator("#give")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#keys")).to_be_focused()
    page.locator("#give").press("Enter")
    expect(page.locator("#take")).to_be_focused()
    expect(page.locator("#status")).to_have_text("The agent has the machine")


# A person's hands


@pytest.mark.parametrize(
    ("width", "ratio", "zoom"),
    [(1400, 1.0, 1.0), (801, 1.25, 1.0), (500, 2.0, 1.0), (1000, 1.5, 0.9)],
)
def test_exact_pixels(
    browser: Browser, served: Served, width: int, ratio: float, zoom: float
) -> None:
    """A click hits the native pixel that it points at, at every scale and zoom."""
    options = {"viewport": {"width": width, "height": 700}, "device_scale_factor": ratio}
    with open_view(browser, served, **options) as page:
        page.evaluate(f"document.documentElement.style.zoom = {zoom}")
        take_over(page)
        points = [(0, 0), (639, 479), (639, 0), (0, 479), (123, 321)]
        for n, point in enumerate(points, 1):
            page.mouse.click(*spot(page, *point))
            action = done(served, n)[-1]
            assert (action["type"], action["x"], action["y"]) == ("click", *point)


def test_clicks(held: Page, served: Served) -> None:
    """Double and triple clicks are one action; other buttons and modifiers are told."""
    here, there = spot(held, 120, 120), spot(held, 300, 200)
    held.mouse.dblclick(*here)
    done(served, 1)
    held.mouse.click(*there, click_count=3)
    done(served, 2)
    held.mouse.click(*here, button="right")
    held.mouse.click(*there, button="middle")
    held.keyboard.down("Control")
    held.mouse.click(*here)
    held.keyboard.up("Control")
    plain = {"type": "click", "x": 120, "y": 120, "button": "left", "count": 1, "modifiers": []}
    far = plain | {"x": 300, "y": 200}
    assert done(served, 5) == [
        plain | {"count": 2},
        far | {"count": 3},
        plain | {"button": "right"},
        far | {"button": "middle"},
        plain | {"modifiers": ["ctrl"]},
    ]


def test_drag(held: Page, served: Served) -> None:
    """Press, move, release is a drag along the way; Shift is held during it when it was."""
    held.mouse.move(*spot(held, 10, 10))
    held.keyboard.down("Shift")
    held.mouse.down()
    for x in range(20, 401, 10):
        held.mouse.move(*spot(held, x, 100))
    held.mouse.move(*spot(held, 400, 300), steps=5)
    held.mouse.up()
    held.keyboard.up("Shift")
    down, drag, up = done(served, 3)
    assert (down, up) == ({"type": "key_down", "key": "shift"}, {"type": "key_up", "key": "shift"})
    assert drag["path"][0] == [10, 10]
    assert drag["path"][-1] == [400, 300]
    assert len(drag["path"]) <= 102
    assert [400, 100] in drag["path"]
    assert not toy_of(served).held[0]


def test_wheel_and_hover(held: Page, served: Served) -> None:
    """Wheel turns are added up to notches; a resting pointer moves the guest's."""
    held.mouse.move(*spot(held, 50, 60))
    for _ in range(3):
        held.mouse.wheel(0, 120)
    assert done(served, 1) == [{"type": "scroll", "x": 50, "y": 60, "dx": 0, "dy": 3}]
    for _ in range(2):
        held.mouse.wheel(-120, 0)
    assert done(served, 2)[1] == {"type": "scroll", "x": 50, "y": 60, "dx": -2, "dy": 0}
    held.mouse.move(*spot(held, 70, 80), steps=3)
    assert done(served, 3)[2] == {"type": "move", "x": 70, "y": 80}


def test_keys_in_order(held: Page, served: Served) -> None:
    """Text, keys, chords and clicks come in the order in which they were made."""
    held.evaluate("addEventListener('keydown', (e) => (window.kept = e.defaultPrevented))")
    held.keyboard.type("Hello, W")
    held.keyboard.press("Backspace")
    held.keyboard.press("Control+s")
    assert held.evaluate("kept")
    held.mouse.click(*spot(held, 120, 120))
    held.keyboard.type("é你😀")
    held.keyboard.press("Tab")
    assert held.evaluate("kept")
    held.keyboard.press("Control+Shift+PageDown")
    held.keyboard.press("F5")
    held.keyboard.press("Shift+ArrowLeft")
    held.keyboard.press("Alt+F4")
    held.keyboard.press("Control+Shift+!")
    held.keyboard.press("Meta")
    held.keyboard.type("end")
    said = [x.get("text") or x.get("combo") or x["type"] for x in done(served, 13)]
    assert said == [
        "Hello, W", "backspace", "ctrl+s", "click", "é你😀", "tab", "ctrl+shift+page_down", "f5",
        "shift+left", "alt+f4", "ctrl+shift+1", "super", "end",
    ]  # fmt: skip
    expect(held.locator("#keys")).to_be_focused()


def test_input_method_and_paste(held: Page, served: Served) -> None:
    """What an input method composes is typed once, when it is chosen; pasted text is typed."""
    wire = held.context.new_cdp_session(held)
    for part in ("n", "ni", "你"):
        wire.send("Input.imeSetComposition", {"text": part, "selectionStart": 1, "selectionEnd": 1})
    wire.send("Input.insertText", {"text": "你好"})
    assert done(served, 1) == [{"type": "type", "text": "你好"}]
    held.evaluate(
        "() => { const data = new DataTransfer(); data.setData('text/plain', 'a\\r\\nb ü');"
        "$('keys').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data})); }"
    )
    assert done(served, 2)[1] == {"type": "type", "text": "a\nb ü"}
    held.click("#paste")
    held.fill("#ask-text", "line\nnext")
    held.click("#ask-yes")
    assert done(served, 3)[2] == {"type": "type", "text": "line\nnext"}
    held.keyboard.press("Control+v")
    assert done(served, 4)[3] == {"type": "key", "combo": "ctrl+v"}


def test_nothing_is_done_unless_taken_over(page: Page, served: Served) -> None:
    """Clicks, keys and wheel on a page that only watches change nothing."""
    page.mouse.click(*spot(page, 120, 120))
    page.keyboard.type("no")
    page.mouse.wheel(0, 120)
    take_over(page)
    page.keyboard.type("yes")
    assert done(served, 1) == [{"type": "type", "text": "yes"}]
    page.click("#give")
    page.wait_for_selector("#take")
    page.keyboard.type("no")
    served.session.episode.act(a.Type("agent"))
    assert toy_of(served).typed == "yesagent"
    done(served, 1)


def test_no_menu_of_the_browser(held: Page) -> None:
    """The context menu stays away while the machine is held."""
    held.evaluate("addEventListener('contextmenu', (e) => (window.kept = e.defaultPrevented))")
    held.mouse.click(*spot(held, 5, 5), button="right")
    holds(held, "window.kept === true")


def test_the_past_is_not_clicked_on(held: Page, served: Served) -> None:
    """A click on a recorded picture leads back to the live one and does nothing else."""
    held.click("#steps li button")
    expect(held.locator("#recorded")).to_be_visible()
    held.mouse.click(*spot(held, 120, 120))
    expect(held.locator("#recorded")).to_be_hidden()
    held.keyboard.type("now")
    assert done(served, 1) == [{"type": "type", "text": "now"}]


# Two persons, and pages that go away


def test_a_second_person(browser: Browser, served: Served, held: Page) -> None:
    """The other page sees that a person has the machine, and can have it afterwards."""
    with open_view(browser, served) as other:
        expect(other.locator("#status")).to_have_text("A person has the machine")
        expect(other.locator("#take")).to_be_disabled()
        held.keyboard.type("mine")
        expect(other.locator("#steps .by.human")).to_have_text(["person"])
        held.click("#give")
        other.click("#take")
        expect(other.locator("#status")).to_have_text("You have the machine")
        expect(held.locator("#status")).to_have_text("A person has the machine")


@pytest.mark.parametrize("leave", [lambda p: p.reload(), lambda p: p.close()])
def test_a_closed_page(held: Page, served: Served, leave: Callable[[Page], Any]) -> None:
    """Closing or reloading the page gives the machine back at once."""
    turns = served.session.episode.turns
    assert turns.held
    leave(held)
    until(lambda: not turns.held, "given back")


def test_a_killed_browser(
    browser: Browser, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody says good-bye, and the machine is given back all the same."""
    now = [0.0]  # a page that lives has all the time
    monkeypatch.setattr(hold, "time", SimpleNamespace(monotonic=lambda: now[0]))
    turns = served.session.episode.turns
    with launched(browser.browser_type) as other:
        page = other.new_page()
        page.goto(served.view_link)
        take_over(page)
        wire = other.new_browser_cdp_session()
        processes = wire.send("SystemInfo.getProcessInfo")["processInfo"]
        (pid,) = (p["id"] for p in processes if p["type"] == "browser")
        assert turns.held
        os.kill(pid, signal.SIGKILL)

        def given_back() -> bool:
            now[0] += hold.LAPSE_S / 10  # what it had asked may still be heard
            return not turns.held

        until(given_back, "given back")
    served.session.episode.act(a.Type("agent"))


# The end


def test_submit(held: Page, served: Served) -> None:
    """A person submits with an answer; the page shows the end, and the score after the verdict."""
    held.keyboard.type(served.session.episode.variation.params["word"])
    held.keyboard.press("Control+s")
    held.click("#submit")
    held.fill("#ask-text", "42")
    held.click("#ask-yes")
    expect(held.locator("#status")).to_have_text("Over")
    expect(held.locator("#ending")).to_have_text("a person submitted: 42")
    expect(held.locator("#outcome")).to_have_text("Being judged …")
    expect(held.locator("#take")).to_be_hidden()
    assert done(served, 3)[2] == {"type": "submit", "answer": "42"}
    assert served.judged().score == 1.0
    expect(held.locator("#outcome")).to_have_text("scored 1.0 (success)")


def test_give_up_and_think_again(held: Page, served: Served) -> None:
    """A dialog that is left ends nothing; giving up wants a reason."""
    held.click("#submit")
    held.click("#ask-no")
    held.click("#give-up")
    held.click("#ask-yes")
    expect(held.locator("#ask")).to_be_visible()
    held.fill("#ask-text", "no way")
    held.click("#ask-yes")
    expect(held.locator("#ending")).to_have_text("a person gave up: no way")
    assert done(served, 1) == [{"type": "give_up", "reason": "no way"}]


def test_lost_connection(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection is told and found again; when the server has gone it is over."""
    monkeypatch.setattr(hold, "LAPSE_S", 300.0)  # a busy browser may be away for long
    context = browser.new_context()
    page = context.new_page()
    status = page.locator("#status")
    with toy_served(tmp_path) as served:
        page.goto(served.view_link)
        take_over(page)
        context.set_offline(True)
        expect(status).to_have_text("Connection lost, trying again …")
        expect(page.locator("#mine")).to_be_hidden()
        context.set_offline(False)
        expect(status).to_have_text("You have the machine")
        page.keyboard.type("again")
        done(served, 1)
    expect(status).to_have_text("Over, and no longer served")
    expect(page.locator("#mine")).to_be_hidden()
    context.close()
