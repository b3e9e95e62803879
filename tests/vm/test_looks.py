"""What an agent is told beside the picture, against a real desktop."""

from __future__ import annotations

import pytest

from cua_gym.bridge.marks import mark
from cua_gym.machine import desktop
from cua_gym.machine.base import Machine
from tests.vm.conftest import open_app

pytestmark = pytest.mark.vm


def test_the_tree_has_the_panel_on_the_screen(shared: Machine) -> None:
    """Its starters are there, by name, each with a box at the foot of the screen."""
    tree = desktop.accessibility_tree(shared.shell)
    width, height = shared.screen.size
    found = desktop.filter_tree(tree, role="push button", app="panel", screen=(width, height))
    assert found.left_out == 0
    assert {n["name"] for n in found.nodes} >= {"Mousepad", "Xfce Terminal"}
    for node in found.nodes:
        x, y, w, h = node["box"]
        assert height - 60 < y
        assert y + h <= height
        assert x >= 0
        assert x + w <= width


def test_a_file_manager_has_marks(shared: Machine) -> None:
    """Menus, buttons, the places and the panel, once each; nothing of what its window covers."""
    shared.shell.run("mkdir -p ~/Documents")
    open_app(shared, "thunar /home/user/Documents", "Documents")
    assert desktop.wait_idle(shared.shell, 120)
    try:
        tree = desktop.accessibility_tree(shared.shell)
        rgb = shared.screen.grab().rgb
        drawn, marks = mark(rgb, tree, desktop.windows(shared.shell))
    finally:
        shared.shell.run("wmctrl -c Documents")
    named = [(m.role, m.name) for m in marks]
    wanted = {
        ("menu", "File"),
        ("push button", "Home"),
        ("text", "/home/user/Documents/"),
        ("table cell", "Trash"),
        ("push button", "Mousepad"),
    }
    assert wanted <= set(named)
    assert len(set(named)) == len(named)
    assert drawn.shape == rgb.shape
    (trash,) = (m for m in marks if m.name == "Trash")
    x, y, w, _ = trash.box
    assert (drawn[y, x : x + w] != rgb[y, x : x + w]).any()


@pytest.mark.parametrize(
    "text", ["Usuários 你好 🎹", "", "two\nlines\n", "$HOME `x` 'q' \\n", "z🎹" * 200_000],
    ids=["unicode", "empty", "lines", "shell", "1 MB"],
)  # fmt: skip
def test_the_clipboard_round_trips(shared: Machine, text: str) -> None:
    """Exactly, and it outlives the command that set it."""
    desktop.set_clipboard(shared.shell, text)
    assert desktop.clipboard(shared.shell) == text
    assert desktop.clipboard(shared.shell) == text
