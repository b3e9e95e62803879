"""What a model is told of the desktop: the tree's places, and a part of it of a bounded size."""

from __future__ import annotations

from typing import Any

import pytest

from cua_gym.errors import ActionError
from cua_gym.machine.base import Shell
from cua_gym.machine.desktop import filter_tree, set_clipboard
from cua_gym.machine.desktop_guest import straighten


def node(
    role: str, name: str, depth: int, box: list[int] | None = None, **more: Any
) -> dict[str, Any]:
    """A node as the guest gives it."""
    return {"role": role, "name": name, "depth": depth, "states": [], "box": box, **more}


TREE = [
    node("application", "Thunar", 0),
    node("frame", "Documents", 1, [0, 0, 100, 100]),
    node("push button", "Save AS", 2, [5, 5, 10, 10]),
    node("text", "", 2, [-20, 0, 10, 10], text="(a+)+$"),
    node("application", "soffice", 0),
    node("push button", "save", 1, [90, 0, 300, 20], text="n" * 5000),
]


def names(**wanted: Any) -> list[str]:
    """Names of the nodes that fit."""
    return [n["name"] for n in filter_tree(TREE, **wanted).nodes]


def test_a_filter_is_by_role_name_and_app() -> None:
    """The role exactly, the others as a part in any case, never a pattern; text counts too."""
    assert names() == ["Thunar", "Documents", "Save AS", "", "soffice", "save"]
    assert names(role="push button") == ["Save AS", "save"]
    assert names(role="button") == []
    assert names(name="SAVE") == ["Save AS", "save"]
    assert names(name="save", app="office") == ["save"]
    assert names(name="(a+)+$") == [""]
    assert names(screen=(100, 100)) == ["Documents", "Save AS", "save"]
    assert names(screen=(90, 100)) == ["Documents", "Save AS"]


def test_a_node_says_whose_it_is_and_the_tree_is_left_alone() -> None:
    """``app`` is added to copies."""
    assert [n["app"] for n in filter_tree(TREE, role="push button").nodes] == ["Thunar", "soffice"]
    assert "app" not in TREE[2]


def test_the_answer_is_bounded_and_says_what_is_left_out() -> None:
    """The first ones in the tree's order, long texts cut."""
    found = filter_tree(TREE, limit=2, max_text=5)
    assert [n["name"] for n in found.nodes] == ["Thun…", "Docu…"]
    assert found.left_out == 4
    (long,) = filter_tree(TREE, name="nnn", max_text=50).nodes
    assert len(long["text"]) == 50


def test_libreoffices_boxes_are_put_right() -> None:
    """Its root pane forgets the menu bar's 27 pixels; GTK widgets in it are right again."""
    root = {**node("panel", "", 0, [0, 51, 1280, 712]), "parent": None}
    pane = {**node("root pane", "", 1, [0, 24, 1280, 712]), "parent": root}
    bold = {**node("toggle button", "Bold", 2, [328, 65, 33, 35]), "parent": pane}
    holder = {**node("panel", "", 2, [4, 65, 207, 34]), "parent": pane}
    gtk = {**node("panel", "", 3, [4, 92, 207, 34]), "parent": holder}
    font = {**node("text", "", 4, [4, 92, 171, 34]), "parent": gtk}
    nowhere = {**node("page tab", "", 2, [-1, -1, -1, -1]), "parent": pane}
    unplaced = {**node("label", "", 2, None), "parent": pane}
    straighten([root, pane, bold, holder, gtk, font, nowhere, unplaced])
    assert [n["box"] for n in (root, pane)] == [[0, 51, 1280, 712]] * 2
    assert bold["box"] == [328, 92, 33, 35]
    assert [n["box"] for n in (holder, gtk)] == [[4, 92, 207, 34]] * 2
    assert font["box"] == [4, 92, 171, 34]
    assert (nowhere["box"], unplaced["box"]) == ([-1, -1, -1, -1], None)


def test_other_boxes_are_left_alone() -> None:
    """A root pane that lies right, or has another size, shifts nothing."""
    for place in ([0, 0, 100, 100], [0, 20, 100, 80]):
        root = {**node("frame", "", 0, [0, 0, 100, 100]), "parent": None}
        pane = {**node("root pane", "", 1, place), "parent": root}
        child = {**node("label", "", 2, [3, 4, 5, 6]), "parent": pane}
        straighten([root, pane, child])
        assert child["box"] == [3, 4, 5, 6]


def test_what_is_no_unicode_never_reaches_the_clipboard() -> None:
    """A lone surrogate is the agent's mistake; nothing was asked of the guest."""
    nobody: Shell = None  # type: ignore[assignment]
    with pytest.raises(ActionError, match="no Unicode"):
        set_clipboard(nobody, "a\ud800")
