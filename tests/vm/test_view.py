"""A person in the live view, on the real desktop."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from cua_gym import actions as a
from cua_gym.bridge.serve import Served
from cua_gym.episode import Episode
from cua_gym.record.layout import RunFolder
from cua_gym.record.replay import Replay
from cua_gym.task import find_task
from tests.bridge.browser import chromium, holds, open_view, spot, take_over, until
from tests.vm.conftest import open_app

pytestmark = pytest.mark.vm

FILE = "/home/user/notes.txt"
WRITTEN = 'A person\'s line: naïve, 你好, (x > 0) && "y"\n'
AGENTS = "the agent's line"


def test_a_person_helps_out(tmp_path: Path) -> None:
    """A person takes over, clicks and types into a program, gives back; the agent goes on."""
    place = RunFolder.create(tmp_path, "run", "tidy-folder", "agent")
    episode = Episode(find_task("tidy-folder").variation(0), place, agent="agent")
    episode.prepare()
    try:
        machine = episode.machine
        machine.shell.write(FILE, b"", user="user")
        open_app(machine, f"mousepad {FILE}", "Mousepad")
        screen = {"viewport": {"width": 1400, "height": 900}}
        with (
            Served(episode) as served,
            chromium() as browser,
            open_view(browser, served, **screen) as page,
        ):
            holds(page, "canvas.width === 1280 && canvas.height === 800")
            take_over(page)
            x, y = _middle_of_window(machine.shell.run("wmctrl -lG").text)
            page.mouse.click(*spot(page, x, y))
            page.keyboard.insert_text(WRITTEN.rstrip("\n"))
            page.keyboard.press("Enter")
            page.keyboard.press("Control+s")
            until(lambda: _written(episode) == WRITTEN, "the file", 60)
            page.click("#give")
            expect(page.locator("#status")).to_have_text("The agent has the machine")
            episode.act(a.Type(AGENTS))
            episode.act(a.Key("ctrl+s"))
            until(lambda: _written(episode) == WRITTEN + AGENTS, "the agent's line too", 60)
            expect(page.locator("#steps .by.human").first).to_be_visible()
            episode.act(a.Submit())
            expect(page.locator("#ending")).to_have_text("the agent submitted")
            assert served.judged().kind == "scored"
            expect(page.locator("#outcome")).to_contain_text("scored 0")
    finally:
        episode.close()
    steps = list(Replay(place).steps())[1:]
    assert {s.by for s in steps[:-3]} == {"human"}
    assert [s.by for s in steps[-3:]] == ["agent"] * 3
    assert all(s.call is not None and s.call["bridge"] == "view" for s in steps[:-3])
    assert [s.action["type"] for s in steps if s.action][:2] == ["click", "type"]


def _written(episode: Episode) -> str:
    return episode.machine.shell.read(FILE).decode()


def _middle_of_window(listing: str) -> tuple[int, int]:
    (line,) = (line for line in listing.splitlines() if "Mousepad" in line)
    x, y, width, height = map(int, line.split()[2:6])
    return x + width // 2, y + height // 2
