"""Windows, settings, default applications."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym.errors import GradingError
from cua_gym.grading.check import Fails
from evaluators.desktop import parse_gvariant

from .conftest import Judge


def windows(**changes: Any) -> str:
    """One window's record, as it is collected."""
    window = {
        "id": 1, "title": "note.txt - Editor", "app": "Editor", "pid": 7, "x": 10, "y": 50,
        "width": 630, "height": 700, "active": True, "minimized": False, "type": "normal",
    }  # fmt: skip
    return json.dumps([window | changes])


def test_windows_are_found_by_whole_title(judge: Judge):
    """A part of a title, another program and a minimized window do not count."""
    shown, minimized = windows(), windows(minimized=True)
    title = r"note\.txt - Editor"
    assert judge("desktop.window", shown, title=title, app="Editor").passed
    assert not judge("desktop.window", minimized, title=title).passed
    assert judge("desktop.window", minimized, title=title, shown=False).passed
    assert not judge("desktop.window", shown, title="note").passed
    assert not judge("desktop.window", shown, title=title, app="Edit").passed
    assert not judge("desktop.no_window", minimized, title=".*Editor").passed
    assert judge("desktop.no_window", minimized, title="Editor").passed
    assert not judge("desktop.window", windows(title=[110, 111]), title=title).passed
    assert not judge("desktop.window", None, title=title).passed
    assert not judge("desktop.no_window", None, title=title).passed


def test_a_windows_place_and_keyboard_are_declared(judge: Judge):
    """Each side within the tolerance."""
    left = {"title": ".*Editor", "box": [0, 48, 640, 700], "tolerance": 10}
    assert judge("desktop.window", windows(), **left).passed
    assert not judge("desktop.window", windows(x=11), **left).passed
    assert not judge("desktop.window", windows(width=651), **left).passed
    assert not judge("desktop.window", windows(), **{**left, "tolerance": 9}).passed
    assert judge("desktop.window", windows(), title=".*", active=True).passed
    assert not judge("desktop.window", windows(active=False), title=".*", active=True).passed
    with pytest.raises(GradingError, match="x, y, width, height"):
        judge("desktop.window", windows(), title=".*", box=[1, 2])


@pytest.mark.usefixtures("hurried")
def test_a_title_that_takes_for_ever_to_match_is_a_plain_fail(judge: Judge):
    """A web page chooses its window's title."""
    for name in ("desktop.window", "desktop.no_window"):
        found = judge(name, windows(title="a" * 50), title="(a+)+b")
        assert not found.passed
        assert "over 0.2 s" in found.message


@pytest.mark.parametrize(
    ("printed", "wanted", "passed"),
    [
        ("4\n", 4, True),
        ("4", "4", True),
        ("1.500000\n", 1.5, True),
        ("true\n", True, True),
        ("True", True, False),
        ("1", True, False),
        ("", False, False),
        ("", 0, False),
        ("nan", 0, False),
        ("44", 4, False),
        ("04", 4, False),
        ("4 workspaces", 4, False),
        ("Default-hdpi", "Default", False),
        ("default", "Default", False),
    ],
)
def test_a_setting_is_all_that_was_printed(judge: Judge, printed: str, wanted: Any, passed: bool):
    """A number as a number, text as text, nothing around it."""
    assert judge("desktop.setting", printed, expected=wanted).passed is passed


def test_a_list_of_xfconf_is_all_its_items(judge: Judge):
    """As many as it says, in order."""
    printed = "Value is an array with 2 items:\n\nMain\nMail 2\n"
    rule = {"form": "xfconf", "expected": ["Main", "Mail 2"]}
    assert judge("desktop.setting", printed, **rule).passed
    assert judge("desktop.setting", "Value is an array with 1 items:\n\n5", form="xfconf",
                 expected=[5]).passed  # fmt: skip
    for other in (
        printed.replace("2 items", "3 items"),
        printed.replace("Mail 2", "Mail"),
        printed.replace("Main\nMail 2", "Mail 2\nMain"),
        printed + "Third",
        "Main\nMail 2",
        "",
        None,
    ):
        assert not judge("desktop.setting", other, **rule).passed
    with pytest.raises(GradingError, match="plain has none"):
        judge("desktop.setting", printed, expected=["Main", "Mail 2"])


@pytest.mark.parametrize(
    ("printed", "value"),
    [
        ("'Adwaita-dark'\n", "Adwaita-dark"),
        ('"it\'s"', "it's"),
        (r"'a\'b\\\n\u00e9'", "a'b\\\né"),
        ("uint32 300", 300),
        ("int64 -5", -5),
        ("byte 0x1f", 31),
        ("1.5", 1.5),
        ("true", True),
        ("@as []", []),
        ("['a', 'b, c']", ["a", "b, c"]),
        ("[('xkb', 'us'), ('xkb', 'de')]", [["xkb", "us"], ["xkb", "de"]]),
        ("(1, true)", [1, True]),
    ],
)
def test_gvariants_text_is_read(judge: Judge, printed: str, value: Any):
    """As gsettings prints it."""
    assert judge("desktop.setting", printed, expected=value, form="gvariant").passed


@pytest.mark.parametrize(
    "printed",
    ["", "Adwaita", "'Adwaita", "'Adwaita' 'x'", "['Adwaita']", "'adwaita'", "'Adwaita-dark'", "[",
     "['a' 'b']", "(,)", "]", "uint32", "1.2.3", "'\\", "[" * 100_000, "{'a': <1>}", "\0"],
)  # fmt: skip
def test_what_is_not_that_setting_is_a_plain_fail(judge: Judge, printed: str):
    """Another value, type or kind, more than one, cut short, nested for ever."""
    found = judge("desktop.setting", printed, expected="Adwaita", form="gvariant")
    assert not found.passed


@given(st.text(alphabet="'\"\\[](), abtrue0123.eE+-x@n\n"))
def test_any_text_is_a_setting_or_fails(text: str):
    """The parser raises nothing but its refusal."""
    try:
        parse_gvariant(text)
    except Fails:
        pass


def test_a_default_application_comes_first(judge: Judge):
    """Not one that is only possible, nor the second, nor that of another type."""
    rule = {"mime": "text/plain", "expected": "mousepad.desktop"}

    def chosen(lines: str, section: str = "Default Applications") -> bool:
        return judge("desktop.default_app", f"[{section}]\n{lines}\n", **rule).passed

    assert chosen("text/plain=mousepad.desktop")
    assert judge("desktop.default_app", "\n[Default Applications]\ntext/plain=mousepad.desktop\n",
                 **rule).passed  # fmt: skip
    assert chosen("text/plain=mousepad.desktop;vim.desktop;")
    assert not chosen("text/plain=vim.desktop;mousepad.desktop;")
    assert not chosen("text/plain=org.mousepad.desktop")
    assert not chosen("text/html=mousepad.desktop")
    assert not chosen("text/plain=mousepad.desktop", "Added Associations")
    assert not chosen("text/plain=\n")
    assert not judge("desktop.default_app", None, **rule).passed
    assert not judge("desktop.default_app", b"\xff\xfe", **rule).passed
