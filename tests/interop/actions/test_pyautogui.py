"""Promises of source text that calls pyautogui: read, never run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cua_gym import actions as a
from cua_gym.errors import ActionError, UnknownKey
from cua_gym.interop.actions import ONLY_LOOK, Scale, from_pyautogui, to_pyautogui
from tests.interop.actions import strategies as draw

AT = (7, 9)

EXAMPLES: list[tuple[str, tuple[a.Action, ...]]] = [
    ("pyautogui.moveTo(100, 200)", (a.Move(100, 200),)),
    ("pyautogui.moveTo(x=100, y=200.9, duration=0.5)", (a.Move(100, 200),)),
    ("pyautogui.moveTo(None, 200)", (a.Move(7, 200),)),
    ("pyautogui.moveTo((100, 200), duration=1)", (a.Move(100, 200),)),
    ("pyautogui.moveTo()", ONLY_LOOK),
    ("pyautogui.click()", (a.Click(7, 9),)),
    ("pyautogui.click(100, 200)", (a.Click(100, 200),)),
    ("pyautogui.click(100, 200, 2, 0.1, 'right')", (a.Click(100, 200, "right", 2),)),
    ("pyautogui.click(x=1, y=2, clicks=3, button='PRIMARY')", (a.Click(1, 2, "left", 3),)),
    ("pyautogui.leftClick(1, 2)", (a.Click(1, 2),)),
    ("pyautogui.rightClick(1, 2)", (a.Click(1, 2, "right"),)),
    ("pyautogui.middleClick()", (a.Click(7, 9, "middle"),)),
    ("pyautogui.doubleClick(1, 2)", (a.Click(1, 2, "left", 2),)),
    ("pyautogui.tripleClick(x=1, y=2)", (a.Click(1, 2, "left", 3),)),
    ("pyautogui.dragTo(1, 2, 0.5, button='left')", (a.Drag(((7, 9), (1, 2))),)),
    ("pyautogui.mouseDown()", (a.MouseDown(),)),
    ("pyautogui.mouseUp(3, 4, button=2)", (a.Move(3, 4), a.MouseUp("middle"))),
    ("pyautogui.scroll(-5)", (a.Scroll(7, 9, 0, 5),)),
    ("pyautogui.scroll(5, x=1, y=2)", (a.Scroll(1, 2, 0, -5),)),
    ("pyautogui.vscroll(5)", (a.Scroll(7, 9, 0, -5),)),
    ("pyautogui.hscroll(5)", (a.Scroll(7, 9, 5, 0),)),
    ("pyautogui.write('naïve \\'x\\'\\n', interval=0.05)", (a.Type("naïve 'x'\n"),)),
    ('pyautogui.typewrite("""two\nlines""")', (a.Type("two\nlines"),)),
    ("pyautogui.typewrite(['h', 'I', 'enter'])", (a.Key("h"), a.Type("I"), a.Key("enter"))),
    ("pyautogui.press('enter')", (a.Key("enter"),)),
    ("pyautogui.press('tab', presses=3)", (a.Key("tab"),) * 3),
    ("pyautogui.press(['down', 'enter'], 2)", (a.Key("down"), a.Key("enter")) * 2),
    ("pyautogui.press('?')", (a.Type("?"),)),
    ("pyautogui.hotkey('ctrl', 'c')", (a.Key("ctrl+c"),)),
    ("pyautogui.hotkey(['ctrl', 'shift', 't'], interval=0.1)", (a.Key("ctrl+shift+t"),)),
    ("pyautogui.hotkey('ctrl', '+')", (a.Key("ctrl+kp_add"),)),
    ("pyautogui.hotkey('ctrl', 'C')", (a.Key("shift+ctrl+c"),)),
    ("pyautogui.keyDown('shift')", (a.KeyDown("shift"),)),
    ("pyautogui.keyUp('altleft')", (a.KeyUp("alt"),)),
    ("time.sleep(1.5)", (a.Wait(1.5),)),
    ("pyautogui.sleep(2)", (a.Wait(2.0),)),
    ("import pyautogui, time\nimport time", ONLY_LOOK),
    ("WAIT", (a.Wait(2.0),)),
    ("\nDONE ", (a.Submit(),)),
    ("FAIL", (a.GiveUp(),)),
    (
        "import pyautogui; pyautogui.moveTo(1, 2); pyautogui.dragTo(3, 4)  # there\n"
        "pyautogui.click(button='right')",
        (a.Move(1, 2), a.Drag(((1, 2), (3, 4))), a.Click(3, 4, "right")),
    ),
]


@pytest.mark.parametrize(("code", "ours"), EXAMPLES)
def test_documented_examples(code: str, ours: tuple[a.Action, ...]) -> None:
    """Each call is what pyautogui does on X11, the pointer followed from call to call."""
    assert from_pyautogui(code, cursor=AT) == ours


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "without a statement"),
        ("# only a thought", "without a statement"),
        ("pyautogui.click(1, 2", "not Python, line 1: "),
        ("x = 3", "line 1: found 'x = 3'"),
        ("import pyautogui\n\nimport os", "line 3: found 'import os'"),
        ("import pyautogui as p", "line 1: found 'import pyautogui as p'"),
        ("from pyautogui import click", "line 1: found 'from pyautogui import click'"),
        ("click(1, 2)", r"line 1: found 'click\(1, 2\)'"),
        ("pyautogui.screenshot()", r"found 'pyautogui.screenshot\(\)'; known are .*moveTo"),
        ("time.click(1, 2)", "known are .*, time.sleep"),
        ("os.system('true')", r'found "os.system\(\'true\'\)"'),
        ("pyautogui.click(\n  1,\n  f())", r"line 3: found 'f\(\)'; only numbers"),
        ("pyautogui.click(*[1, 2])", r"found '\*\[1, 2\]'"),
        ("pyautogui.click(**{'x': 1})", "each argument once, by name"),
        ("pyautogui.click(1, x=2)", "each argument once, by name"),
        ("pyautogui.click(1, 2, 1, 0, 'left', 0, None, 8)", "at most 7 arguments"),
        ("pyautogui.click(1, 2, speed=3)", "speed: "),
        ("pyautogui.click('button.png')", "x: .*; got 'button.png'"),
        ("pyautogui.click(1, 2, button='thumb')", "no button is called 'thumb'"),
        ("pyautogui.click(1, 2, clicks=4)", "from 1 to 3"),
        ("pyautogui.click(1e999, 2)", "x: "),
        ("pyautogui.moveTo(1, 2, 0.5, pyautogui.easeInQuad)", "found 'pyautogui.easeInQuad'"),
        ("pyautogui.write(f'{1}')", "only numbers, strings and lists"),
        ("pyautogui.write(b'x')", "message"),
        ("pyautogui.press('a', presses=0)", "presses: "),
        ("pyautogui.keyDown('A?')", "no key is called"),
        ("time.sleep(61)", "seconds: .*; got 61"),
        ("for i in range(3):\n    pyautogui.click()", "line 1: found 'for i in range"),
        ("DONE\nDONE", "line 1: found 'DONE'"),
        ("\0", "not Python"),
        ("\ud800", "not Python"),
        ("(" * 9000, "not Python"),
        ("-" * 19_000 + "1", "not Python"),
        ("a" + ".b" * 9000, "not Python"),
        ("pyautogui.click(" + "9" * 5000 + ")", "not Python"),
        ("pyautogui.click(0x" + "f" * 9000 + ")", "x: "),
        ("x" * 20_001, "at most 20000 characters"),
    ],
)
def test_what_is_wrong_is_said(code: str, said: str) -> None:
    """What is no literal call of a known function is named, with its line."""
    with pytest.raises(ActionError, match=said):
        from_pyautogui(code, cursor=AT)


@pytest.mark.parametrize(
    "hostile",
    [
        "open({0!r}, 'w')",
        "pyautogui.click(open({0!r}, 'w'))",
        "pyautogui.write(__import__('pathlib').Path({0!r}).touch())",
        "pyautogui.click(x=(lambda: open({0!r}, 'w'))())",
        "@pyautogui.click(open({0!r}, 'w'))\ndef f(): pass",
        "pyautogui.write(f\"{{open({0!r}, 'w')}}\")",
        "class pyautogui:\n    click = open({0!r}, 'w')\npyautogui.click()",
    ],
)
def test_nothing_is_run(hostile: str, tmp_path: Path) -> None:
    """Code with an effect has none: it is an error before and after anything valid."""
    trap = tmp_path / "trap"
    with pytest.raises(ActionError):
        from_pyautogui(f"pyautogui.click(1, 2)\n{hostile.format(str(trap))}", cursor=AT)
    assert not trap.exists()


def test_an_unknown_key_gets_near_names() -> None:
    """The error helps a model to find the key."""
    with pytest.raises(UnknownKey, match="'entr'; did you mean enter"):
        from_pyautogui("pyautogui.press('entr')", cursor=AT)


def test_a_missing_coordinate_is_the_pointers() -> None:
    """On a smaller picture too, where the pointer's own pixel may not exist."""
    scale = Scale((100, 100), (1000, 1000))
    assert from_pyautogui("pyautogui.click(x=99)", cursor=AT, scale=scale) == (a.Click(999, 9),)


@given(draw.osworld | draw.seconds.map(a.Wait), draw.point)
def test_there_and_back(action: a.Action, cursor: tuple[int, int]) -> None:
    """Ours to theirs to ours is the identity, wherever the pointer is."""
    assert from_pyautogui(to_pyautogui(action), cursor=cursor) == (action,)


@given(draw.started, draw.point)
def test_there_and_back_from_a_start(action: a.Drag | a.Scroll, cursor: tuple[int, int]) -> None:
    """A scroll comes back as it was; a drag after the move to where it starts."""
    before = (a.Move(*action.path[0]),) if isinstance(action, a.Drag) else ()
    assert from_pyautogui(to_pyautogui(action), cursor=cursor) == (*before, action)


def test_what_is_written() -> None:
    """The source is what a person would write."""
    assert to_pyautogui(a.Click(1, 2, "right", 2)) == (
        "pyautogui.click(x=1, y=2, button='right', clicks=2)"
    )
    assert to_pyautogui(a.Key("ctrl+page_down")) == "pyautogui.hotkey('ctrl', 'pagedown')"
    assert to_pyautogui(a.Type("it's")) == 'pyautogui.write("it\'s")'
    assert to_pyautogui(a.MouseDown("right")) == "pyautogui.mouseDown(button='right')"
    assert to_pyautogui(a.Wait(1.5)) == "time.sleep(1.5)"
    assert to_pyautogui(a.Submit()) == "DONE"
    assert to_pyautogui(a.Click(1, 2, modifiers=("ctrl",))).splitlines() == [
        "pyautogui.keyDown('ctrl')", "pyautogui.click(x=1, y=2)", "pyautogui.keyUp('ctrl')",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "action",
    [a.Type("你好"), a.Key("kp_enter"), a.Shell("true"), a.Submit("42"), a.GiveUp("too hard")],
)
def test_what_it_cannot_say(action: a.Action) -> None:
    """What pyautogui cannot do is an error, not something near it."""
    with pytest.raises(ActionError, match=r"cannot say|no name for"):
        to_pyautogui(action)


_atoms = st.one_of(
    st.integers().map(repr), st.floats().map(repr), st.text(max_size=5).map(ascii),
    st.sampled_from(["None", "True", "...", "x", "1j", "b''", "-1", "{}", "f'{x}'", "'left'"]),
)  # fmt: skip
_expressions = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
        st.tuples(inner, st.sampled_from(["+", ".", " if ", ":=", "=", "*", " for "]), inner).map(
            "".join
        ),
        st.lists(inner, max_size=2).map(lambda parts: f"f({', '.join(parts)})"),
    ),
    max_leaves=6,
)
_FUNCTIONS = """
pyautogui.click pyautogui.moveTo pyautogui.dragTo pyautogui.scroll pyautogui.press pyautogui.write
pyautogui.hotkey pyautogui.mouseDown pyautogui.keyDown time.sleep os.system pyautogui
"""
_arguments = st.tuples(st.sampled_from(["", "", "x=", "y=", "keys=", "*", "**"]), _expressions)
_calls = st.tuples(
    st.sampled_from(_FUNCTIONS.split()), st.lists(_arguments.map("".join), max_size=4)
).map(lambda call: f"{call[0]}({', '.join(call[1])})")
_sources = st.lists(_calls | _expressions | st.text(max_size=10), max_size=3).map("\n".join)


@given(_sources)
def test_random_source_is_read_or_refused(code: str) -> None:
    """Whatever arrives gives valid actions or an `ActionError`."""
    draw.actions_or_refusal(lambda given_: from_pyautogui(given_, cursor=AT), code)


@given(draw.junk)
def test_junk_is_refused(junk: object) -> None:
    """What is no text is refused too."""
    draw.actions_or_refusal(lambda given_: from_pyautogui(given_, cursor=AT), junk)


@given(draw.printable, draw.chords(draw.pyautogui_names))
def test_any_text_survives_its_source(text: str, combo: str) -> None:
    """Quotes, backslashes and newlines of a text are its own, not the source's."""
    code = f"{to_pyautogui(a.Type(text))}\n{to_pyautogui(a.Key(combo))}"
    assert from_pyautogui(code, cursor=AT) == (a.Type(text), a.Key(combo))
