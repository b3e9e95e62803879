"""The tools of the desktop bridge: each does what it says, and refuses what cannot be."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cua_gym.errors import MachineError
from cua_gym.machine import desktop
from cua_gym.machine.base import Button, Shell
from tests.bridge.clients import facts_of, lines_of, picture_of, refusal_of, text_of, toy_of
from tests.bridge.conftest import Pair

SIZE = (640, 480)


def picture(answer: Any) -> Image.Image:
    """The frame of an answer."""
    return Image.open(io.BytesIO(base64.b64decode(picture_of(answer).data)))


def test_a_picture_is_what_the_machine_shows(quick: Pair) -> None:
    """A screenshot is the native screen, pixel for pixel."""
    answer = quick.desktop.call("screenshot")
    assert np.array_equal(np.asarray(picture(answer)), toy_of(quick.served).grab().rgb)
    assert facts_of(answer)["region"] == [0, 0, *SIZE]
    assert facts_of(answer)["scale"] == 1.0


def test_a_part_of_the_screen_and_a_smaller_picture(quick: Pair) -> None:
    """What was really shown stands beside the picture: the region cut at the edge, the scale."""
    answer = quick.desktop.call("screenshot", region=[600, 400, 10**30, 80], scale=0.5)
    assert facts_of(answer)["region"] == [600, 400, 40, 80]
    assert picture(answer).size == (20, 40)


@pytest.mark.parametrize(
    ("tool", "arguments", "events"),
    [
        ("move", {"x": 5, "y": 6}, ["pointer 5 6 0"]),
        ("click", {"x": 7, "y": 8}, ["pointer 7 8 0", "pointer 7 8 1", "pointer 7 8 0"]),
        ("click", {"x": 7, "y": 8, "button": "right", "modifiers": ["ctrl"]},
         ["pointer 7 8 0", "key ctrl down", "pointer 7 8 4", "pointer 7 8 0", "key ctrl up"]),
        ("scroll", {"x": 9, "y": 9, "dy": 1}, ["pointer 9 9 0", "pointer 9 9 16", "pointer 9 9 0"]),
        ("scroll", {"x": 9, "y": 9, "dx": -1},
         ["pointer 9 9 0", "pointer 9 9 32", "pointer 9 9 0"]),
        ("key", {"combo": "ctrl+k"}, ["key ctrl down", "key k down", "key k up", "key ctrl up"]),
        ("key_down", {"key": "shift"}, ["key shift down"]),
        ("key_up", {"key": "shift"}, ["key shift up"]),
    ],
)  # fmt: skip
def test_what_reaches_the_machine(
    quick: Pair, tool: str, arguments: dict[str, Any], events: list[str]
) -> None:
    """Each tool presses exactly what it says."""
    toy = toy_of(quick.served)
    toy.events.clear()
    facts_of(quick.desktop.call(tool, **arguments))
    assert toy.events == events


def test_a_button_and_a_key_stay_down_until_they_are_let_go(quick: Pair) -> None:
    """mouse_down and key_down hold over other calls."""
    toy = toy_of(quick.served)
    facts_of(quick.desktop.call("key_down", key="alt"))
    facts_of(quick.desktop.call("mouse_down", button="middle"))
    facts_of(quick.desktop.call("move", x=30, y=30))
    assert toy.held == (frozenset({"alt"}), Button.MIDDLE)
    facts_of(quick.desktop.call("mouse_up", button="middle"))
    facts_of(quick.desktop.call("key_up", key="alt"))
    assert toy.held == (frozenset(), Button.NONE)


def test_drag_passes_its_path(quick: Pair) -> None:
    """Pressed at the first point, let go at the last."""
    toy = toy_of(quick.served)
    toy.events.clear()
    facts_of(quick.desktop.call("drag", path=[[10, 300], [40, 300], [40, 330]]))
    assert toy.events[0] == "pointer 10 300 0"
    assert toy.events[1] == "pointer 10 300 1"
    assert "pointer 40 300 1" in toy.events
    assert toy.events[-1].endswith("330 0")


def test_type_takes_any_text(quick: Pair) -> None:
    """What was typed is on the machine, character by character."""
    facts_of(quick.desktop.call("type", text="Usuários 你好 🙂\n"))
    assert toy_of(quick.served).typed.endswith("Usuários 你好 🙂\n")


def test_where_the_pointer_is_and_how_large_the_screen(quick: Pair) -> None:
    """Both without a picture, in native pixels."""
    facts_of(quick.desktop.call("move", x=11, y=12))
    answer = quick.desktop.call("cursor_position")
    assert (facts_of(answer)["x"], facts_of(answer)["y"], len(answer.content)) == (11, 12, 1)
    size = facts_of(quick.desktop.call("screen_size"))
    assert (size["width"], size["height"]) == SIZE


@pytest.mark.parametrize("until_settled", [False, True])
def test_wait_shows_the_screen_afterwards(quick: Pair, until_settled: bool) -> None:
    """Waiting answers with the frame of then."""
    answer = quick.desktop.call("wait", seconds=0.05, until_settled=until_settled)
    assert picture(answer).size == SIZE


def test_only_what_acts_is_counted(quick: Pair) -> None:
    """Looking costs no step; acting costs one, and so does what was impossible."""
    left = facts_of(quick.desktop.call("status"))["steps_left"]
    for tool in ("screenshot", "cursor_position", "screen_size", "status"):
        assert facts_of(quick.desktop.call(tool))["steps_left"] == left
    assert facts_of(quick.desktop.call("move", x=1, y=1))["steps_left"] == left - 1
    refusal_of(quick.desktop.call("move", x=1, y=480))
    assert facts_of(quick.desktop.call("status"))["steps_left"] == left - 2


def test_an_action_for_a_frame_that_is_no_more_is_refused(quick: Pair) -> None:
    """It says so and shows the screen of now; for the frame of now it is done."""
    toy = toy_of(quick.served)
    seen = facts_of(quick.desktop.call("screenshot"))["frame"]
    toy.text("x")  # the screen changes by itself
    toy.events.clear()
    answer = quick.desktop.call("click", x=20, y=20, frame=seen)
    assert "stale" in refusal_of(answer)
    assert not toy.events
    now = (answer.structured_content or {})["frame"]
    assert now == toy.serial
    assert picture(answer).size == SIZE
    facts_of(quick.desktop.call("click", x=20, y=20, frame=now))
    assert toy.events


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("click", {"x": 1}, "y: Field required"),
        ("click", {"x": 1, "y": 1, "z": 1}, "z: Extra inputs"),
        ("click", {"x": "left", "y": 1}, "x: "),
        ("click", {"x": True, "y": 1}, "x cannot be true or false"),
        ("click", {"x": 1.5, "y": 1}, "x: "),
        ("click", {"x": None, "y": 1}, "x: "),
        ("click", {"x": [1], "y": 1}, "x: "),
        ("click", {"x": 640, "y": 1}, "off the"),
        ("click", {"x": 10**30, "y": -(10**30)}, "off the"),
        ("click", {"x": 1, "y": 1, "button": "wheel"}, "button: "),
        ("click", {"x": 1, "y": 1, "count": 4}, "from 1 to 3"),
        ("click", {"x": 1, "y": 1, "count": True}, "count cannot be true or false"),
        ("click", {"x": 1, "y": 1, "modifiers": ["nosuch"]}, "nosuch"),
        ("scroll", {"x": 1, "y": 1, "dy": 10**9}, "from -100 to 100"),
        ("drag", {"path": [[1, 1]]}, "at least two"),
        ("drag", {"path": [[1, 1], [2, 480]]}, "off the"),
        ("drag", {"path": [[1, 1], [2, True]]}, "path cannot be true or false"),
        ("key", {"combo": "contrl+s"}, "did you mean"),
        ("key", {"combo": ""}, "empty key chord"),
        ("type", {"text": 7}, "text: "),
        ("wait", {"seconds": 61}, "from 0 to 60"),
        ("wait", {"seconds": "NaN"}, "from 0 to 60"),
        ("wait", {"seconds": -1, "until_settled": True}, "from 0 to 60"),
        ("wait", {"seconds": 1e308, "until_settled": True}, "from 0 to 60"),
        ("screenshot", {"region": [0, 0, 0, 5]}, "empty"),
        ("screenshot", {"region": [640, 0, 5, 5]}, "off the"),
        ("screenshot", {"region": [1, 2]}, "region"),
        ("screenshot", {"scale": 0}, "above 0"),
        ("screenshot", {"scale": 1.01}, "at most 1"),
        ("give_up", {}, "reason: Field required"),
        ("status", {"x": 1}, "x: Extra inputs"),
        ("clik", {}, "try click"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_told_and_nothing_is_done(
    quick: Pair, tool: str, arguments: dict[str, Any], why: str
) -> None:
    """A wrong argument is an answer that names it; the session goes on."""
    toy = toy_of(quick.served)
    toy.events.clear()
    assert why in refusal_of(quick.desktop.call(tool, **arguments))
    assert not toy.events
    assert quick.served.session.episode.outcome is None


def test_what_programs_say_is_on_the_screen(quick: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree is filtered, and one that is too long for an answer is cut and says so."""
    nodes = [
        {"role": "application", "name": "Editor", "depth": 0, "box": [0, 0, 640, 480]},
        {"role": "push button", "name": "Save", "depth": 1, "box": [10, 10, 50, 20]},
    ]
    monkeypatch.setattr(desktop, "accessibility_tree", lambda *_, **__: nodes)
    facts = facts_of(quick.desktop.call("accessibility_tree", role="push button"))
    assert [node["name"] for node in facts["nodes"]] == ["Save"]
    assert facts["left_out"] == 0

    name = '你"\x01' * 100
    nodes += [{"role": "label", "name": name, "depth": 1, "box": [0, 0, 9, 9], "text": name}] * 500
    answer = quick.desktop.call("accessibility_tree")
    facts = facts_of(answer)
    assert len(facts["nodes"]) + facts["left_out"] == 502
    assert len(facts["nodes"]) > 100
    assert json.loads(text_of(answer))["nodes"] == facts["nodes"]


def test_windows_are_listed(quick: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bottom to top, with boxes in native pixels."""
    one = desktop.Window(7, "Notes", "mousepad", 1, 10, 20, 300, 200, True, False, "normal")
    monkeypatch.setattr(desktop, "windows", lambda *_: [one])
    assert facts_of(quick.desktop.call("windows"))["windows"] == [
        {"title": "Notes", "app": "mousepad", "type": "normal", "box": [10, 20, 300, 200],
         "active": True, "minimized": False}
    ]  # fmt: skip


def test_marks_are_numbered_and_listed(quick: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list says what the numbers stand for; a name of any length and content is told."""
    long = "x" * 100_000 + "\ud800"
    nodes = [
        {"role": "frame", "name": "Editor", "depth": 0, "box": [0, 0, 640, 480], "states": []},
        {"role": "push button", "name": "Save\ud800", "depth": 1, "box": [10, 10, 50, 20],
         "states": ["enabled", "sensitive", "showing", "visible"]},
        {"role": "push button", "name": long, "depth": 1, "box": [10, 90, 50, 20],
         "states": ["enabled", "sensitive", "showing", "visible"]},
    ]  # fmt: skip
    monkeypatch.setattr(desktop, "accessibility_tree", lambda *_, **__: nodes)
    monkeypatch.setattr(desktop, "windows", lambda *_: [])
    answer = quick.desktop.call("marks")
    marks = facts_of(answer)["marks"]
    assert [(m["number"], m["name"][:5], m["box"]) for m in marks] == [
        (1, "Save?", [10, 10, 50, 20]),
        (2, "xxxxx", [10, 90, 50, 20]),
    ]
    assert picture(answer).size == SIZE
    assert len(text_of(answer)) < 1000


def test_the_clipboard_is_read_and_set(quick: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text goes both ways; one of another kind or length is told as far as it can be."""
    held: list[str] = []

    def put(shell: Shell, text: str, *rest: Any) -> None:
        held.append(text)

    monkeypatch.setattr(desktop, "set_clipboard", put)
    monkeypatch.setattr(desktop, "clipboard", lambda *_: held[-1] if held else None)
    assert facts_of(quick.desktop.call("clipboard_get"))["clipboard"] is None
    facts_of(quick.desktop.call("clipboard_set", text="Usuários 你好"))
    assert text_of(quick.desktop.call("clipboard_get")) == "Usuários 你好"
    held.append("\udcff" + "\x01" * 10_000_000)
    facts = facts_of(quick.desktop.call("clipboard_get"))
    assert facts["clipboard"].startswith("�\x01")
    assert len(facts["clipboard"]) + facts["left_out"] == 10_000_001
    assert len(json.dumps(lines_of(quick.served)[-1])) < 1 << 20


@pytest.mark.parametrize("tool", ["clipboard_get", "accessibility_tree", "marks"])
def test_a_desktop_that_is_silent_is_no_fault_of_ours(
    quick: Pair, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """An agent may have stopped the programs that would answer."""

    def silent(*words: Any, **more: Any) -> Any:
        raise desktop.DesktopSilent("nobody answers")

    monkeypatch.setattr(desktop, "clipboard", silent)
    monkeypatch.setattr(desktop, "accessibility_tree", silent)
    assert "nobody answers" in refusal_of(quick.desktop.call(tool))
    assert quick.served.session.episode.outcome is None
    assert issubclass(desktop.DesktopSilent, MachineError)
