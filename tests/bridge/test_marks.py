"""A mark stands on what can be acted on and is seen, once, in reading order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cua_gym.bridge.marks import Mark, mark
from cua_gym.machine.desktop import Window

SCREEN = np.full((400, 600, 3), 230, np.uint8)
Box = tuple[int, int, int, int]


def node(role: str, name: str, box: Box | None, depth: int = 2, **more: Any) -> dict[str, Any]:
    """A node as the accessibility tree gives it."""
    states = more.pop("states", ["sensitive"])
    place = None if box is None else list(box)
    return {"role": role, "name": name, "box": place, "depth": depth, "states": states, **more}


def app(*nodes: dict[str, Any], box: Box = (0, 0, 600, 400), title: str = "w") -> list[Any]:
    """One program with one window."""
    return [node("application", "prog", None, 0), node("frame", title, box, 1), *nodes]


def window(box: Box, title: str = "w", minimized: bool = False) -> Window:
    """What the window manager says of it."""
    x, y, width, height = box
    return Window(1, title, "app", 1, x, y, width, height, False, minimized, "normal")


def names(nodes: list[Any], *windows: Window) -> list[str]:
    """Names of the marks, by number."""
    _, marks = mark(SCREEN, nodes, windows)
    assert [m.number for m in marks] == list(range(1, len(marks) + 1))
    return [m.name for m in marks]


def test_reading_order_and_what_a_mark_says() -> None:
    """Top to bottom, left to right; parts of a bar count as one row despite their heights."""
    nodes = app(
        node("push button", "right", (200, 12, 30, 20)),
        node("link", "below", (10, 90, 40, 20)),
        node("entry", "left", (20, 10, 60, 26)),
    )
    _, marks = mark(SCREEN, nodes)
    assert marks == [
        Mark(1, "entry", "left", (20, 10, 60, 26)),
        Mark(2, "push button", "right", (200, 12, 30, 20)),
        Mark(3, "link", "below", (10, 90, 40, 20)),
    ]


def test_what_cannot_be_acted_on_has_no_mark() -> None:
    """Labels, panels, disabled buttons, text that is not edited, the tiny and the off-screen."""
    assert names(
        app(
            node("label", "label", (10, 10, 50, 20)),
            node("panel", "panel", (10, 40, 50, 20)),
            node("push button", "grey", (10, 70, 50, 20), states=[]),
            node("text", "said", (10, 100, 50, 20)),
            node("push button", "tiny", (10, 130, 5, 20)),
            node("push button", "off", (600, 10, 50, 20)),
            node("push button", "nowhere", (-1, -1, -1, -1)),
            node("push button", "unplaced", None),
            node("text", "typed", (10, 160, 50, 20), states=["editable", "sensitive"]),
        )
    ) == ["typed"]


def test_a_box_is_what_is_seen() -> None:
    """Clipped by the screen and by what scrolls; scrolled away is gone."""
    nodes = app(
        node("scroll pane", "", (0, 0, 100, 100)),
        node("table", "", (0, -50, 200, 900), 3),
        node("table cell", "half", (50, 80, 100, 40), 4),
        node("table cell", "away", (10, 120, 80, 20), 4),
        node("push button", "edge", (580, 380, 50, 50)),
    )
    _, marks = mark(SCREEN, nodes)
    assert [(m.name, m.box) for m in marks] == [
        ("half", (50, 80, 50, 20)),
        ("edge", (580, 380, 20, 20)),
    ]


def test_a_row_is_marked_once_by_its_words() -> None:
    """Cells and icons in a row belong to it; an empty row is none."""
    nodes = app(
        node("table cell", "", (10, 10, 200, 20)),
        node("table cell", "", (10, 10, 20, 20), 3),
        node("table cell", "Trash", (30, 10, 190, 20), 3, text="Trash"),
        node("table cell", "", (10, 40, 200, 20)),
        node("list item", "", (10, 70, 200, 20)),
        node("icon", "Add", (10, 70, 20, 20), 3),
        node("label", "Other places", (30, 70, 100, 20), 3, text="Other places"),
    )
    _, marks = mark(SCREEN, nodes)
    assert [(m.role, m.name, m.box[0]) for m in marks] == [
        ("table cell", "Trash", 10),
        ("list item", "Other places", 10),
    ]


def test_plain_text_of_a_web_page_has_no_mark() -> None:
    """Its lists and tables are mostly for reading; what can be chosen there says so."""
    assert names(
        app(
            node("document web", "", (0, 0, 600, 400)),
            node("list item", "• said", (10, 10, 200, 20), 3),
            node("link", "inside", (30, 10, 40, 20), 4),
            node("table cell", "3", (10, 40, 50, 20), 3),
            node("list item", "option", (10, 70, 99, 20), 3, states=["sensitive", "selectable"]),
            node("combo box", "\ufffc", (10, 100, 99, 20), 3),
            node("menu", "", (10, 100, 99, 12), 4),
            node("menu item", "red", (-1, -1, -1, -1), 5),
        )
    ) == ["inside", "option", "red"]


def test_containers_and_duplicates_give_way() -> None:
    """A box that its own parts fill is theirs; a part that is small leaves both."""
    assert names(
        app(
            node("combo box", "Font", (10, 10, 100, 20)),
            node("text", "", (10, 10, 80, 20), 3, text="Sans", states=["editable"]),
            node("toggle button", "", (90, 10, 20, 20), 3),
            node("push button", "twice", (10, 50, 40, 20)),
            node("push button", "again", (10, 50, 40, 20)),
            node("entry", "path", (10, 90, 400, 20)),
            node("icon", "clear", (380, 92, 16, 16), 3),
        )
    ) == ["Sans", "Font", "twice", "path", "clear"]


def test_what_another_window_covers_has_no_mark() -> None:
    """By the stack of windows; of two that lie alike the title tells; minimized is not shown."""
    low, high = (0, 0, 300, 300), (0, 0, 300, 300)
    beside = node("push button", "beside", (200, 350, 40, 20))
    nodes = [
        *app(node("push button", "under", (10, 10, 40, 20)), box=low, title="low"),
        *app(node("push button", "over", (50, 50, 40, 20)), box=high, title="high"),
        *app(beside, box=(150, 310, 200, 80), title="third"),
    ]
    third = window((150, 310, 200, 80), "third")
    assert names(nodes, window(low, "low"), window(high, "high"), third) == ["over", "beside"]
    assert names(nodes, window(high, "high"), window(low, "low"), third) == ["under", "beside"]
    hidden = window(high, "high", minimized=True)
    assert names(nodes, window(low, "low"), third, hidden)[:1] == ["under"]


def test_an_open_menu_covers_its_window() -> None:
    """Its items are outside of the bar and above everything, by no window's word."""
    nodes = app(
        node("menu bar", "", (0, 0, 600, 20)),
        node("menu", "File", (0, 0, 40, 20), 3),
        node("menu item", "Open", (0, 20, 120, 20), 4),
        node("menu item", "Quit", (0, 40, 120, 20), 4),
        node("push button", "under", (20, 30, 40, 20)),
        node("push button", "free", (300, 30, 40, 20)),
    )
    wanted = ["File", "Open", "free", "Quit"]
    assert sorted(names(nodes, window((0, 0, 600, 400)))) == sorted(wanted)
    assert sorted(names(nodes)) == sorted(wanted)


def test_the_limit_takes_the_topmost() -> None:
    """A bounded list keeps what is above."""
    nodes = [
        *app(*(node("link", f"l{i}", (5, 20 * i, 40, 10)) for i in range(9)), title="low"),
        *app(node("link", "top", (310, 10, 40, 10)), box=(300, 0, 100, 100), title="high"),
    ]
    windows = [window((0, 0, 600, 400), "low"), window((300, 0, 100, 100), "high")]
    _, marks = mark(SCREEN, nodes, windows, limit=3)
    assert sorted(m.name for m in marks) == ["l0", "l1", "top"]


def test_names_are_bounded_and_on_one_line() -> None:
    """A program's name for a thing is the program's word, and a model reads it."""
    (name,) = names(app(node("link", "a\nb " + "x" * 10_000, (5, 5, 40, 20))))
    assert len(name) == 80
    assert name.startswith("a b xxx")
    assert name.endswith("…")


def test_the_frame_given_is_left_as_it_was() -> None:
    """Boxes are drawn on a copy, in colour, and nothing of them outside box and label."""
    before = SCREEN.copy()
    drawn, _ = mark(SCREEN, app(node("link", "a", (100, 100, 60, 40))))
    assert np.array_equal(SCREEN, before)
    assert drawn.shape == SCREEN.shape
    assert (drawn[100, 130] != 230).any()
    changed = (drawn != SCREEN).any(2)
    changed[90:150, 80:180] = False
    assert not changed.any()


boxes = st.tuples(*[st.integers(-50, 650)] * 2, *[st.integers(-2, 300)] * 2)


@settings(max_examples=30)
@given(st.lists(st.tuples(boxes, st.integers(1, 6)), max_size=60))
def test_any_tree_can_be_marked(given_nodes: list[tuple[Box, int]]) -> None:
    """Hostile places and nestings: marks stay on the screen, and twice gives the same."""
    nodes = [node("application", "a", None, 0)]
    for box, depth in given_nodes:
        depth = min(depth, nodes[-1]["depth"] + 1)
        nodes.append(node("menu" if box[0] % 3 else "push button", "n", box, depth))
    first, marks = mark(SCREEN, nodes)
    again, same = mark(SCREEN, nodes)
    assert marks == same
    assert np.array_equal(first, again)
    for m in marks:
        x, y, width, height = m.box
        assert x >= 0
        assert y >= 0
        assert x + width <= 600
        assert y + height <= 400
        assert min(width, height) >= 6
